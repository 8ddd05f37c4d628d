"""What cuda.core has, and programs that are ported rely on: its words for what is wrong, its defaults, its names."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from ftcuda import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    Kernel,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    NotSupportedError,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Program,
    ProgramOptions,
    Stream,
    StridedMemoryView,
    launch,
)


class Borrowed(MemoryResource):
    """Memory of another buffer, from a resource that knows no device, as cuda.core's of host memory."""

    def __init__(self, buffer, device_reaches, host_reaches):
        self.buffer, self.device_reaches, self.host_reaches = buffer, device_reaches, host_reaches

    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(self.buffer.handle, size, mr=self)

    def deallocate(self, ptr, size, *, stream):
        pass

    @property
    def is_device_accessible(self):
        return self.device_reaches

    @property
    def is_host_accessible(self):
        return self.host_reaches

    @property
    def device_id(self):
        raise RuntimeError("not bound to a device")


@pytest.fixture
def pinned_bytes():
    with LegacyPinnedMemoryResource().allocate(64) as memory:
        yield memory


def test_a_resource_that_raises_for_its_device(pinned_bytes):
    with Borrowed(pinned_bytes, False, True).allocate(64) as buffer:
        np.asarray(buffer)[:] = range(64)
        assert buffer.__dlpack_device__() == (1, 0) and bytes(np.from_dlpack(buffer)) == bytes(range(64))
        with pytest.raises(RuntimeError, match="not bound to a device"):
            _ = buffer.device_id  # who asks is told
    with Borrowed(pinned_bytes, True, True).allocate(64) as buffer:
        assert buffer.__dlpack_device__() == (3, 0)
        assert StridedMemoryView(buffer, -1).device_id == 0
    with Borrowed(pinned_bytes, True, False).allocate(64) as buffer, pytest.raises(RuntimeError, match="not bound"):
        buffer.__dlpack_device__()


def test_memory_that_nobody_reaches(pinned_bytes, stream):
    with Borrowed(pinned_bytes, False, False).allocate(64) as buffer:
        for use in (
            buffer.__dlpack_device__,
            buffer.__dlpack__,
            lambda: StridedMemoryView(buffer, -1),
            lambda: buffer.copy_to(np.zeros(64, "u1"), stream=stream),
        ):
            with pytest.raises(BufferError, match="neither the host nor a device"):
                use()


def test_managed_memory_behind_a_resource_in_python(stream):
    """The driver knows that it migrates. Mutant: DLPack says (3, 0), which is pinned memory."""
    memory = ManagedMemoryResource().allocate(64, stream=stream)
    stream.sync()
    with Borrowed(memory, True, True).allocate(64) as buffer:
        assert buffer.is_managed

    class OnDevice(Borrowed):
        device_id = 0

    with OnDevice(memory, True, True).allocate(64) as buffer:
        assert buffer.is_managed and buffer.__dlpack_device__() == (13, 0)
    memory.close()


def test_the_device_of_host_memory(pinned_bytes):
    assert StridedMemoryView.from_array_interface(np.zeros(3)).device_id == Device().device_id == 0
    assert StridedMemoryView.from_dlpack(np.zeros(3), -1).device_id == -1
    assert StridedMemoryView.from_any_interface(np.zeros(3), -1).device_id == -1
    assert StridedMemoryView.from_dlpack(pinned_bytes, -1).device_id == 0
    assert Buffer.from_handle(pinned_bytes.handle, 64).device_id == 0


@pytest.mark.parametrize("value", [5, [5], ("a", "b", "c"), [("a", 1)]], ids=repr)
def test_macros_are_checked_when_they_are_used(value):
    options = ProgramOptions(define_macro=value)
    for use in (lambda: options.as_bytes("nvrtc"), lambda: Program("", "c++", options)):
        with pytest.raises(RuntimeError, match="option define_macro must"):
            use()


@pytest.mark.parametrize("nonsense", ["text", 3, None, object()], ids=["text", "int", "None", "object"])
def test_waiting_for_nonsense(stream, nonsense):
    with pytest.raises(ValueError, match="must be an Event, a Stream or have __cuda_stream__"):
        stream.wait(nonsense)


def interface(**changes):
    found = {"shape": (2, 3), "typestr": "<f4", "data": (0, False), "version": 3, "strides": None, **changes}
    return SimpleNamespace(__cuda_array_interface__=found)


def test_address_zero():
    view = StridedMemoryView.from_cuda_array_interface(interface(strides=(0, 0)), -1)
    assert (view.ptr, view.shape, view.strides) == (0, (2, 3), (0, 0))
    for strides in (None, (12, 4), (0, 4)):
        with pytest.raises(BufferError, match="the pointer is 0"):
            StridedMemoryView.from_cuda_array_interface(interface(strides=strides), -1)


@pytest.mark.parametrize("descr", [[("", "<i4")], [("x", "<f8")], [("x", "<f4"), ("y", "<f4")], "<f4", []], ids=repr)
def test_a_descr_that_contradicts_its_typestr(descr):
    with pytest.raises(BufferError, match="descr"):
        StridedMemoryView.from_cuda_array_interface(interface(strides=(0, 0), descr=descr), -1)


def test_a_descr_that_does_not():
    for typestr, descr, dtype in (
        ("<f4", [("", "<f4")], "f4"),
        ("<f4", None, "f4"),
        ("|V4", [("x", "<u2"), ("y", "<u2")], [("x", "<u2"), ("y", "<u2")]),
    ):
        made = interface(strides=(0, 0), typestr=typestr, descr=descr)
        assert StridedMemoryView.from_cuda_array_interface(made, -1).dtype == np.dtype(dtype)


class Elsewhere:
    """A producer on a device that is none of CUDA's; counts who asks it for its tensor."""

    asked = 0

    def __init__(self, *device):
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        self.asked += 1
        raise AssertionError("asked for a tensor that nobody can take")


@pytest.mark.parametrize("where", [(10, 0), (2, -1), (2, 4096), (13, -1), (True, 0), (2, True), (2, 0.0)], ids=repr)
def test_an_unsupported_device_is_refused_first(stream, where):
    producer = Elsewhere(*where)
    with pytest.raises(BufferError, match="device|DLPack"):
        StridedMemoryView.from_dlpack(producer, stream)
    assert producer.asked == 0


def test_other_processes(device, stream):
    buffer = device.allocate(64, stream=stream)
    event = device.create_event(EventOptions(ipc_enabled=False))
    assert event.is_ipc_enabled is buffer.is_mapped is False
    for resource in (device.memory_resource, LegacyPinnedMemoryResource(), PinnedMemoryResource({"ipc_enabled": False})):
        assert resource.is_ipc_enabled is resource.is_mapped is False
    asks = [
        lambda: device.create_event(EventOptions(ipc_enabled=True)),
        lambda: stream.record(options={"ipc_enabled": True}),
        lambda: PinnedMemoryResource(PinnedMemoryResourceOptions(ipc_enabled=True)),
    ]
    if device.features.memory_pools:
        asks.append(lambda: DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True)))
    for ask in asks:
        with pytest.raises(NotSupportedError, match="ftcuda has no IPC"):
            ask()
    buffer.close(stream)


class CUhandle:
    """As the handles of cuda-bindings, which have no ``__index__``."""

    def __init__(self, value):
        self.value = value

    def __int__(self):
        return self.value


CUhandle.__module__ = "cuda.bindings.driver"


@pytest.mark.parametrize("kind", [int, CUhandle, np.uint64, ctypes.c_void_p], ids=lambda kind: kind.__name__)
def test_handles_of_both_kinds(kind, stream, code, saxpy, pinned_bytes):
    places = {
        "Stream.from_handle": lambda handle: Stream.from_handle(handle(stream.handle)) == stream,
        "Buffer.from_handle": lambda handle: Buffer.from_handle(handle(pinned_bytes.handle), 64) == pinned_bytes,
        "Kernel.from_handle": lambda handle: Kernel.from_handle(handle(saxpy.handle), code) == saxpy,
        "a view's stream": lambda handle: StridedMemoryView(pinned_bytes, handle(stream.handle)).size == 64,
        "a consumer's stream": lambda handle: pinned_bytes.__dlpack__(stream=handle(stream.handle)) is not None,
        "__cuda_stream__": lambda handle: stream.wait(Named(handle(stream.handle))) is None,
    }
    for name, works in places.items():
        if kind is ctypes.c_void_p:  # no handle: it may be a pointer to one
            with pytest.raises(TypeError):
                works(kind)
        else:
            assert works(kind), name
    config = LaunchConfig(grid=1, block=1)
    launch(stream, config, saxpy, 0, 0.0, kind(pinned_bytes.handle), kind(pinned_bytes.handle))
    stream.sync()


class Named:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle
