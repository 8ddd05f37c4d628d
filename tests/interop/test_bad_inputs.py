"""Malformed interfaces, capsules and views: each refused with a clear error, and nothing lost."""

import ctypes
import sys
import weakref

import numpy as np
import pytest

from ftcuda import LaunchConfig, StridedMemoryView, launch
from ftcuda._objects.arrays.array_interface import parse

GOOD = {"shape": (4, 3), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None}
MISSING = object()

INTERFACES = {
    "not a dict": (None, "must be a dict"),
    "no shape": ({"shape": MISSING}, "no 'shape'"),
    "no typestr": ({"typestr": MISSING}, "no 'typestr'"),
    "no version": ({"version": MISSING}, "no 'version'"),
    "no data": ({"data": MISSING}, "pointer, read-only"),
    "mask": ({"mask": np.ones(3)}, "mask"),
    "version 4": ({"version": 4}, "version 4"),
    "version -1": ({"version": -1}, "version -1"),
    "version text": ({"version": "3"}, "version '3'"),
    "version bool": ({"version": True}, "version True"),
    "shape int": ({"shape": 4}, "tuple of ints"),
    "shape text": ({"shape": "4"}, "tuple of ints"),
    "shape float": ({"shape": (4.0,)}, "tuple of ints"),
    "shape bool": ({"shape": (True, 3)}, "tuple of ints"),
    "shape negative": ({"shape": (4, -3)}, "negative"),
    "shape too long": ({"shape": (1,) * 65}, "65 dimensions"),
    "shape too large": ({"shape": (2**63,)}, "64 bits"),
    "typestr none": ({"typestr": None}, "must be a str"),
    "typestr bytes": ({"typestr": b"<f4"}, "must be a str"),
    "typestr unknown": ({"typestr": "<q9"}, "no element type"),
    "typestr empty": ({"typestr": ""}, "mean nothing|no element type"),
    "typestr object": ({"typestr": "|O"}, "mean nothing"),
    "typestr text": ({"typestr": "<U4"}, "mean nothing"),
    "typestr bytes text": ({"typestr": "|S4"}, "mean nothing"),
    "typestr date": ({"typestr": "<M8[s]"}, "mean nothing"),
    "typestr void 0": ({"typestr": "|V0"}, "mean nothing"),
    "typestr byte order": ({"typestr": ">f4"}, "byte order"),
    "descr": ({"typestr": "|V8", "descr": [("x", "<q9")]}, "no element type"),
    "descr of two fields": ({"descr": [("x", "<u2"), ("y", "<u2")]}, "contradicts"),
    "descr of another type": ({"descr": [("x", "<i4")]}, "contradicts"),
    "read-only text": ({"data": (4096, "no")}, "must be a bool"),
    "read-only number": ({"data": (4096, 2)}, "must be a bool"),
    "read-only none": ({"data": (4096, None)}, "must be a bool"),
    "data int": ({"data": 4096}, "pointer, read-only"),
    "data one": ({"data": (4096,)}, "pointer, read-only"),
    "data three": ({"data": (4096, False, 0)}, "pointer, read-only"),
    "data list": ({"data": [4096, False]}, "pointer, read-only"),
    "data none": ({"data": (None, False)}, "pointer, read-only"),
    "data float": ({"data": (4096.0, False)}, "pointer, read-only"),
    "data negative": ({"data": (-1, False)}, "no address"),
    "data too large": ({"data": (2**64, False)}, "no address"),
    "data null": ({"data": (0, False)}, "pointer is 0"),
    "strides int": ({"strides": 4}, "tuple of ints"),
    "strides float": ({"strides": (12.0, 4.0)}, "tuple of ints"),
    "strides short": ({"strides": (4,)}, "1 strides for 2"),
    "strides long": ({"strides": (24, 12, 4)}, "3 strides for 2"),
    "strides uneven": ({"strides": (13, 4)}, "multiples"),
    "strides too large": ({"strides": (2**63, 4)}, "64 bits"),
    "version 2": ({"version": 2}, "version 2, and a view needs version 3"),
    "elements": ({"shape": (2**32, 2**32)}, "63 bits"),
    "bytes": ({"shape": (2**62 + 16,)}, "63 bits"),
    "bytes of none": ({"shape": (0, 2**40, 2**40), "data": (0, False)}, "63 bits"),
    "itemsize": ({"shape": (1,), "typestr": f"|V{2**28}"}, "63 bits"),
    "one address": ({"shape": (2**62,), "strides": (0,)}, "63 bits"),
    "beyond": ({"shape": (3,), "strides": (2**62,)}, "outside all memory"),
    "before": ({"shape": (1026, 1), "strides": (-4, 4)}, "outside all memory"),
    "at the end": ({"shape": (4,), "data": (2**64 - 12, False)}, "outside all memory"),
    "both ways": ({"shape": (2, 2), "strides": (2**62, -(2**62)), "data": (2**62, False)}, "outside all memory"),
    "stream 0": ({"stream": 0}, "stream 0"),
    "stream negative": ({"stream": -1}, "must be a handle"),
    "stream text": ({"stream": "1"}, "must be a handle"),
    "stream bool": ({"stream": True}, "must be a handle"),
}


@pytest.mark.parametrize("name", INTERFACES)
def test_interface(name):
    change, message = INTERFACES[name]
    interface = change if change is None else {k: v for k, v in {**GOOD, **change}.items() if v is not MISSING}

    class Producer:
        __cuda_array_interface__ = interface

    producer = Producer()
    with pytest.raises(BufferError, match=message) as caught:
        StridedMemoryView.from_cuda_array_interface(producer, -1)
    assert "Producer.__cuda_array_interface__" in str(caught.value)
    gone = weakref.ref(producer)
    del producer, caught
    assert gone() is None


def test_the_good_interface_is_good():
    assert parse(GOOD, "it").pointer == 4096


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """Gives a capsule on a tensor that is changed by `change`, and counts the calls of its deleter."""

    def __init__(self, change, name=b"dltensor_versioned", device=(2, 0)):
        self.deleted = []
        self.shape = (ctypes.c_int64 * 2)(4, 3)
        self.deleter = DELETER(self.deleted.append)
        tensor = Tensor(4096, Device(*device), 2, DataType(2, 32, 1), self.shape, None, 0)
        self.managed = Managed(1, 0, None, self.deleter, 0, tensor)
        self.name, self.device = name, device
        change(self)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


def setting(path, value):
    def change(producer):
        *parents, last = path.split(".")
        target = producer
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, last, value)

    return change


def negative_shape(producer):
    producer.shape[1] = -3


def shaped(*shape):
    def change(producer):
        producer.shape[:] = shape

    return change


def strided(*strides):
    def change(producer):
        producer.managed.tensor.strides = (ctypes.c_int64 * 2)(*strides)

    return change


CAPSULES = {
    "major 2": (setting("managed.major", 2), "2.0 is not understood", 1),
    "major 0": (setting("managed.major", 0), "0.0 is not understood", 1),
    "device type": (setting("managed.tensor.device.type", 10), "device type 10", 1),
    "rank": (setting("managed.tensor.ndim", 65), "65 dimensions", 1),
    "negative rank": (setting("managed.tensor.ndim", -1), "-1 dimensions", 1),
    "lanes": (setting("managed.tensor.dtype.lanes", 4), "4 lanes", 1),
    "no lanes": (setting("managed.tensor.dtype.lanes", 0), "0 lanes", 1),
    "half a byte": (setting("managed.tensor.dtype.bits", 4), "4 bits", 1),
    "no bits": (setting("managed.tensor.dtype.bits", 0), "0 bits", 1),
    "no shape": (setting("managed.tensor.shape", None), "no shape", 1),
    "negative shape": (negative_shape, "negative", 1),
    "no data": (setting("managed.tensor.data", None), "no data", 1),
    "elements": (shaped(2**32, 2**32), "63 bits", 1),
    "bytes": (shaped(1, 2**62 + 16), "63 bits", 1),
    "bytes of none": (shaped(0, 2**62), "63 bits", 1),
    "beyond": (strided(2**62, 1), "outside all memory", 1),
    "before": (strided(-1024, 1), "outside all memory", 1),
    "offset beyond": (setting("managed.tensor.byte_offset", 2**64 - 1), "outside all memory", 1),
    "used": (setting("name", b"used_dltensor_versioned"), "must return a capsule", 0),
    "another capsule": (setting("name", b"something"), "must return a capsule", 0),
    "no device": (setting("device", None), "__dlpack_device__ must return", 0),
    "long device": (setting("device", (2, 0, 0)), "__dlpack_device__ must return", 0),
}


@pytest.mark.thread_unsafe(
    reason="ctypes of CPython 3.13 is not thread-safe: it makes types and functions without a lock"
)
@pytest.mark.parametrize("name", CAPSULES)
def test_capsule(name):
    change, message, deleted = CAPSULES[name]
    producer = Producer(change)
    with pytest.raises(BufferError, match=message):
        StridedMemoryView.from_dlpack(producer, -1)
    assert len(producer.deleted) == deleted


@pytest.mark.thread_unsafe(
    reason="ctypes of CPython 3.13 is not thread-safe: it makes types and functions without a lock"
)
def test_the_good_capsule_is_good():
    producer = Producer(lambda _: None)
    view = StridedMemoryView.from_dlpack(producer, -1)
    assert (view.ptr, view.shape, view.strides, view.dtype) == (4096, (4, 3), None, np.float32)
    assert producer.deleted == []
    del view
    assert len(producer.deleted) == 1


def test_what_is_no_capsule():
    class Wrong:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **_):
            return 7

    with pytest.raises(BufferError, match="must return a capsule"):
        StridedMemoryView.from_dlpack(Wrong(), -1)


VIEWS = {
    "too long": (((17,),), {"dtype": "f4"}, ValueError, "more than"),
    "strides beyond": (((4, 4), (8, 1)), {"dtype": "f4"}, ValueError, "more than"),
    "negative strides": (((4,), (-1,)), {"dtype": "f4"}, ValueError, "negative"),
    "strides count": (((4, 4), (4,)), {"dtype": "f4"}, BufferError, "1 strides for 2"),
    "no type": (((4,),), {}, ValueError, "dtype or itemsize"),
    "two sizes": (((4,),), {"dtype": "f4", "itemsize": 8}, ValueError, "itemsize 8"),
    "negative shape": (((-4,),), {"dtype": "f4"}, BufferError, "negative"),
    "shape": (("4",), {"dtype": "f4"}, BufferError, "tuple of ints"),
    "dtype": (((4,),), {"dtype": "nothing"}, TypeError, "nothing"),
    "itemsize": (((4,),), {"itemsize": 0}, BufferError, "mean nothing"),
    "itemsize text": (((4,),), {"itemsize": "4"}, TypeError, "itemsize must be an int, not str"),
    "itemsize float": (((4,),), {"itemsize": 4.0}, TypeError, "itemsize must be an int, not float"),
    "elements": (((2**32, 2**32),), {"dtype": "i1"}, ValueError, "more than"),
    "bytes": (((2**62 + 16,),), {"dtype": "f4"}, ValueError, "more than"),
    "one address": (((2**62,), (0,)), {"dtype": "f4"}, BufferError, "63 bits"),
    "bytes of none": (((0, 2**62, 4),), {"dtype": "f4"}, BufferError, "63 bits"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view(name, device, stream):
    arguments, keywords, error, message = VIEWS[name]
    with device.allocate(64, stream=stream) as buffer, pytest.raises(error, match=message):
        StridedMemoryView.from_buffer(buffer, *arguments, **keywords)


def test_a_view_needs_a_buffer():
    for wrong in (None, bytearray(64), 4096):
        with pytest.raises(TypeError, match="must be a Buffer"):
            StridedMemoryView.from_buffer(wrong, (4,), dtype="f4")


def test_a_view_of_host_memory_keeps_it_in_place():
    memory = bytearray(64)
    view = StridedMemoryView(memory, -1)
    assert view.exporting_obj is memory and view.device_id == -1 and not view.is_device_accessible
    with pytest.raises(BufferError):
        memory.extend(b"1234")  # it would move
    del view
    memory.extend(b"1234")


def test_a_masked_array_is_refused(interop_code, stream):
    """Its protocols say nothing of the mask."""
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    for view in (StridedMemoryView, StridedMemoryView.from_dlpack):
        with pytest.raises(BufferError, match="MaskedArray has a mask"):
            view(masked, -1)
    with pytest.raises(BufferError, match="MaskedArray has a mask"):
        StridedMemoryView.from_array_interface(masked)
    with pytest.raises(BufferError, match="MaskedArray has a mask"):
        launch(stream, LaunchConfig(grid=1, block=1), interop_code.get_kernel("scale"), masked, masked, 1.0, 1)


def test_arrays_of_the_other_byte_order_in_fields_are_refused():
    for wrong in (np.zeros(2, ">i4"), np.zeros(2, [("a", ">i4", (2,))]), np.zeros(2, [("x", [("a", ">f8")])])):
        with pytest.raises(BufferError, match="other byte order"):
            StridedMemoryView.from_array_interface(wrong)
        with pytest.raises(BufferError):
            StridedMemoryView(wrong, -1)


def test_objects_without_a_protocol(stream):
    for wrong in (object(), 7, None, [1, 2]):
        with pytest.raises((BufferError, TypeError)):
            StridedMemoryView(wrong, -1)
    with pytest.raises(BufferError, match="no __dlpack__"):
        StridedMemoryView.from_dlpack(object(), -1)
    with pytest.raises(TypeError, match="must be a Stream"):
        StridedMemoryView(np.zeros(4), "stream")


def test_arguments_that_are_no_arrays(interop_code, stream, device):
    scale = interop_code.get_kernel("scale")
    with device.allocate(64, stream=stream) as buffer:
        for wrong, message in ((object(), "cannot be object"), ([1.0], "cannot be list"), (None, "cannot be NoneType")):
            references = sys.getrefcount(wrong)
            with pytest.raises(TypeError, match=message):
                launch(stream, LaunchConfig(grid=1, block=1), scale, wrong, buffer, 1.0, 1)
            assert sys.getrefcount(wrong) == references
        view = StridedMemoryView.from_buffer(buffer, (16,), dtype="f4")
        with pytest.raises(TypeError, match="cannot be an array"):
            launch(stream, LaunchConfig(grid=1, block=1), scale, buffer, buffer, view, 1)


def test_host_memory_that_cuda_does_not_know():
    array = np.zeros(4)

    class Claims:
        __cuda_array_interface__ = array.__array_interface__ | {"version": 3}

    with pytest.raises(BufferError, match="CUDA knows no memory"):
        StridedMemoryView(Claims(), -1)


def test_copies_that_do_not_fit(device, stream):
    with device.allocate(64, stream=stream) as buffer:
        for wrong, error, message in (
            (np.zeros(8), None, None),
            (np.zeros(7), ValueError, "sizes differ"),
            (np.zeros((4, 4))[:, ::2], ValueError, "not contiguous"),
            (7, TypeError, "buffer protocol"),
        ):
            if error is None:
                buffer.copy_from(wrong, stream=stream)
                continue
            with pytest.raises(error, match=message):
                buffer.copy_from(wrong, stream=stream)
            with pytest.raises(error, match=message):
                buffer.copy_to(wrong, stream=stream)
        with pytest.raises(ValueError, match="read-only"):
            buffer.copy_to(bytes(64), stream=stream)
