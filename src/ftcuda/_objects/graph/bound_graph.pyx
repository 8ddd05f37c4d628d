"""Graphs that are launched with other arguments."""

from sys import intern

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

cimport core.code.kernel as kernels
cimport core.graph.graph as core
cimport core.memory.buffer as buffers
from core.completion.deferred_release cimport Retention
from core.graph.captured_launch cimport SHAPE, CapturedLaunch
from core.graph.graph_definition cimport GraphDefinition
from core.graph.replacement cimport Place, Replacement
from core.launch.arguments cimport ANY_DEVICE, Argument
from core.launch.launch cimport LaunchShape
from core.memory.operands cimport Operands
from core.stream.stream cimport Stream as CoreStream
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.code.kernel cimport Kernel
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.launch.launch_config cimport LaunchConfig
from ftcuda._objects.launch.arguments cimport closable, pack, pack_reference, wrong_device
from ftcuda._objects.stream.stream cimport Stream, core_stream, quick_stream
from ftcuda._objects.support.deferred_release cimport release_done, retain
from ftcuda._objects.support.raising cimport raise_status, refuse_to_make

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        pass
    Py_ssize_t PyTuple_GET_SIZE(PyObject* items)
    PyObject* PyTuple_GET_ITEM(PyObject* items, Py_ssize_t index)
    bint PyUnicode_CHECK_INTERNED(PyObject* text)

cdef extern from "_objects/support/fast_function.hpp" namespace "ftcuda::objects":
    ctypedef object (*FastCall)(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names)
    PyMethodDef fast_definition(const char* name, FastCall call, const char* doc)
    int add_fast_method(object type, PyMethodDef* definition) except -1

cdef enum:
    SMALL_MEMORY = 256  # words, what fits on the stack; more arguments take memory for the call

# For references that the bound graph holds: of a PyObject* Cython counts none, and a count of an object that many
# threads use at once costs more than the rest of a launch.
ctypedef int (*LaunchBorrowed)(PyObject* bound, Stream stream, PyObject* const* values, PyObject* names) except -1
ctypedef int (*PackBorrowed)(
    PyObject* kernel, Py_ssize_t index, PyObject* value, char* block, buffers.Buffer** buffer) except -1


@cython.no_gc_clear  # launches read the tuples without a look whether they are there
cdef class BoundGraph:
    """A graph whose launches have arguments of their own, by name. Made by :meth:`Graph.bind`.

    Any number of threads may launch it. Each launch has all the arguments that it was given, and none of another's.

    Attributes
    ----------
    graph : Graph
    parameters : tuple of str
        The names, in the order in which they were captured.

    Thread safety: atomic.
    """

    _made = "bound graphs are made by Graph.bind()"

    def __dealloc__(self):
        if self._graph != NULL:
            with nogil:
                self._graph.release()

    def __repr__(self):
        return f"<BoundGraph of {self.graph} with {', '.join(self.parameters)}>"


refuse_to_make(BoundGraph)

cdef bytes LAUNCH_DOC = b"""launch($self, stream, /, **arguments)
--

Submits the graph to a stream with these arguments, after its launches before.

With a `max_concurrency`, after those in the same stream.

Parameters
----------
stream : Stream or object with ``__cuda_stream__``
    None that is captured.
**arguments
    Each by its name, as for :func:`ftcuda.launch`. One that is left out is in each place the example that its
    `Parameter` has there: a tensor map as it was when it was captured.

Thread safety: atomic. A buffer that another thread closes is freed after this launch, or the launch raises
`ClosedError`. Stream order: a submission.

Raises
------
TypeError, ValueError, OverflowError
    An argument does not fit its parameter, or no parameter has its name; nothing was launched.
"""
cdef PyMethodDef LAUNCH = fast_definition(b"launch", call_launch, LAUNCH_DOC)
add_fast_method(BoundGraph, &LAUNCH)


cdef object call_launch(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names):
    cdef tuple known
    cdef Py_ssize_t number
    if count != 1:
        raise TypeError(f"launch() takes exactly 1 positional argument ({count} given)")
    for number in range(0 if names == NULL else PyTuple_GET_SIZE(names)):
        if not PyUnicode_CHECK_INTERNED(PyTuple_GET_ITEM(names, number)):
            known = tuple([intern(str.__str__(name)) for name in <tuple>names])
            return call_launch(self, arguments, count, <PyObject*>known)
    (<LaunchBorrowed>launch)(self, quick_stream(<object>arguments[0]), arguments + 1, names)
    return None


cdef int launch(BoundGraph bound, Stream stream, PyObject* const* values, PyObject* names) except -1:
    """`names`: interned, of the values; NULL: there are none."""
    cdef uint64_t[SMALL_MEMORY] small
    cdef void* memory
    if bound._memory_size <= sizeof(small):
        return launch_in(bound, stream, values, names, <Replacement*>small)
    memory = PyMem_Malloc(bound._memory_size)
    if memory == NULL:
        raise MemoryError()
    try:
        return launch_in(bound, stream, values, names, <Replacement*>memory)
    finally:
        PyMem_Free(memory)


cdef int launch_in(BoundGraph bound, Stream stream, PyObject* const* values, PyObject* names,
                   Replacement* replacements) except -1:
    """`replacements`: memory of the size that a launch needs."""
    cdef Status status
    cdef Retention retention
    cdef Operands operands
    cdef CoreStream* target = core_stream(stream, &bound._graph.context())
    cdef size_t count = bound._captured.size()
    cdef buffers.Buffer** used = <buffers.Buffer**>(replacements + count)
    cdef char* block = <char*>(used + count)
    cdef PyObject* value
    cdef PyObject* kernel
    cdef size_t number, index
    cdef size_t slot = 0
    cdef Py_ssize_t given = 0 if names == NULL else PyTuple_GET_SIZE(names)
    cdef Py_ssize_t taken = 0
    cdef Py_ssize_t at = given - 1
    cdef list foreign = None
    memcpy(replacements, bound._captured.data(), count * sizeof(Replacement))
    operands.buffers = used
    for number in range(bound._ends.size()):
        if not find(names, given, PyTuple_GET_ITEM(<PyObject*>bound.parameters, number), &at):
            slot = bound._ends[number]
            continue
        value = values[at]
        taken += 1
        while slot < bound._ends[number]:
            kernel = PyTuple_GET_ITEM(<PyObject*>bound._kernels, slot)
            index = bound._places[slot][0].index
            if index == SHAPE:
                replacements[slot].shape = shape_of(<object>value)
            else:
                used[0] = NULL
                if (<PackBorrowed>pack)(kernel, index, value, block, used):
                    foreign = refer(bound, slot, <object>value, stream, block, replacements[slot], used, foreign)
                elif used[0] != NULL and used[0].holder() != NULL:
                    foreign = noted(foreign, <object>value)
                used += used[0] != NULL
                replacements[slot].bytes = block + (<KernelHandle>kernel)._slots[index].offset
                block += (<KernelHandle>kernel)._block_size
            slot += 1
    if taken != given:
        unknown = [name for name in <tuple>names if name not in bound.parameters]
        raise TypeError(f"{bound} has no parameter {', '.join(unknown)}")
    operands.count = used - operands.buffers
    if foreign is not None:
        operands.foreign = retain(retention, foreign)
    with nogil:
        status = bound._graph.launch_with(target[0], replacements, count, operands)
    if not status.ok():
        named = [(name, <object>values[at]) for at, name in enumerate(() if names == NULL else <tuple>names)]
        involved = (("the stream", stream), ("the graph", bound.graph), *closable(named))
        raise_status(status, "launch", f"{bound} in {stream}", involved)
    if foreign is not None:
        release_done()
    return 0


cdef inline bint find(PyObject* names, Py_ssize_t count, PyObject* wanted, Py_ssize_t* at) noexcept:
    """From the place after the last one found: callers mostly write names in the order of the parameters."""
    for _ in range(count):
        at[0] = at[0] + 1 if at[0] + 1 < count else 0
        if PyTuple_GET_ITEM(names, at[0]) == wanted:
            return True
    return False


cdef const LaunchShape* shape_of(object value) except NULL:
    if not isinstance(value, LaunchConfig):
        raise TypeError(f"the configuration of a launch must be a LaunchConfig, not {type(value).__name__}")
    return (<LaunchConfig>value)._shape


cdef list refer(BoundGraph bound, size_t slot, object value, Stream stream, char* block, Replacement& replacement,
                buffers.Buffer** used, list foreign):
    """Packs what is no number and no Buffer. Returns `foreign`, with what is to be retained."""
    cdef Argument argument
    cdef KernelHandle kernel = bound._kernels[slot]
    cdef size_t index = bound._places[slot][0].index
    cdef int owner = bound._graph.context().device().ordinal()
    view = pack_reference(kernel, index, value, stream, block, &argument)
    if argument.device != ANY_DEVICE and argument.device != owner:
        wrong_device(kernel, index, argument.device, owner)
    used[0] = argument.buffer
    replacement.map = argument.map
    return noted(foreign, view) if argument.foreign else foreign


cdef list noted(list foreign, object wanted):
    if foreign is None:
        return [wanted]
    foreign.append(wanted)
    return foreign


cdef BoundGraph bind(core.Graph* graph, object owner):
    """Behind `Graph.bind`."""
    cdef Ref[GraphDefinition] definition
    cdef vector[const CapturedLaunch*] launches
    cdef size_t launch, each
    cdef Place place
    cdef Status status
    with nogil:
        status = graph.definition(definition)
    if not status.ok():
        raise_status(status, "bind", owner, (("the graph", owner),))
    launches = definition.get().launches()
    slots = {}  # by name, and then by what an argument's bytes depend on
    # Interned: found by identity in the names that callers write, and immortal.
    for launch in range(launches.size()):
        kernel = kernel_of(launches[launch])
        for each in range(launches[launch].parameters().size()):
            name = intern(launches[launch].parameters()[each].name.decode())
            index = launches[launch].parameters()[each].index
            slots.setdefault(name, {}).setdefault(kind_of(kernel, index), []).append((kernel, launch, index))
    if not slots:
        raise ValueError(f"cannot bind {owner}: no argument in it has a name; capture it with a Parameter")
    cdef BoundGraph bound = BoundGraph.__new__(BoundGraph)
    graph.retain()
    bound._graph = graph
    bound.graph = owner
    bound.parameters = tuple(slots)
    found = []
    for by_kind in slots.values():
        for places in by_kind.values():
            bound._places.emplace_back()
            for _, launch, index in places:
                place.launch, place.index = launch, index
                bound._places.back().push_back(place)
            kernel, _, index = places[0]
            found.append(None if index == SHAPE else kernel)
            bound._memory_size += sizeof(Replacement) + sizeof(void*) + (<KernelHandle>kernel)._block_size
        bound._ends.push_back(len(found))
    bound._captured.resize(len(found))
    for each in range(bound._captured.size()):
        bound._captured[each].places = bound._places[each].data()
        bound._captured[each].count = bound._places[each].size()
    bound._kernels = tuple(found)
    return bound


cdef Kernel kernel_of(const CapturedLaunch* launch):
    cdef kernels.Kernel* kernel = &(<CapturedLaunch*>launch).kernel()
    kernel.retain()
    return Kernel.made_of(kernel, kernel.name().decode(), None)


cdef tuple kind_of(KernelHandle kernel, size_t index):
    return () if index == SHAPE else (kernel._slots[index].size, <int>kernel._slots[index].kind)
