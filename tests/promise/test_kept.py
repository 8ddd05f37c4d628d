"""What the core keeps of Python's, line by line of docs/design/collector.md: each is let go of, with all that it can reach."""

import asyncio
import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import Buffer, LaunchConfig, LegacyPinnedMemoryResource, MemoryResource, StridedMemoryView, launch
from ftcuda.memory import hooks, wait_for_deallocations
from tests.promise.test_collector import Cycle

ONE = LaunchConfig(grid=1, block=1)
pytestmark = pytest.mark.thread_unsafe(reason="another thread's call may be the one that lets go, a moment later")


class Kept:
    """What something keeps; refers to what keeps it, if it is told to."""


class Own(MemoryResource):
    """A resource that is part of what it gives out, and refers to it."""

    is_device_accessible = is_host_accessible = True
    device_id = -1

    def __init__(self, memory):
        self.memory, self.kept = memory, Kept()

    def allocate(self, size, *, stream=None):
        self.buffer = Buffer.from_handle(self.memory.handle, size, mr=self, stream=stream)
        return self.buffer

    def deallocate(self, ptr, size, *, stream):
        self.given_back = size


def interface_of(memory, kept):
    return SimpleNamespace(__cuda_array_interface__=memory.__cuda_array_interface__, memory=memory, kept=kept)


def keep_owner(device, code, memory, kept):
    kept.buffer = Buffer.from_handle(memory.handle, 64, owner=kept)


def keep_resource(device, code, memory, kept):
    resource = Own(memory)
    resource.kept = kept
    kept.buffer = resource.allocate(64)


def keep_array(device, code, memory, kept):
    kept.array = interface_of(memory, kept)
    stream = device.create_stream()
    launch(stream, ONE, code.get_kernel("store"), kept.array, 1)
    stream.sync()
    stream.close()


def keep_buffer(device, code, memory, kept):
    keep_owner(device, code, memory, kept)
    stream = device.create_stream()
    kept.buffer.fill(1, stream=stream)
    stream.sync()
    stream.close()


def keep_bound(device, code, memory, kept):
    bound = code.get_kernel("store").bind(ONE, StridedMemoryView(interface_of(memory, kept), -1), 1)
    kept.bound = bound
    bound.set(0, memory)


def keep_tensor(device, code, memory, kept):
    if not device.features.tensor_maps:
        pytest.skip(reason="this device has no tensor maps")
    tensor = StridedMemoryView(interface_of(device.allocate(1024, stream=device.default_stream), kept), -1)
    other = StridedMemoryView.from_buffer(device.allocate(1024, stream=device.default_stream), (1024,), dtype="i1")
    kept.map = tensor.as_tensor_map((64,))
    kept.map.replace_address(other)


def keep_stream_owner(device, code, memory, kept):
    kept.stream = device.create_stream()
    kept.__cuda_stream__ = lambda handle=kept.stream.handle: (0, handle)
    wrapped = device.create_stream(kept)
    buffer = device.allocate(64, stream=wrapped)
    buffer.fill(1, stream=wrapped)
    buffer.close()


def keep_call(device, code, memory, kept):
    resource = Own(memory)
    resource.kept = kept
    Cycle(resource.allocate(64), kept)


def keep_announcement(device, code, memory, kept):
    class Told(LegacyPinnedMemoryResource):
        pass

    resource = Told()
    resource.kept = kept
    with hooks.on_free(lambda allocation: None):
        Cycle(resource.allocate(64), kept)
        gc.collect()
        wait_for_deallocations()


def keep_task(device, code, memory, kept):
    stream = device.create_stream()

    async def owner():
        held = kept  # noqa: F841
        section = stream.exclusive()
        section.__enter__()
        raise KeyError("inside")

    async def run():
        task = asyncio.create_task(owner())
        await asyncio.wait([task])
        task.exception()

    asyncio.run(run())
    with pytest.raises(ftcuda.SectionAbandonedError):
        stream.record()
    stream.close()


@pytest.mark.parametrize(
    "keep",
    [keep_owner, keep_resource, keep_array, keep_buffer, keep_bound, keep_tensor, keep_stream_owner, keep_call,
     keep_announcement, keep_task],
)  # fmt: skip
def test_what_the_core_keeps_is_let_go_of(device, code, pinned, keep):
    """Mutant: a reference of the core's that nothing ends, or that keeps what would end it."""
    memory, _ = pinned(np.zeros(64, np.uint8))
    kept = Kept()
    gone = weakref.ref(kept)
    keep(device, code, memory, kept)
    del kept
    for _ in range(3):  # what is let go of may have been the last thing that kept another one
        device.sync()
        gc.collect()
        wait_for_deallocations()
    assert gone() is None
