"""What ftcuda's own hazards work with: a device, kernels, streams, buffers and memory resources that nobody closes."""

import asyncio
import pickle
import tempfile
import time
from concurrent.futures import wait
from contextlib import suppress

import numpy as np

import ftcuda
from ftcuda.graph import GraphCompleteOptions, GraphDefinition, Parameter
from ftcuda.memory import wait_for_deallocations
from ftcuda.serving import Batcher
from ftcuda.testing import hazard

SOURCE = r"""
__device__ int variable = 1;
extern "C" __global__ void increment(int* counter) { atomicAdd(counter, 1); }
extern "C" __global__ void tally(int* counts, const int* zero, int value) { atomicAdd(&counts[value + *zero], 1); }
extern "C" __global__ void append(int* log, int value) { log[0] += 1; log[log[0]] = value; }
extern "C" __global__ void late(volatile int* place, int value, int turns) {
    for (int turn = 0; turn < turns; ++turn) if (*place == -1) return;
    *place = value;
}
extern "C" __global__ void triple(int* out, int a, long long b, float c) { if (a == b && b == c) atomicAdd(out, 1); }
"""


def copy_rows(batch):
    """What batchers here compute."""
    batch["y"].copy_from(batch["x"], stream=batch.stream)


class Environment(hazard.Environment):
    """Made once for a run; constant afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self._image = ftcuda.Program(SOURCE, "c++").compile("ptx" if self.is_simulated else "cubin").code
        self.code = self.new_code()
        self.increment = self.kernel = self.code.get_kernel("increment")
        self.tally = self.code.get_kernel("tally")
        self.append = self.code.get_kernel("append")
        self.late = self.code.get_kernel("late")
        self.triple = self.code.get_kernel("triple")
        self.one = ftcuda.LaunchConfig(grid=1, block=1)
        self.immortal = ftcuda.LaunchConfig(grid=1, block=2)
        ftcuda.make_immortal(self.immortal)  # by the thread that made it
        self.large_shared = ftcuda.LaunchConfig(grid=1, block=1, shmem_size=64 * 1024)
        self.other_stream = self.device.create_stream()
        self.event = self.device.create_event()
        self.start = self.stream.record(options={"timing_enabled": True})
        self.resource = self.device.memory_resource
        self.pool = self.device.memory_resource.upstream  # plain memory where there are no pools
        self.plain = ftcuda.SynchronousMemoryResource(self.device)
        self.pinned = ftcuda.LegacyPinnedMemoryResource()
        self.buffer, self.other_buffer, self.counter = (
            self.resource.allocate(64, stream=self.stream) for _ in range(3)
        )
        for buffer in (self.buffer, self.other_buffer, self.counter):
            buffer.fill(0, stream=self.stream)
        self.array = np.zeros(16, np.int32)
        self.row = np.arange(4, dtype=np.int32)
        self.tensor, self.other_tensor, self.image = (
            ftcuda.StridedMemoryView.from_buffer(self.resource.allocate(1024, stream=self.stream), shape, dtype="i4")
            for shape in ((256,), (256,), (4, 8, 8))
        )
        self.other_stream.wait(self.stream)
        self._folder = tempfile.TemporaryDirectory()  # which goes with the process
        self.nowhere = f"{self._folder.name}/graph.dot"
        self.graph_builder = self.new_graph_builder()
        self.graph = self.graph_builder.complete()
        self.has_graph_memory = self.device.features.memory_pools and self.device.features.graphs
        self.has_conditionals = self.device.features.conditional_graphs
        if self.has_conditionals:  # which came with graph definitions
            self.other_definition = self.new_definition()
        self.device.sync()

    def let_go(self, is_gone):
        """Whether what work used is let go of: a thread of ftcuda's does that, a moment after the work."""
        limit = time.monotonic() + 20
        while not is_gone() and time.monotonic() < limit:
            self.device.sync()
            wait_for_deallocations()
        return is_gone()

    def new_code(self):
        """Returns code that is loaded nowhere yet."""
        load = ftcuda.ObjectCode.from_ptx if self.is_simulated else ftcuda.ObjectCode.from_cubin
        return load(self._image)

    def new_graph_builder(self):
        """Returns one whose capture is over."""
        builder = self.device.create_graph_builder().begin_building()
        ftcuda.launch(builder, self.one, self.kernel, self.counter)
        return builder.end_building()

    def new_graph(self):
        """Returns one with two executables."""
        return self.new_graph_builder().complete(GraphCompleteOptions(max_concurrency=2))

    def graph_memory(self):
        """Returns a resource of graphs, or a plain one where the device has no such memory."""
        if self.has_graph_memory:
            return ftcuda.GraphMemoryResource(self.device)
        return ftcuda.SynchronousMemoryResource(self.device)

    def leave_memory(self, builder):
        """Allocates in a graph, and frees there."""
        if self.has_graph_memory:
            ftcuda.GraphMemoryResource(self.device).allocate(64, stream=builder).close()

    def capture_memory(self, resource):
        """Allocates in a graph of its own, and leaves the memory to that."""
        builder = self.device.create_graph_builder().begin_building()
        resource.allocate(64, stream=builder if self.has_graph_memory else self.stream)
        builder.end_building().complete().launch(self.stream)

    def capture_free(self, resource):
        """Allocates in a graph of its own, and frees by the address."""
        if not self.has_graph_memory:
            return
        builder = self.device.create_graph_builder().begin_building()
        buffer = resource.allocate(64, stream=builder)
        resource.deallocate(buffer.handle, 64, stream=builder)
        builder.end_building().complete().launch(self.stream)

    def graph_figures(self, resource):
        """Reads and resets the attributes, where there are any."""
        if self.has_graph_memory:
            resource.attributes.used_mem_high = 0
            return resource.attributes.reserved_mem_current
        return None

    def new_bound_graph(self):
        """Returns one that counts wherever a launch says."""
        builder = self.device.create_graph_builder().begin_building()
        ftcuda.launch(builder, self.one, self.kernel, Parameter("where", self.counter))
        return builder.end_building().complete(GraphCompleteOptions(max_concurrency=2)).bind()

    def nothing(self):
        """What graphs call back."""

    def new_definition(self):
        """Returns one with a node."""
        definition = GraphDefinition(device=self.device)
        definition.launch(self.one, self.kernel, self.counter)
        return definition

    def new_conditional(self, verb, *more):
        """Returns a conditional node."""
        definition = GraphDefinition(device=self.device)
        return getattr(definition, verb)(definition.create_condition(0), *more)

    def new_free_node(self):
        allocated = self.new_definition().allocate(64)
        return allocated.deallocate(allocated.dptr)

    def new_executable_node(self, add):
        """Returns the node of a graph with two executables that `add` adds to its definition."""
        definition = GraphDefinition(device=self.device)
        node = add(definition)
        return definition.instantiate(GraphCompleteOptions(max_concurrency=2))[node]

    def add_conditional_node(self, source, verb, *more):
        """Adds a conditional node to a definition, or behind a node."""
        definition = source if isinstance(source, GraphDefinition) else source.graph
        return getattr(source, verb)(definition.create_condition(0), *more)

    def graph_of_definition(self):
        return self.new_definition().instantiate()

    def new_condition(self):
        """Returns one of a builder that is gone."""
        builder = self.device.create_graph_builder().begin_building()
        try:
            return builder.create_condition(1)
        finally:
            builder.close()

    def add_conditional(self, builder, add):
        """Adds a conditional node, where the driver knows such, and builds its bodies, which never run."""
        if not self.has_conditionals:
            return
        bodies = add(builder.create_condition(0))
        for body in bodies if isinstance(bodies, tuple) else (bodies,):
            body.begin_building()
            ftcuda.launch(body, self.one, self.kernel, self.counter)
            body.end_building()

    def new_batcher(self):
        """Returns one that copies rows of four numbers."""
        capture = self.device.features.graphs
        array = {"x": ("int32", (4,))}, {"y": ("int32", (4,))}
        return Batcher(
            copy_rows, inputs=array[0], outputs=array[1], batch_sizes=(1, 2), max_queued=64, in_flight=1,
            device=self.device, capture=capture,
        )  # fmt: skip

    def new_request(self):
        """Returns the future of a request to a batcher of its own."""
        return self.new_batcher().submit(self.row)

    def sent(self, thing):
        """Returns it as another process would get it."""
        return pickle.loads(pickle.dumps(thing))

    def own_pool(self):
        """Returns a resource that owns its pool, where there are pools."""
        if self.device.features.memory_pools:
            return ftcuda.DeviceMemoryResource(self.device, {"max_size": 0})
        return ftcuda.SynchronousMemoryResource(self.device)

    def pool_figures(self, resource):
        """Reads the pool's attributes, where it has any."""
        return resource.attributes.used_mem_current if resource.is_stream_ordered else None

    def close_exported(self, view):
        """Closes the buffer behind a view, unless it is shared by all."""
        if view.exporting_obj is not self.counter:
            view.exporting_obj.close()

    def inside(self, manager):
        """Enters and leaves a context manager."""
        with manager:
            pass

    def in_time(self, sync):
        """Waits for no time at all."""
        with suppress(TimeoutError):
            sync(timeout=0)

    def awaits(self, what):
        """Awaits it in a loop of its own."""

        async def main():
            return await what

        if asyncio.run(main()) is not what:
            raise AssertionError(f"{what} came to something else")

    def gives_up(self, what):
        """Begins to await it, and gives up."""

        async def main():
            task = asyncio.ensure_future(what)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

        asyncio.run(main())

    def result_of(self, future, gives_up=False):
        """Awaits a request in a loop of its own, or begins to."""

        async def main():
            task = asyncio.ensure_future(future)
            if gives_up:
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                return self.row
            return await task

        if not np.array_equal(asyncio.run(main()), self.row):
            raise AssertionError("the answer is not the request's own")

    def waits(self, future):
        """Waits as for futures of the standard library's."""
        if wait([future]).done != {future}:
            raise AssertionError("who waited was told of another future")

    def look(self, buffer):
        """Takes a view of host-accessible memory and lets it go."""
        if buffer.is_host_accessible:
            memoryview(buffer).release()

    def elapsed(self, event):
        """Times an event; one that keeps no time or is not reached yet has no time."""
        try:
            return event - self.start
        except ftcuda.ClosedError:
            raise
        except RuntimeError:
            return None

    def refused(self, load):
        """Loads an image of the wrong kind."""
        try:
            load(b"nothing")
        except ValueError:
            return
        raise AssertionError("an image of the wrong kind was taken")

    def clusters(self, question):
        """Asks about clusters, where the driver knows them."""
        try:
            question(self.one, stream=self.stream)
        except ftcuda.CUDAError as error:
            if not isinstance(error, ftcuda.NotSupportedError) and error.name != "CUDA_ERROR_NOT_SUPPORTED":
                raise

    def read_int(self, buffer, stream) -> int:
        """Returns the first int of a buffer, in a stream's order."""
        host = self.pinned.allocate(4)
        part = ftcuda.Buffer.from_handle(buffer.handle, 4, owner=buffer)
        part.copy_to(host, stream=stream)
        stream.sync()
        return int(np.frombuffer(host, np.int32)[0])
