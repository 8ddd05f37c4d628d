"""Functions that ftcuda calls, which allocate, launch, capture, lease, collect and close, while all threads do too.

Those for which a stream waits are refused what needs the driver, and what they close or drop goes later.
"""

import gc
import threading
from types import SimpleNamespace

import numpy as np

from ftcuda import CUDAError, StagingPool, host_launch, launch
from ftcuda.testing.hazard import Hazard

TURNS = 6
NOT_PERMITTED = 800
LIMIT = 20  # seconds for the functions of a thread, once its work is done


class Callbacks(Hazard):
    """Each function is called once, does all that other threads may do, and nobody waits for ever."""

    oracle = "how often functions were called, and refused; what the kernels counted that functions and graphs launched"
    threads = 3
    unscheduled = "threads of the library call its functions, and no schedule knows those"

    def round(self, seed, random):
        return SimpleNamespace(pool=StagingPool(self.env.device, 1024))

    def act(self, state, index, random):
        stream = self.env.device.create_stream()
        mine = SimpleNamespace(
            pool=state.pool,
            stream=self.env.device.create_stream(),
            word=self.env.pinned.allocate(4),
            called=threading.Semaphore(0),
            wrong=[],
        )
        count = np.frombuffer(mine.word, np.int32)
        count[:] = 0
        wanted = functions = 0
        for _ in range(TURNS):
            acts = [self.ACTS[each] for each in random.integers(len(self.ACTS), size=3)]
            launches, calls, launched = self.submit(stream, mine, acts, random)
            wanted += launches + launched
            functions += calls
        stream.sync()
        for _ in range(functions):
            if not mine.called.acquire(timeout=LIMIT):
                raise AssertionError(f"{LIMIT} s after the work one of {functions} functions was not called")
        mine.stream.sync()
        if mine.wrong:
            raise mine.wrong[0]
        if count[0] != wanted or mine.called.acquire(blocking=False):
            raise AssertionError(f"kernels counted {count[0]} instead of {wanted}, or a function was called twice")
        mine.stream.close()
        stream.close()
        return 3 * functions

    def submit(self, stream, mine, acts, random):
        """Gives ftcuda a function to call, in some way. How many kernels count, how often it is called, launches."""
        way = int(random.integers(4))
        is_host_function = way >= 2
        dropped = [self.env.device.allocate(64, stream=mine.stream), stream.record(), self.env.device.create_stream()]

        def function():
            try:
                for act in acts:
                    self.refused(act, mine) if is_host_function else act(self, mine)
                dropped.clear()
                gc.collect(0)
            except BaseException as error:
                mine.wrong.append(error)
            finally:
                mine.called.release()

        launch(stream, self.env.one, self.env.increment, mine.word)
        if way == 0:
            stream.when_done(function)
        elif way == 1:
            event = stream.record()
            event.when_done(function)
            event.close()
        elif way == 2:
            host_launch(stream, function)
        else:
            graph = self.graph(stream, mine, function)
            graph.launch(stream)
            graph.launch(stream)
            graph.close()
            return 3, 2, 0
        return 1, 1, 0 if is_host_function else sum(act is Callbacks.launch for act in acts)

    def refused(self, act, mine):
        """In a host function: what needs the driver is refused, and does nothing."""
        try:
            act(self, mine)
        except CUDAError as error:
            if error.code != NOT_PERMITTED:
                raise
        else:
            raise AssertionError(f"a host function may {act.__name__}")

    def graph(self, stream, mine, function):
        builder = stream.create_graph_builder().begin_building()
        launch(builder, self.env.one, self.env.increment, mine.word)
        if function is not None:
            builder.callback(function)
        self.env.device.allocate(64, stream=mine.stream).close()  # others go on during a capture
        graph = builder.end_building().complete()
        builder.close()
        return graph

    def allocate(self, mine):
        self.env.device.allocate(4096, stream=mine.stream).close()

    def launch(self, mine):
        launch(mine.stream, self.env.one, self.env.increment, mine.word)

    def capture(self, mine):
        self.graph(mine.stream, mine, None).close()

    def lease(self, mine):
        try:
            lease = mine.pool.lease(512, timeout=0)
        except TimeoutError:  # others have all of it
            return
        lease.copy_to(self.env.device.allocate(512, stream=mine.stream), stream=mine.stream)

    def collect(self, mine):
        circle = [self.env.device.allocate(64, stream=mine.stream), mine.stream.record()]
        circle.append(circle)
        del circle
        gc.collect(0)

    def close(self, mine):
        stream = self.env.device.create_stream()
        event = stream.record()
        stream.close()
        event.close()

    ACTS = (allocate, launch, capture, lease, collect, close)

    def check(self, state):
        state.pool.close()
