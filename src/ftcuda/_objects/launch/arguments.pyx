"""Packing of kernel arguments by the kernel's own parameter layout.

Whatever does not fit is refused before anything is launched: the driver reads one slot for each declared parameter and
checks nothing.
"""

from ctypes import Structure, Union

import numpy as np

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.complex cimport PyComplex_CheckExact, PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from libc.math cimport INFINITY, isinf, ldexpf
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cimport core.memory.buffer as buffers
from core.code.kernel cimport ArgumentSlot, ParameterKind
from core.device.device cimport Context
from core.launch.arguments cimport Argument
from ftcuda._objects.arrays.dlpack cimport CPU, CUDA
from ftcuda._objects.arrays.imports cimport is_masked, located, view_or_none
from ftcuda._objects.arrays.view cimport StridedMemoryView
from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.launch.tensor_map cimport MAP_BYTES, TensorMapDescriptor
from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.stream.stream cimport Stream

from ftcuda._objects.arrays.elements import is_foreign, is_foreign_type
from ftcuda._objects.launch.graph_scratch import GraphScratch
from ftcuda._objects.launch.parameter import PARAMETER_BELONGS, Parameter
from ftcuda._objects.support.handles import handle_of

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    unsigned long long PyLong_AsUnsignedLongLong(object number) except? 0xffffffffffffffff

cdef enum:
    PAGEABLE_MEMORY_ACCESS = 88    # CUdevice_attribute

KIND_NAMES = {
    ParameterKind.unknown: "a value",
    ParameterKind.integer: "an integer",
    ParameterKind.float32: "a float32",
    ParameterKind.float64: "a float64",
    ParameterKind.bytes: "a structure",
}


cdef str describe(KernelHandle kernel, Py_ssize_t index):
    cdef ArgumentSlot slot = kernel._slots[index]
    return f"argument {index} of {kernel}, {KIND_NAMES[slot.kind]} of {slot.size} bytes,"


cdef int wrong_count(KernelHandle kernel, Py_ssize_t given) except -1:
    kernel.require_layout()
    raise TypeError(f"{kernel} takes {kernel._slot_count} arguments, {given} were given")


cdef int wrong_device(KernelHandle kernel, Py_ssize_t index, int device, int wanted) except -1:
    raise ValueError(f"{describe(kernel, index)} is on device {device}, and the stream on device {wanted}")


cdef int narrowed(KernelHandle kernel, Py_ssize_t index, double value, float* narrow) except -1:
    """Rounds to the nearest float, as C does; but what is finite stays so."""
    narrow[0] = <float>value
    if isinf(narrow[0]) and not isinf(value):
        raise OverflowError(f"{describe(kernel, index)} cannot hold {value}, which as a float32 is infinite")
    return 0


cdef object numbered(tuple values):
    """The arguments of a launch, each with a name for messages."""
    return [(f"argument {index}", value) for index, value in enumerate(values)]


cdef list closable(object named):
    """What may be closed among such pairs of a name and an argument: buffers, also behind views and tensor maps."""
    cdef char[MAP_BYTES] unread
    found = []
    for name, value in named:
        if isinstance(value, TensorMapDescriptor):
            value = (<TensorMapDescriptor>value).read(unread)
        if isinstance(value, StridedMemoryView):
            value = (<ViewHandle>value)._buffer
        if isinstance(value, Buffer):
            found.append((name, value))
    return found


cdef int store_float(KernelHandle kernel, Py_ssize_t index, double value, char* target) except -1:
    cdef ArgumentSlot slot = kernel._slots[index]
    cdef float narrow
    if slot.kind == ParameterKind.float32 or slot.kind == ParameterKind.unknown and slot.size == 4:
        narrowed(kernel, index, value, &narrow)
        memcpy(target, &narrow, 4)
    elif slot.kind == ParameterKind.float64 or slot.kind == ParameterKind.unknown and slot.size == 8:
        memcpy(target, &value, 8)
    else:
        raise TypeError(
            f"{describe(kernel, index)} cannot be a Python float{'; give numpy.float16' if slot.size == 2 else ''}"
        )
    return 0


cdef int store_rounded(KernelHandle kernel, Py_ssize_t index, object value, char* target) except -1:
    """An integer for a floating-point parameter: rounded once, to the nearest, as C does."""
    cdef ArgumentSlot slot = kernel._slots[index]
    cdef float narrow
    cdef double wide
    if slot.kind == ParameterKind.float32:
        narrow = nearest_float(value)
        if isinf(narrow):
            raise OverflowError(f"{describe(kernel, index)} cannot hold {value}")
        memcpy(target, &narrow, 4)
        return 0
    try:
        wide = <double>value
    except OverflowError:
        raise OverflowError(f"{describe(kernel, index)} cannot hold {value}") from None
    memcpy(target, &wide, 8)
    return 0


cdef float nearest_float(object value) except? -1:
    """By way of 64 bits, the lowest of which is set if any below them is: so a tie is one only if it is exact."""
    cdef int64_t top
    magnitude = abs(value)
    surplus = max(magnitude.bit_length() - 62, 0)
    if surplus > 256:
        return <float>INFINITY
    shifted = magnitude >> surplus
    top = shifted | (shifted << surplus != magnitude)
    return ldexpf(<float>(-top if value < 0 else top), surplus)


cdef int store_integer(KernelHandle kernel, Py_ssize_t index, object value, char* target) except -1:
    cdef ArgumentSlot slot = kernel._slots[index]
    cdef int overflow = 0
    cdef int64_t signed_value
    cdef uint64_t bits
    if slot.kind == ParameterKind.float32 or slot.kind == ParameterKind.float64:
        return store_rounded(kernel, index, value, target)
    if slot.kind == ParameterKind.bytes or slot.size not in (1, 2, 4, 8):
        raise TypeError(
            f"{describe(kernel, index)} cannot be a Python int; give bytes, a numpy scalar or a ctypes structure of "
            "that size"
        )
    signed_value = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow == 0:
        bits = <uint64_t>signed_value
        if slot.size < 8:
            if signed_value < -(<int64_t>1 << (8 * slot.size - 1)) or signed_value >= (<int64_t>1 << (8 * slot.size)):
                overflow = 1
    elif overflow > 0 and slot.size == 8 and value < 2**64:
        bits = PyLong_AsUnsignedLongLong(value)
        overflow = 0
    if overflow != 0:
        raise OverflowError(f"{describe(kernel, index)} cannot hold {value}")
    memcpy(target, &bits, slot.size)  # little-endian, as every host that CUDA runs on
    return 0


cdef int store_complex(KernelHandle kernel, Py_ssize_t index, object value, char* target) except -1:
    cdef ArgumentSlot slot = kernel._slots[index]
    cdef double[2] wide = [PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)]
    cdef float[2] narrow
    if slot.kind != ParameterKind.bytes and slot.kind != ParameterKind.unknown or slot.size not in (8, 16):
        raise TypeError(f"{describe(kernel, index)} cannot be a Python complex, which has 8 or 16 bytes")
    if slot.size == 8:
        narrowed(kernel, index, wide[0], &narrow[0])
        narrowed(kernel, index, wide[1], &narrow[1])
        memcpy(target, narrow, 8)
    else:
        memcpy(target, wide, 16)
    return 0


cdef int store_bool(KernelHandle kernel, Py_ssize_t index, object value, char* target) except -1:
    cdef ArgumentSlot slot = kernel._slots[index]
    if slot.size == 8 and slot.kind != ParameterKind.float64:
        raise TypeError(f"{describe(kernel, index)} cannot be a bool, which would be the address 0 or 1; give an int")
    return store_integer(kernel, index, int(value), target)


cdef bint is_kind(const char* format, ParameterKind kind) noexcept:
    """Whether the one item of a scalar's buffer format may stand for a parameter of `kind`."""
    if kind == ParameterKind.bytes or kind == ParameterKind.unknown or format == NULL:
        return True
    while format[0] in b"@=<^":
        format += 1
    if format[0] == 0 or format[1] != 0:
        return False
    if kind == ParameterKind.integer:
        return format[0] in b"?bBhHiIlLqQnNcP"
    return format[0] == (b"f"[0] if kind == ParameterKind.float32 else b"d"[0])


cdef bint has(const char* format, const char* either) noexcept:
    """Whether one of two characters stands in a buffer format, beside the names of fields, which are between colons."""
    cdef bint in_name = False
    if format == NULL:
        return False
    while format[0] != 0:
        if format[0] == b":"[0]:
            in_name = not in_name
        elif not in_name and (format[0] == either[0] or format[0] == either[1]):
            return True
        format += 1
    return False


cdef bint hides_foreign_order(object value, Py_buffer* view):
    """Whether a number in a union of ctypes is of the other byte order: its format says bytes, also within a structure.
    """
    if view.format == NULL or view.len == 1 or view.format[0] not in b"BT":
        return False
    return isinstance(value, (Structure, Union)) and is_foreign_type(type(value))


cdef int check_scalar(KernelHandle kernel, Py_ssize_t index, object value, Py_buffer* view) except -1:
    """Refuses what is no value of the parameter's size and kind as the device would read it."""
    cdef ArgumentSlot slot = kernel._slots[index]
    name = type(value).__name__
    if view.ndim != 0:
        raise TypeError(f"{describe(kernel, index)} cannot be {name}; give its bytes, or an int")
    if view.len != slot.size:
        raise ValueError(f"{describe(kernel, index)} cannot be {name} of {view.len} bytes")
    if slot.size == 8 and slot.kind != ParameterKind.float64 and isinstance(value, (np.ndarray, memoryview)):
        raise TypeError(
            f"{describe(kernel, index)} cannot be {name} without dimensions, which may mean its number or its memory; "
            "give value[()] for the number, or value.reshape(1) for the memory"
        )
    if has(view.format, b">!") or hides_foreign_order(value, view):
        raise TypeError(f"{describe(kernel, index)} cannot be {name} of the other byte order; convert it first")
    if has(view.format, b"OO") or isinstance(value, str) or is_masked(value) or not is_kind(view.format, slot.kind):
        raise TypeError(f"{describe(kernel, index)} cannot be {name}")
    return 0


cdef int store_scalar(KernelHandle kernel, Py_ssize_t index, object value, char* target) except -1:
    """A numpy or ctypes scalar or structure: one item of exactly the parameter's size. Or bytes. 1 for an array: not
    stored.
    """
    cdef ArgumentSlot slot = kernel._slots[index]
    cdef Py_buffer view
    try:
        PyObject_GetBuffer(value, &view, PyBUF_FORMAT | PyBUF_ND | PyBUF_STRIDES)
    except (TypeError, BufferError):  # of a device array that has the buffer protocol only to refuse it, as CuPy's
        return 1
    try:
        if isinstance(value, bytes):
            if view.len != slot.size:
                raise ValueError(f"{describe(kernel, index)} cannot be {type(value).__name__} of {view.len} bytes")
        elif view.ndim != 0 and not isinstance(value,
                                               np.generic):  # scalars without a format are exported as their bytes
            return 1
        else:
            check_scalar(kernel, index, value, &view)
        memcpy(target, view.buf, slot.size)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef ViewHandle pack_view(KernelHandle kernel, Py_ssize_t index, ViewHandle view, object value, Context* context,
                          char* block, Argument* argument):
    """Packs the address of `value`'s memory, if it is not the host's alone. Returns the view with what memory it is."""
    cdef ArgumentSlot slot = kernel._slots[index]
    if slot.size != 8 or slot.kind == ParameterKind.float64:
        raise TypeError(f"{describe(kernel, index)} cannot be an array, whose address is an integer of 8 bytes")
    view = located(view)
    if view._device_type == CPU and not context.device().attribute(PAGEABLE_MEMORY_ACCESS):
        raise TypeError(
            f"{describe(kernel, index)} cannot be {type(value).__name__}: it is pageable host memory, which the "
            "device does not reach; copy it to a Buffer and pass that"
        )
    if view._dtype is not None and is_foreign(view._dtype):
        name = f"{type(value).__name__} of the other byte order"
        raise TypeError(f"{describe(kernel, index)} cannot be {name}; copy it with astype first")
    memcpy(block + slot.offset, &view._pointer, 8)
    argument.buffer = view.core_buffer()
    argument.foreign = argument.buffer == NULL or argument.buffer.holder() != NULL
    if view._device_type == CUDA:
        argument.device = as_device(view.device_id).device_id
    return view


cdef int check_map(KernelHandle kernel, Py_ssize_t index) except -1:
    cdef ArgumentSlot slot = kernel._slots[index]
    if slot.size != MAP_BYTES or slot.kind != ParameterKind.bytes and slot.kind != ParameterKind.unknown:
        raise TypeError(f"{describe(kernel, index)} cannot be a tensor map, which has {MAP_BYTES} bytes")
    return 0


cdef bint is_array(object value):
    return PyObject_CheckBuffer(value) or hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")


cdef ViewHandle view_of(object value, Stream stream):
    """The view of an array; None for what is none. `stream` is put in the order of the array's producer. Where the
    stream is not known yet, only a view that was made for it is an array.
    """
    if stream is not None:
        return view_or_none(value, stream)
    if not isinstance(value, StridedMemoryView):
        return None
    (<ViewHandle>value).require_made()
    return value


cdef ViewHandle pack_reference(KernelHandle kernel, Py_ssize_t index, object value, Stream stream, char* block,
                               Argument* argument):
    """Packs what `pack` does not: an array, a tensor map, or a handle of another library.

    `stream` is None where it is not known yet. Returns the view of an array, for the launch to keep.
    """
    cdef ViewHandle view
    cdef Context* context
    cdef ArgumentSlot slot = kernel._slots[index]
    argument[0] = Argument()
    if type(value) is TensorMapDescriptor:
        check_map(kernel, index)
        argument.map = (<TensorMapDescriptor>value)._map  # each launch reads it, and the memory that it is of then
        argument.device = (<TensorMapDescriptor>value)._device.device_id
        return None
    view = view_of(value, stream)
    if view is not None:
        context = as_device(None).context_of() if stream is None else &stream.on(NULL).context()
        return pack_view(kernel, index, view, value, context, block, argument)
    if (stream is not None or not is_array(value)) and (handle := handle_of(value)) is not None:
        if slot.size != 8 or slot.kind == ParameterKind.float64:
            raise TypeError(
                f"{describe(kernel, index)} cannot be {type(value).__name__}, a handle, which is an integer of 8 bytes"
            )
        store_integer(kernel, index, handle, block + slot.offset)
        return None
    if type(value) is Parameter:
        raise TypeError(f"{describe(kernel, index)} cannot be Parameter here; {PARAMETER_BELONGS}")
    if type(value) is GraphScratch:
        raise TypeError(f"{describe(kernel, index)} cannot be GraphScratch here; it is for launch() with the builder "
                        "that made it as the stream")
    where, arrays = "", "an array with __dlpack__, __cuda_array_interface__ or the buffer protocol"
    if stream is None:
        where = " in a bound launch"
        arrays = "a StridedMemoryView (of another library's array: made for the stream of the launches)"
    raise TypeError(
        f"{describe(kernel, index)} cannot be {type(value).__name__}{where}; give a Buffer, int, float, bool, complex, "
        f"bytes, a numpy scalar, a ctypes value, a handle of cuda-bindings, or {arrays}"
    )


cdef object unpack(KernelHandle kernel, Py_ssize_t index, object value, const char* block):
    """`value` as its parameter holds it: rounded to the parameter's float, and a copy of what could change."""
    cdef ArgumentSlot slot = kernel._slots[index]
    cdef const char* source = block + slot.offset
    if isinstance(value, int | float):
        if slot.kind == ParameterKind.integer or slot.kind == ParameterKind.unknown and isinstance(value, int):
            return value
        return (<const float*>source)[0] if slot.size == 4 else (<const double*>source)[0]
    if isinstance(value, complex):
        if slot.size == 8:
            return complex((<const float*>source)[0], (<const float*>source)[1])
        return complex((<const double*>source)[0], (<const double*>source)[1])
    if isinstance(value, Buffer | StridedMemoryView | TensorMapDescriptor) or not PyObject_CheckBuffer(value):
        return value
    held = PyBytes_FromStringAndSize(source, slot.size)
    if isinstance(value, np.generic | np.ndarray):
        return np.frombuffer(held, value.dtype)[0]
    return type(value).from_buffer_copy(held) if hasattr(type(value), "from_buffer_copy") else held


cdef int pack(KernelHandle kernel, Py_ssize_t index, object value, char* block, buffers.Buffer** buffer) except -1:
    """Packs one argument to its slot of `block`. A Buffer is also returned in `buffer`, else null.

    1 for what `pack_reference` packs.
    """
    cdef ArgumentSlot slot = kernel._slots[index]
    cdef char* target = block + slot.offset
    cdef uint64_t pointer
    buffer[0] = NULL
    if type(value) is Buffer or isinstance(value, Buffer):
        if slot.size != 8 or slot.kind == ParameterKind.float64:
            raise TypeError(f"{describe(kernel, index)} cannot be a Buffer, whose address is an integer of 8 bytes")
        buffer[0] = (<Buffer>value)._buffer
        pointer = buffer[0].pointer()
        memcpy(target, &pointer, 8)
    elif PyLong_CheckExact(value):
        store_integer(kernel, index, value, target)
    elif PyFloat_CheckExact(value):
        store_float(kernel, index, PyFloat_AS_DOUBLE(value), target)
    elif isinstance(value, bool):
        store_bool(kernel, index, value, target)
    elif PyComplex_CheckExact(value):
        store_complex(kernel, index, value, target)
    elif type(value) is StridedMemoryView or type(value) is TensorMapDescriptor:
        return 1
    elif PyObject_CheckBuffer(value):
        return store_scalar(kernel, index, value, target)
    elif isinstance(value, int):
        store_integer(kernel, index, int(value), target)
    elif isinstance(value, float):
        store_float(kernel, index, <double>value, target)
    else:
        return 1
    return 0
