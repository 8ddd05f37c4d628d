"""The first use of one piece of code from all threads."""

from types import SimpleNamespace

from ftcuda import launch
from ftcuda.testing.hazard import Hazard


class CompileOnce(Hazard):
    """Code is loaded on the device once, by one thread, while the others wait for it."""

    oracle = "one function for all threads; what the launches counted; the loads, on the simulated driver"

    def round(self, seed, random):
        counter = self.env.plain.allocate(4)
        counter.fill(0, stream=self.env.stream)
        return SimpleNamespace(code=self.env.new_code(), handles=[], before=self.loads(), counter=counter)

    def loads(self):
        if not self.env.is_simulated:
            return 0
        from ftcuda.testing import simulation

        return simulation.calls("cuModuleLoadDataEx")

    def act(self, state, index, random):
        kernel = state.code.get_kernel("increment")
        launch(self.env.stream, self.env.one, kernel, state.counter)
        state.handles.append(kernel.handle)
        return 2

    def check(self, state):
        if len(set(state.handles)) != 1:
            raise AssertionError(f"{len(set(state.handles))} different functions for one kernel")
        loads = self.loads() - state.before
        if self.env.is_simulated and loads != 1:
            raise AssertionError(f"loaded {loads} times")
        if (counted := self.env.read_int(state.counter, self.env.stream)) != len(state.handles):
            raise AssertionError(f"{len(state.handles)} launches, {counted} counted")
        state.counter.close()
        del state.code
        self.env.device.sync()  # the module goes now
