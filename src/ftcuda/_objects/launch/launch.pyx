"""Launches."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject

cimport core.launch.launch as core
cimport core.memory.buffer as buffers
cimport core.stream.stream as streams
from core.code.kernel cimport ArgumentSlot
from core.completion.deferred_release cimport Retention
from core.launch.arguments cimport ANY_DEVICE, Argument, Arguments, Mapped
from core.sync.reason cimport Status
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.launch.arguments cimport closable, numbered, pack, pack_reference, wrong_count, wrong_device
from ftcuda._objects.launch.launch_config cimport LaunchConfig
from ftcuda._objects.stream.stream cimport Stream, StreamSource, as_stream, core_stream
from ftcuda._objects.support.deferred_release cimport release_done, retain
from ftcuda._objects.support.raising cimport raise_status

from ftcuda._objects.launch.graph_scratch import GraphScratch
from ftcuda._objects.launch.parameter import PARAMETER_BELONGS, Parameter

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        pass
    PyObject** PySequence_Fast_ITEMS(object sequence)
    PyTypeObject* Py_TYPE(PyObject* argument)
    bint PyObject_TypeCheck(PyObject* argument, PyTypeObject* wanted)

cdef extern from "_objects/support/fast_function.hpp" namespace "ftcuda::objects":
    ctypedef object (*FastCall)(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names)
    PyMethodDef fast_definition(const char* name, FastCall call, const char* doc)
    object make_fast_function(PyMethodDef* definition, object module)


cdef bytes LAUNCH_DOC = b"""launch(stream, config, kernel, *kernel_args)
--

Submits a kernel to a stream.

Parameters
----------
stream : Stream or object with ``__cuda_stream__``
config : LaunchConfig
kernel : Kernel
*kernel_args
    One for each parameter: Buffer, int, float, bool, complex, bytes of the exact size, a numpy scalar (structured ones
    too), a ctypes value, a handle of cuda-bindings, or an array: a `StridedMemoryView`, or an object with
    ``__dlpack__``, ``__cuda_array_interface__`` or the buffer protocol, of memory that the device reaches. A Python int
    for a float parameter becomes a float; everything else must fit in kind and size. The launch waits for the work of
    an array's producer, as its protocol says, and keeps the array until it is done.

Thread safety: atomic. All arguments are read before the submission; a buffer that another thread closes is freed after
this launch, or the launch raises `ClosedError`. Stream order: a submission.

Raises
------
TypeError, ValueError, OverflowError
    An argument does not fit its parameter; nothing was launched.
CooperativeLaunchError
    A ValueError too: the blocks of a cooperative launch do not fit on the device at once.
"""


# What fits on the stack; launches with more take memory for the call.
cdef enum:
    SMALL_BLOCK = 1024
    SMALL_COUNT = 32


# The same functions for references that the caller of `launch` holds: of a PyObject* Cython counts none, and a count of
# an object that many threads use at once costs more than the rest of a launch.
ctypedef int (*LaunchBorrowed)(PyObject* stream, PyObject* config, PyObject* kernel, PyObject* const* arguments,
                               Py_ssize_t count) except -1
ctypedef int (*PackBorrowed)(
    KernelHandle kernel, Py_ssize_t index, PyObject* argument, char* block, buffers.Buffer** buffer) except -1


def launch(stream, config, kernel, *kernel_args):
    """Until the end of this file: puts the arguments in order, and complains of those that are no arguments of
    `launch`.
    """
    return (stream, config, kernel, *kernel_args)


in_order = launch


cdef object call_launch(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names):
    cdef tuple ordered
    cdef Py_ssize_t index
    if names != NULL or count < 3:
        named = {} if names == NULL else {name: <object>arguments[count + index] for index,
                                          name in enumerate(<tuple>names)}
        ordered = in_order(*[<object>arguments[index] for index in range(count)], **named)
        return call_launch(self, PySequence_Fast_ITEMS(ordered), len(ordered), NULL)
    cdef bint is_captured = PyObject_TypeCheck(arguments[0], <PyTypeObject*>StreamSource)
    if not PyObject_TypeCheck(arguments[1], <PyTypeObject*>LaunchConfig) and not (
        is_captured and has_parameter(arguments + 1, 1)
    ):
        hint = f"; {PARAMETER_BELONGS}" if has_parameter(arguments + 1, 1) else ""
        raise TypeError(f"config must be a LaunchConfig, not {type(<object>arguments[1]).__name__}{hint}")
    if not PyObject_TypeCheck(arguments[2], <PyTypeObject*>KernelHandle):
        raise TypeError(f"kernel must be a Kernel, not {type(<object>arguments[2]).__name__}")
    if Py_TYPE(arguments[0]) == <PyTypeObject*>Stream:
        (<LaunchBorrowed>launch_in)(arguments[0], arguments[1], arguments[2], arguments + 3, count - 3)
    elif is_captured and has_parameter(arguments + 1, count - 1):
        (<StreamSource>arguments[0]).launch_named(
            <object>arguments[1], <object>arguments[2],
            tuple([<object>arguments[index] for index in range(3, count)]))
    else:
        launch_in(as_stream(<object>arguments[0]), <LaunchConfig>arguments[1], <KernelHandle>arguments[2], arguments
                  + 3,
                  count - 3)
    return None


cdef bint has_parameter(PyObject* const* arguments, Py_ssize_t count):
    cdef Py_ssize_t index
    for index in range(count):
        if type(<object>arguments[index]) is Parameter or type(<object>arguments[index]) is GraphScratch:
            return True
    return False


cdef int launch_in(Stream stream, LaunchConfig config, KernelHandle kernel, PyObject* const* arguments,
                   Py_ssize_t count) except -1:
    cdef char small_block[SMALL_BLOCK]
    cdef void* small_parameters[SMALL_COUNT]
    cdef buffers.Buffer* small_buffers[SMALL_COUNT]
    cdef Mapped small_maps[SMALL_COUNT]
    cdef char* memory
    if count != kernel._slot_count:
        wrong_count(kernel, count)
    if count <= SMALL_COUNT and kernel._block_size <= SMALL_BLOCK:
        return submit(stream, config, kernel, arguments, small_block, small_parameters, small_buffers,
                      small_maps)
    memory = <char*>PyMem_Malloc(kernel._block_size + count * (2 * sizeof(void*) + sizeof(Mapped)))
    if memory == NULL:
        raise MemoryError()
    try:
        return submit(stream, config, kernel, arguments, memory + count * (2 * sizeof(void*) + sizeof(Mapped)),
                      <void**>memory, <buffers.Buffer**>memory + count, <Mapped*>(<void**>memory + 2 * count))
    finally:
        PyMem_Free(memory)


cdef int submit(Stream stream, LaunchConfig config, KernelHandle kernel, PyObject* const* values, char* block,
                void** parameters, buffers.Buffer** used, Mapped* maps) except -1:
    cdef Status status
    cdef Py_ssize_t index
    cdef const ArgumentSlot* slots = kernel._slots
    cdef buffers.Buffer** last = used
    cdef Mapped* last_map = maps
    cdef Arguments arguments
    cdef Retention retention
    cdef streams.Stream* target = core_stream(stream, NULL)
    cdef list foreign = None   # other libraries' arrays and memory, which are retained until the work is done
    for index in range(kernel._slot_count):
        parameters[index] = block + slots[index].offset
        if (<PackBorrowed>pack)(kernel, index, values[index], block, last):
            foreign = refer(kernel, index, <object>values[index], stream, block, last, &last_map, foreign)
        elif last[0] != NULL and last[0].holder() != NULL:
            foreign = noted(foreign, <object>values[index])
        if last[0] != NULL:
            last += 1
    arguments.parameters = parameters
    arguments.operands.buffers = used
    arguments.operands.count = last - used
    arguments.maps = maps
    arguments.map_count = last_map - maps
    if foreign is not None:
        arguments.operands.foreign = retain(retention, foreign)
    with nogil:
        status = core.launch(target[0], config._shape[0], kernel._kernel[0], arguments)
    if not status.ok():
        given = tuple([<object>values[index] for index in range(kernel._slot_count)])
        raise_status(status, "launch", f"{kernel} in {stream}", (("the stream", stream), *closable(numbered(given))))
    if foreign is not None or last_map != maps:
        release_done()
    return 0


cdef list refer(KernelHandle kernel, Py_ssize_t index, object value, Stream stream, char* block, buffers.Buffer** used,
                Mapped** last_map, list foreign):
    """Packs what is no number and no Buffer. Returns `foreign`, with what is to be retained."""
    cdef Argument argument
    view = pack_reference(kernel, index, value, stream, block, &argument)
    cdef int owner = stream.on(NULL).context().device().ordinal()
    if argument.device != ANY_DEVICE and argument.device != owner:
        wrong_device(kernel, index, argument.device, owner)
    used[0] = argument.buffer
    if argument.map != NULL:
        last_map[0].index = index
        last_map[0].map = argument.map
        last_map[0] += 1
    return noted(foreign, view) if argument.foreign else foreign


cdef list noted(list foreign, object wanted):
    if foreign is None:
        return [wanted]
    foreign.append(wanted)
    return foreign


cdef PyMethodDef LAUNCH = fast_definition(b"launch", call_launch, LAUNCH_DOC)
launch = make_fast_function(&LAUNCH, __name__)
