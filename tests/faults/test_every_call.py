"""Every driver call of every public operation fails in turn, at every occurrence.

The exception names the call that failed; nothing leaks; afterwards the operation works, or says that its object is closed.
"""

import asyncio
import threading
import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, CUDAError, CUDAWarning, LaunchConfig, StridedMemoryView, launch
from ftcuda.testing import faults, settle, simulation
from ftcuda.testing.settling import give_back
from tests.conftest import live_handles, simulated_only
from tests.kernels import compile_code

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="plans faults for the whole process")]

UNKNOWN = 999  # a failure that does not end the context
ONE = LaunchConfig(grid=1, block=1)
SOURCE = """__device__ int variable;
extern "C" __global__ void increment(int* counter) { atomicAdd(counter, 1); }"""

# Calls that only make messages, or that a thread makes of its own state and cannot fail with valid arguments.
NOT_FAILED = {"cuGetErrorName", "cuGetErrorString", "cuThreadExchangeStreamCaptureMode", "cuDriverGetVersion", "cuInit"}
# What destroys: the driver keeps what it refused to destroy, and the failure comes out as a warning.
DESTROYING = {
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemPoolDestroy",
    "cuModuleUnload",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
}
NEED_TENSOR_MAPS = {"StridedMemoryView.as_tensor_map", "TensorMapDescriptor.replace_address"}
NEED_GRAPHS = {"a graph", "a graph of parts", "a graph in a graph", "a graph that calls back"}
NEED_CONDITIONALS = {"a graph with a condition", "a graph with cases"}
NEED_UPDATES = {"Graph.update"}
NEED_POOLS = {"DeviceMemoryResource", "MemoryResource.trim", "MemoryResource.attributes"}


class World:
    """Fresh objects for one attempt, and all of them closed after it."""

    def __init__(self, image):
        self.device = ftcuda.Device(0)
        self.stream, self.other = self.device.create_stream(), self.device.create_stream()
        self.event, self.later = (self.stream.record(options={"timing_enabled": True}) for _ in range(2))
        self.pool = self.device.memory_resource
        self.plain, self.pinned = ftcuda.SynchronousMemoryResource(self.device), ftcuda.LegacyPinnedMemoryResource()
        self.cache = ftcuda.CachingMemoryResource(self.plain)
        self.cache.allocate(64, stream=self.stream).close()
        self.pinned_cache = ftcuda.CachingMemoryResource(self.pinned)
        self.staging = ftcuda.StagingPool(self.device, 8192)
        self.buffer, self.target = (self.device.allocate(64, stream=self.stream) for _ in range(2))
        self.host = self.pinned.allocate(64)
        self.bare = self.plain.allocate(64, stream=self.stream)
        self.code = ftcuda.ObjectCode.from_ptx(image)
        self.new_code = ftcuda.ObjectCode.from_ptx(image)
        self.kernel = self.code.get_kernel("increment")
        self.foreign = self.device.create_stream()
        self.made = []
        self.array, self.large_array = np.zeros(64, "u1"), np.zeros((4 << 20) + 64, "u1")
        self.large = self.device.allocate(self.large_array.nbytes, stream=self.stream)
        self.tensor = StridedMemoryView.from_buffer(self.large, (32, 32), dtype="f4")
        data = (self.target.handle, False)
        self.interface = SimpleNamespace(
            __cuda_array_interface__={
                "shape": (64,),
                "typestr": "|u1",
                "data": data,
                "version": 3,
                "stream": self.foreign.handle,
            }
        )
        lender = ftcuda.ExternalMemoryResource(lambda size, stream: self.pinned.allocate(size))
        self.lent = lender.allocate(64, stream=self.stream)
        self.lent.fill(0, stream=self.stream)
        self.buffer.copy_from(self.array, stream=self.stream)  # leaves a chunk of staging memory behind
        self.device.sync()

    def keep(self, thing):
        """Remembers a made object, to close it."""
        self.made.append(thing)

    def used_elsewhere(self):
        """A buffer that another stream used."""
        buffer = self.device.allocate(64, stream=self.stream)
        self.other.wait(self.stream)
        buffer.fill(1, stream=self.other)
        return buffer

    def close(self):
        things = [
            *self.made,
            self.buffer,
            self.target,
            self.host,
            self.bare,
            self.event,
            self.later,
            self.stream,
            self.other,
            self.foreign,
            self.large,
            self.lent,
            self.cache,
            self.pinned_cache,
        ]
        for thing in things:
            if hasattr(thing, "close"):
                thing.close()
        self.__dict__.clear()
        for _ in range(3):  # what one frees runs until the next
            give_back()


def exclusive(world):
    with world.stream.exclusive():
        world.stream.record(world.event)


def used(world, resource):
    """A buffer of `resource` that two streams use."""
    buffer = resource.allocate(64, stream=world.stream)
    world.keep(buffer)
    buffer.fill(1, stream=world.stream)
    world.other.wait(world.stream)
    buffer.copy_to(world.target, stream=world.other)
    return buffer


def allocated(world, resource, stream):
    """A buffer of `resource`, of which a cache keeps none that is of a default stream."""
    buffer = resource.allocate(64, stream=stream)
    world.keep(buffer)
    return buffer


def view_of(buffer):
    return StridedMemoryView.from_buffer(buffer, (64,), dtype="u1")


def held(operation):
    """Runs it while the simulated device stands still: what it finds done or not is no matter of luck then."""
    with simulation.held_clock():
        operation()


def build(world, add, beside=None):
    """A builder of a graph of what `add` adds; closed at the end, as what it completes is."""
    builder = (beside or world.device).create_graph_builder()
    world.keep(builder)
    builder.begin_building()
    add(builder)
    return builder.end_building()


def run_graph(world, add, beside=None):
    graph = build(world, add, beside).complete({"upload_stream": world.stream})
    world.keep(graph)
    graph.launch(world.stream)


def count(world):
    return lambda builder: launch(builder, ONE, world.kernel, world.buffer)


def count_in_parts(world):
    def add(builder):
        parts = builder.split(3)
        for part in parts:
            count(world)(part)
        builder.join(*parts)

    return add


def count_in_bodies(world, add_node):
    """Bodies that never run, so that no test waits for what they count."""

    def add(builder):
        for body in add_node(builder, builder.create_condition(7)):
            world.keep(body)
            body.begin_building()
            count(world)(body)
            body.end_building()

    return add


def update(world):
    graph = build(world, count(world)).complete()
    world.keep(graph)
    graph.update(build(world, count(world)))
    graph.launch(world.stream)


def awaits(what):
    async def main():
        return await what

    assert asyncio.run(main()) is what


def is_called_for_an_event(world):
    """Of which the driver is asked, because it is not reached."""
    over = threading.Event()
    with simulation.held_clock():
        world.stream.record(world.event)
        world.event.when_done(over.set)
    assert over.wait(60)


OPERATIONS = {
    "a graph": lambda w: run_graph(w, count(w)),
    "a graph of parts": lambda w: run_graph(w, count_in_parts(w), w.stream),
    "a graph in a graph": lambda w: run_graph(w, lambda builder: builder.embed(build(w, count(w)))),
    "a graph that calls back": lambda w: run_graph(w, lambda builder: builder.callback(lambda: None)),
    "a graph with a condition": lambda w: run_graph(w, count_in_bodies(w, lambda builder, condition: [builder.if_then(condition)])),
    "a graph with cases": lambda w: run_graph(w, count_in_bodies(w, lambda builder, condition: builder.switch(condition, 2))),
    "Graph.update": update,
    "Device.create_stream": lambda w: w.keep(w.device.create_stream()),
    "Device.create_event": lambda w: w.keep(w.device.create_event()),
    "Device.allocate": lambda w: w.keep(w.device.allocate(64, stream=w.stream)),
    "Device.sync": lambda w: w.device.sync(),
    "Device.memory_info": lambda w: w.device.memory_info,
    "Device.set_current": lambda w: w.device.set_current(),
    "Device.default_stream": lambda w: w.device.default_stream.record(w.event),
    "Stream.sync": lambda w: w.stream.sync(),
    "Stream.is_done": lambda w: w.stream.is_done,
    "Stream.__await__": lambda w: awaits(w.stream),
    "Stream.__await__ by an event": lambda w: awaits(w.foreign),
    "Stream.__await__ of a default stream": lambda w: awaits(w.device.default_stream),
    "Event.__await__": lambda w: awaits(w.event),
    "Event.when_done": is_called_for_an_event,
    "host_launch": lambda w: ftcuda.host_launch(w.stream, lambda: None),
    "Stream.record": lambda w: w.stream.record(w.event),
    "Stream.record new": lambda w: w.keep(w.stream.record()),
    "Stream.wait event": lambda w: w.other.wait(w.event),
    "Stream.wait stream": lambda w: w.other.wait(w.stream),
    "Stream.exclusive": exclusive,
    "Stream.from_handle": lambda w: w.keep(ftcuda.Stream.from_handle(w.foreign.handle)),
    "Stream.close": lambda w: w.other.close(),
    "Event.sync": lambda w: w.event.sync(),
    "Event.is_done": lambda w: w.event.is_done,
    "Event.__sub__": lambda w: w.later - w.event,
    "Event.close": lambda w: w.later.close(),
    "Buffer.fill": lambda w: w.buffer.fill(1, stream=w.stream),
    "Buffer.fill elsewhere": lambda w: w.buffer.fill(1, stream=w.other),
    "Buffer.copy_to": lambda w: w.buffer.copy_to(w.target, stream=w.other),
    "Buffer.copy_from": lambda w: w.buffer.copy_from(w.host, stream=w.stream),
    "Buffer.close": lambda w: w.buffer.close(),
    "Buffer.close in a stream": lambda w: w.buffer.close(w.other),
    "Buffer.close after use elsewhere": lambda w: w.used_elsewhere().close(),
    "Buffer.close plain": lambda w: w.bare.close(),
    "Buffer.close pinned": lambda w: w.host.close(),
    "SynchronousMemoryResource.allocate": lambda w: w.keep(w.plain.allocate(64, stream=w.stream)),
    "LegacyPinnedMemoryResource.allocate": lambda w: w.keep(w.pinned.allocate(64)),
    "ManagedMemoryResource.allocate": lambda w: w.keep(ftcuda.ManagedMemoryResource().allocate(64, stream=w.stream)),
    "PinnedMemoryResource.allocate": lambda w: w.keep(ftcuda.PinnedMemoryResource().allocate(64, stream=w.stream)),
    "DeviceMemoryResource": lambda w: w.keep(ftcuda.DeviceMemoryResource(w.device, {"max_size": 1 << 20})),
    "CachingMemoryResource.allocate": lambda w: w.keep(w.cache.allocate(4096, stream=w.stream)),
    "CachingMemoryResource.allocate again": lambda w: w.keep(w.cache.allocate(64, stream=w.stream)),
    "CachingMemoryResource.trim": lambda w: w.cache.trim(),
    "StagingPool": lambda w: w.keep(ftcuda.StagingPool(w.device, 64)),
    "StagingPool.lease": lambda w: w.keep(w.staging.lease(64)),
    "StagingPool.lease and use": lambda w: w.buffer.copy_from(w.staging.lease(w.buffer.size), stream=w.stream),
    "StagingPool.allocate": lambda w: w.keep(w.staging.allocate(64)),
    "StagingPool.trim": lambda w: w.staging.trim(),
    "Buffer.close cached": lambda w: used(w, w.cache).close(),
    "Buffer.close uncached": lambda w: allocated(w, w.cache, w.device.default_stream).close(),
    "Buffer.close cached in a default stream": lambda w: allocated(w, w.cache, w.stream).close(w.device.default_stream),
    "Buffer.close in a default stream": lambda w: w.buffer.close(w.device.default_stream),
    "Buffer.close cached pinned": lambda w: held(used(w, w.pinned_cache).close),
    "MemoryResource.trim": lambda w: w.pool.trim(),
    "MemoryResource.attributes": lambda w: w.pool.attributes.used_mem_current,
    "ObjectCode.get_kernel": lambda w: w.new_code.get_kernel("increment"),
    "ObjectCode.get_global": lambda w: w.keep(w.new_code.get_global("variable")),
    "Kernel.attributes": lambda w: w.kernel.attributes.num_regs,
    "Kernel.attributes set": lambda w: setattr(w.kernel.attributes, "preferred_shared_memory_carveout", 50),
    "Kernel.occupancy": lambda w: w.kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0),
    "Buffer.copy_from array": lambda w: w.buffer.copy_from(w.array, stream=w.stream),
    "Buffer.copy_to array": lambda w: w.buffer.copy_to(w.array, stream=w.stream),
    "Buffer.copy_to array in pieces": lambda w: w.large.copy_to(w.large_array, stream=w.stream),
    "Buffer.copy_from array in pieces": lambda w: w.large.copy_from(w.large_array, stream=w.stream),
    "StridedMemoryView.copy_to": lambda w: view_of(w.buffer).copy_to(StridedMemoryView.from_array_interface(w.array), w.stream),
    "Buffer.__dlpack__": lambda w: w.used_elsewhere().__dlpack__(stream=w.foreign.handle),
    "Buffer.__cuda_array_interface__": lambda w: w.buffer.__cuda_array_interface__,
    "StatisticsMemoryResource.allocate": lambda w: w.keep(ftcuda.StatisticsMemoryResource(w.plain).allocate(64, stream=w.stream)),
    "Device.sync for a time": lambda w: w.device.sync(timeout=30),
    "Buffer.close lent": lambda w: (held(w.lent.close), w.device.sync()),
    "Device.trim_staging": lambda w: w.device.trim_staging(),
    "StridedMemoryView": lambda w: StridedMemoryView(w.interface, w.stream),
    "StridedMemoryView.as_tensor_map": lambda w: w.tensor.as_tensor_map((8, 32)),
    "TensorMapDescriptor.replace_address": lambda w: w.tensor.as_tensor_map((8, 32)).replace_address(w.tensor),
    "launch with an array": lambda w: held(lambda: launch(w.stream, ONE, w.kernel, w.interface)),
    "launch": lambda w: launch(w.stream, ONE, w.kernel, w.buffer),
    "bound launch": lambda w: w.kernel.bind(ONE, w.buffer).launch(w.stream),
    "launch elsewhere": lambda w: launch(w.other, ONE, w.kernel, w.buffer),
    "launch in a default stream": lambda w: launch(w.device.default_stream, ONE, w.kernel, w.buffer),
    "launch with much shared memory": lambda w: launch(w.stream, LaunchConfig(grid=1, block=1, shmem_size=60_000), w.kernel, w.buffer),
}  # fmt: skip


@pytest.fixture(scope="module")
def image():
    """Also makes the context's own housekeeping stream, which comes with the first free that has to wait."""
    buffer = ftcuda.SynchronousMemoryResource().allocate(64)
    buffer = ftcuda.Device(0).allocate(64) if ftcuda.Device(0).features.memory_pools else buffer
    with faults.failing("cuCtxGetCurrent", UNKNOWN), pytest.warns(CUDAWarning):
        buffer.close()
    ftcuda.Device(0).sync()
    return compile_code(SOURCE).code


def calls():
    return {name: simulation.calls(name) for name in simulation.entries()}


def attempt(operation, world):
    """Returns what the operation raised, and what it or the calls after it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            OPERATIONS[operation](world)
            error = None
        except Exception as raised:
            error = raised.with_traceback(None)
    return error, [warning.message for warning in caught if isinstance(warning.message, CUDAWarning)]


@pytest.fixture
def nothing_left_behind():
    """Instead of the one for all tests: what is left is compared here, after every attempt."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_call_fails_in_turn(operation, image):
    device = ftcuda.Device(0)
    if operation in NEED_POOLS and not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    driver = tuple(map(int, ftcuda.driver_info().version.split(".")))
    if operation in NEED_GRAPHS and not device.features.graphs:
        pytest.skip(reason="this driver profile has no graphs")
    if operation in NEED_UPDATES and driver < (12, 0):
        pytest.skip(reason="this driver profile has no updates of graphs")
    if operation in NEED_CONDITIONALS and driver < (12, 8):
        pytest.skip(reason="this driver profile has no conditional nodes with several bodies")
    if operation in NEED_TENSOR_MAPS and not device.features.tensor_maps:
        pytest.skip(reason="this driver profile has no tensor maps")

    def run(plan=None):
        """One attempt: what it made of itself, and what is left after it."""
        world = World(image)
        seen = calls()
        if plan is None:
            error, warned = attempt(operation, world)
            made = {name: count - seen[name] for name, count in calls().items() if count != seen[name]}
            again = None
        else:
            with faults.failing(plan[0], UNKNOWN, nth=plan[1]) as fault:
                error, warned = attempt(operation, world)
                hit = fault.hits
            made = {plan[0]: hit}
            again, later = attempt(operation, world)
            warned += later
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            world.close()
        warned += [warning.message for warning in caught]
        if live_handles() != expected:
            settle()
        return SimpleNamespace(error=error, again=again, warned=warned, calls=made, live=live_handles())

    expected = {}
    run()
    normal = run()
    assert normal.error is None and not normal.warned
    failed, expected = 0, normal.live
    for entry, count in normal.calls.items():
        if entry in NOT_FAILED:
            continue
        for nth in range(1, count + 1):
            case = f"{operation}: {entry}, call {nth}"
            result = run((entry, nth))
            assert result.calls[entry] == 1, f"{case}: was not made"
            failed += 1
            leaked = {kind: result.live[kind] - expected[kind] for kind in expected}
            expected = result.live
            if leaked["event"] > 0:  # idle ones, kept for reuse: the same again makes no more, once there are enough
                lives = [result.live, *(run((entry, nth)).live for _ in range(5))]
                leaked["event"] = min(after["event"] - before["event"] for before, after in pairwise(lives))
                expected = lives[-1]
            leaked["event"] = max(leaked["event"], 0)  # an idle one is destroyed where nobody could say if a capture has it
            if entry in DESTROYING:
                told = getattr(result.error, "entry_point", "") == entry
                told = told or any(entry in str(warning) for warning in result.warned)
                assert told, f"{case}: nobody said so: {result}"
                assert all(count in (0, 1) for count in leaked.values()), f"{case}: {leaked}"
            else:
                told = isinstance(result.error, CUDAError) and result.error.entry_point == entry
                told = told or any(entry in str(warning) for warning in result.warned)
                assert told, f"{case}: raised {result.error!r}, warned {result.warned}"
                assert not any(leaked.values()), f"{case}: leaked {leaked}"
            assert result.again is None or isinstance(result.again, ClosedError), f"{case}: afterwards {result.again!r}"
    print(f"{operation}: {failed} calls failed in turn")
    assert simulation.violations() == []
