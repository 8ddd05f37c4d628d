"""Launches."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject
from libc.string cimport memcpy

cimport core.buffer as buffers
cimport core.launch as core
cimport core.stream as streams
from core.status cimport Status
from ftcuda._objects.arguments cimport closable, pack, pack_array, wrong_count
from ftcuda._objects.kept cimport keep, release_done
from ftcuda._objects.kernel cimport Kernel
from ftcuda._objects.raising cimport raise_status
from ftcuda._objects.stream cimport Stream, as_stream
from ftcuda._objects.tensor_map cimport MAP_BYTES, TensorMapDescriptor

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        pass
    PyObject** PySequence_Fast_ITEMS(object sequence)
    PyTypeObject* Py_TYPE(PyObject* argument)
    bint PyObject_TypeCheck(PyObject* argument, PyTypeObject* wanted)

cdef extern from "fast_function.hpp" namespace "ftcuda::objects":
    ctypedef object (*FastCall)(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names)
    PyMethodDef fast_definition(const char* name, FastCall call, const char* doc)
    object make_fast_function(PyMethodDef* definition, object module)


cdef tuple dimensions(object value, str name):
    """`value` as three positive ints."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        value = (value,)  # a numpy integer too
    if not isinstance(value, (tuple, list)) or not 1 <= len(value) <= 3:
        raise ValueError(f"{name} must be an int or a tuple of one to three ints, not {value!r}")
    result = []
    for number in (*value, 1, 1)[:3]:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"{name} must hold ints, not {type(number).__name__}")
        number = number.__index__()
        if not 1 <= number < 2**31:
            raise ValueError(f"{name} must be from 1 to 2**31 - 1 in each dimension, not {number}")
        result.append(number)
    return tuple(result)


cdef core.Dimensions as_dimensions(tuple value):
    cdef core.Dimensions result
    result.x, result.y, result.z = value
    return result


cdef class LaunchConfig:
    """Shape of a launch. Constant, and shared by any number of threads. Configurations of the same shape are equal.

    Parameters
    ----------
    grid : int or tuple of int
        Blocks; clusters when `cluster` is given.
    cluster : int or tuple of int, optional
        Blocks per cluster (compute capability 9.0 and up).
    block : int or tuple of int
        Threads per block.
    shmem_size : int, optional
        Bytes of dynamic shared memory per block. None is 0.
    is_cooperative : bool
        All blocks are resident at once and may synchronise with each other.
    programmatic_stream_serialization : bool
        The kernel may start before the one before it in the stream has ended, at a point that one chooses.

    Thread safety: atomic.
    """

    def __cinit__(self, grid=None, cluster=None, block=None, shmem_size=0, is_cooperative=False,
                  programmatic_stream_serialization=False):
        cdef core.Dimensions cluster_dimensions
        cdef const core.Dimensions* in_cluster = NULL
        if grid is None or block is None:
            raise ValueError("grid and block must be given")
        self.grid = dimensions(grid, "grid")
        self.block = dimensions(block, "block")
        self.cluster = None if cluster is None else dimensions(cluster, "cluster")
        if shmem_size is None:
            shmem_size = 0
        if isinstance(shmem_size, bool) or not hasattr(shmem_size, "__index__"):
            raise TypeError(f"shmem_size must be an int, not {type(shmem_size).__name__}")
        shmem_size = shmem_size.__index__()
        if not 0 <= shmem_size < 2**31:
            raise ValueError(f"shmem_size must be from 0 to 2**31 - 1 bytes, not {shmem_size}")
        self.shmem_size = shmem_size
        self.is_cooperative = bool(is_cooperative)
        self.programmatic_stream_serialization = bool(programmatic_stream_serialization)
        if cluster is not None:
            for of_grid, of_cluster in zip(self.grid, self.cluster):
                if of_grid * of_cluster >= 2**31:
                    raise ValueError(f"grid times cluster must be below 2**31 in each dimension, not {of_grid * of_cluster}")
            cluster_dimensions = as_dimensions(self.cluster)
            in_cluster = &cluster_dimensions
        self._shape = new core.LaunchShape(
            as_dimensions(self.grid), as_dimensions(self.block), in_cluster, self.shmem_size, self.is_cooperative,
            self.programmatic_stream_serialization)

    def __dealloc__(self):
        del self._shape

    def _identity(self):
        return (self.grid, self.cluster, self.block, self.shmem_size, self.is_cooperative, self.programmatic_stream_serialization)

    def __eq__(self, other):
        if not isinstance(other, LaunchConfig):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def __reduce__(self):
        return LaunchConfig, self._identity()  # for copies, and for other processes

    def __repr__(self):
        return (
            f"LaunchConfig(grid={self.grid}, cluster={self.cluster}, block={self.block}, shmem_size={self.shmem_size}, "
            f"is_cooperative={self.is_cooperative}, "
            f"programmatic_stream_serialization={self.programmatic_stream_serialization})"
        )


cdef bytes LAUNCH_DOC = b"""launch(stream, config, kernel, *kernel_args)
--

Submits a kernel to a stream.

Parameters
----------
stream : Stream or object with ``__cuda_stream__``
config : LaunchConfig
kernel : Kernel
*kernel_args
    One for each parameter: Buffer, int, float, bool, complex, bytes of the exact size, a numpy scalar (structured
    ones too), a ctypes value, a handle of cuda-bindings, or an array: a `StridedMemoryView`, or an object with
    ``__dlpack__``, ``__cuda_array_interface__`` or the buffer protocol, of memory that the device reaches. A Python int
    for a float parameter becomes a float; everything else must fit in kind and size. The launch waits for the work of
    an array's producer, as its protocol says, and keeps the array until it is done.

Thread safety: atomic. All arguments are read before the submission; a buffer that another thread closes is freed
after this launch, or the launch raises `ClosedError`. Stream order: a submission.

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


# The same functions for references that the caller of `launch` holds: of a PyObject* Cython counts none, and a count of an
# object that many threads use at once costs more than the rest of a launch.
ctypedef int (*LaunchBorrowed)(PyObject* stream, PyObject* config, PyObject* kernel, PyObject* const* arguments,
                               Py_ssize_t count) except -1
ctypedef int (*PackBorrowed)(Kernel kernel, Py_ssize_t index, PyObject* argument, char* block, buffers.Buffer** buffer) except -1


def launch(stream, config, kernel, *kernel_args):
    """Until the end of this file: puts the arguments in order, and complains of those that are no arguments of `launch`."""
    return (stream, config, kernel, *kernel_args)


in_order = launch


cdef object call_launch(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names):
    cdef tuple ordered
    cdef Py_ssize_t index
    if names != NULL or count < 3:
        named = {} if names == NULL else {name: <object>arguments[count + index] for index, name in enumerate(<tuple>names)}
        ordered = in_order(*[<object>arguments[index] for index in range(count)], **named)
        return call_launch(self, PySequence_Fast_ITEMS(ordered), len(ordered), NULL)
    if not PyObject_TypeCheck(arguments[1], <PyTypeObject*>LaunchConfig):
        raise TypeError(f"config must be a LaunchConfig, not {type(<object>arguments[1]).__name__}")
    if not PyObject_TypeCheck(arguments[2], <PyTypeObject*>Kernel):
        raise TypeError(f"kernel must be a Kernel, not {type(<object>arguments[2]).__name__}")
    if Py_TYPE(arguments[0]) == <PyTypeObject*>Stream:
        (<LaunchBorrowed>launch_in)(arguments[0], arguments[1], arguments[2], arguments + 3, count - 3)
    else:
        launch_in(as_stream(<object>arguments[0]), <LaunchConfig>arguments[1], <Kernel>arguments[2], arguments + 3, count - 3)
    return None


cdef int launch_in(Stream stream, LaunchConfig config, Kernel kernel, PyObject* const* arguments, Py_ssize_t count) except -1:
    cdef char small_block[SMALL_BLOCK]
    cdef void* small_parameters[SMALL_COUNT]
    cdef buffers.Buffer* small_buffers[SMALL_COUNT]
    cdef char* memory
    if count != kernel._slot_count:
        wrong_count(kernel, count)
    if count <= SMALL_COUNT and kernel._block_size <= SMALL_BLOCK:
        return submit(stream, config, kernel, arguments, small_block, small_parameters, small_buffers)
    memory = <char*>PyMem_Malloc(kernel._block_size + 2 * count * sizeof(void*))
    if memory == NULL:
        raise MemoryError()
    try:
        return submit(stream, config, kernel, arguments, memory + 2 * count * sizeof(void*),
                      <void**>memory, <buffers.Buffer**>memory + count)
    finally:
        PyMem_Free(memory)


cdef int submit(Stream stream, LaunchConfig config, Kernel kernel, PyObject* const* arguments, char* block, void** parameters,
                buffers.Buffer** used) except -1:
    cdef Status status
    cdef Py_ssize_t index
    cdef size_t buffer_count = 0
    cdef streams.Stream* target = stream.on(NULL)
    cdef list foreign = None   # other libraries' arrays and memory, which are kept until the work is done
    cdef list mapped = None    # the tensors of tensor maps, of which other threads may be letting go
    for index in range(kernel._slot_count):
        if (<PackBorrowed>pack)(kernel, index, arguments[index], block, &used[buffer_count]):
            view = pack_array(kernel, index, <object>arguments[index], stream, block, &used[buffer_count])
            if Py_TYPE(arguments[index]) == <PyTypeObject*>TensorMapDescriptor:
                repeat_map(kernel, index, arguments, block)
                mapped = noted(mapped, view)
            if view is not None and (used[buffer_count] == NULL or used[buffer_count].holder() != NULL):
                foreign = noted(foreign, view)
        elif used[buffer_count] != NULL and used[buffer_count].holder() != NULL:
            foreign = noted(foreign, <object>arguments[index])
        if used[buffer_count] != NULL:
            buffer_count += 1
        parameters[index] = block + kernel._slots[index].offset
    with nogil:
        status = core.launch(target[0], config._shape[0], kernel._kernel[0], parameters, used, buffer_count)
    if not status.ok():
        given = tuple([<object>arguments[index] for index in range(kernel._slot_count)])
        raise_status(status, "launch", f"{kernel} in {stream}", (("the stream", stream), *closable(given)))
    if foreign is not None:
        keep(target, foreign)
        release_done()
    return 0


cdef list noted(list foreign, object wanted):
    if foreign is None:
        return [wanted]
    foreign.append(wanted)
    return foreign


cdef int repeat_map(Kernel kernel, Py_ssize_t index, PyObject* const* arguments, char* block) except -1:
    """A map that is given twice is the same in both places, whatever another thread made of it in between."""
    cdef Py_ssize_t earlier
    for earlier in range(index):
        if arguments[earlier] == arguments[index]:
            memcpy(block + kernel._slots[index].offset, block + kernel._slots[earlier].offset, MAP_BYTES)
            break
    return 0


cdef PyMethodDef LAUNCH = fast_definition(b"launch", call_launch, LAUNCH_DOC)
launch = make_fast_function(&LAUNCH, __name__)
