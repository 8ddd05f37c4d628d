"""Graphs that are launched with other arguments."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libcpp.vector cimport vector

cimport core.code.kernel as kernels
cimport core.graph.graph as core
cimport core.memory.buffer as buffers
from core.completion.deferred_release cimport Retention
from core.graph.captured_launch cimport SHAPE, CapturedLaunch
from core.graph.graph_definition cimport GraphDefinition
from core.graph.replacement cimport Place, Replacement
from core.launch.arguments cimport ANY_DEVICE, Argument
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

cdef enum:
    SMALL_BLOCK = 2048  # what fits on the stack; more arguments take memory for the call

MISSING = object()


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

    def launch(self, stream, /, **arguments):
        """Submits the graph to a stream with these arguments, after its launches before.

        With a `max_concurrency`, after those in the same stream.

        Parameters
        ----------
        stream : Stream or object with ``__cuda_stream__``
            None that is captured.
        **arguments
            Each by its name, as for :func:`ftcuda.launch`. One that is left out is the example of its `Parameter`.

        Thread safety: atomic. A buffer that another thread closes is freed after this launch, or the launch raises
        `ClosedError`. Stream order: a submission.

        Raises
        ------
        TypeError, ValueError, OverflowError
            An argument does not fit its parameter, or no parameter has its name; nothing was launched.
        """
        cdef Stream where = quick_stream(stream)
        cdef char[SMALL_BLOCK] small
        cdef char* block
        if self._block_size <= SMALL_BLOCK:
            launch_in(self, where, arguments, small)
            return
        block = <char*>PyMem_Malloc(self._block_size)
        if block == NULL:
            raise MemoryError()
        try:
            launch_in(self, where, arguments, block)
        finally:
            PyMem_Free(block)

    def __repr__(self):
        return f"<BoundGraph of {self.graph} with {', '.join(self.parameters)}>"


refuse_to_make(BoundGraph)


cdef int launch_in(BoundGraph bound, Stream stream, dict arguments, char* block) except -1:
    cdef Status status
    cdef Retention retention
    cdef Operands operands
    cdef vector[Replacement] replacements
    cdef vector[buffers.Buffer*] used
    cdef CoreStream* target = core_stream(stream, &bound._graph.context())
    cdef Py_ssize_t slot = 0
    cdef Py_ssize_t taken = 0
    cdef Py_ssize_t number
    cdef list foreign = []
    replacements.resize(bound._places.size())
    for number in range(len(bound.parameters)):
        value = arguments.get(bound.parameters[number], MISSING)
        taken += value is not MISSING
        while slot < <Py_ssize_t>bound._ends[number]:
            replacements[slot].places = bound._places[slot].data()
            replacements[slot].count = bound._places[slot].size()
            if value is not MISSING:
                block = replace(bound, slot, value, stream, block, replacements[slot], used, foreign)
            slot += 1
    if taken != len(arguments):
        unknown = [name for name in arguments if name not in bound.parameters]
        raise TypeError(f"{bound} has no parameter {', '.join(unknown)}")
    operands.buffers = used.data()
    operands.count = used.size()
    if foreign:
        operands.foreign = retain(retention, foreign)
    with nogil:
        status = bound._graph.launch_with(target[0], replacements, operands)
    if not status.ok():
        involved = (("the stream", stream), ("the graph", bound.graph), *closable(tuple(arguments.values())))
        raise_status(status, "launch", f"{bound} in {stream}", involved)
    if foreign:
        release_done()
    return 0


cdef char* replace(BoundGraph bound, Py_ssize_t slot, object value, Stream stream, char* block,
                   Replacement& replacement, vector[buffers.Buffer*]& used, list foreign) except NULL:
    """Packs one argument. Returns where the next one has its block."""
    cdef Argument argument
    cdef KernelHandle kernel = bound._kernels[slot]
    cdef size_t index = bound._places[slot][0].index
    cdef int owner
    if kernel is None:
        if not isinstance(value, LaunchConfig):
            raise TypeError(f"the configuration of a launch must be a LaunchConfig, not {type(value).__name__}")
        replacement.shape = (<LaunchConfig>value)._shape
        return block
    if pack(kernel, index, value, block, &argument.buffer):
        view = pack_reference(kernel, index, value, stream, block, &argument)
        owner = bound._graph.context().device().ordinal()
        if argument.device != ANY_DEVICE and argument.device != owner:
            wrong_device(kernel, index, argument.device, owner)
        if argument.foreign:
            foreign.append(view)
    elif argument.buffer != NULL and argument.buffer.holder() != NULL:
        foreign.append(value)
    if argument.buffer != NULL:
        used.push_back(argument.buffer)
    replacement.bytes = block + kernel._slots[index].offset
    replacement.map = argument.map
    return block + kernel._block_size


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
    for launch in range(launches.size()):
        kernel = kernel_of(launches[launch])
        for each in range(launches[launch].parameters().size()):
            name = launches[launch].parameters()[each].name.decode()
            index = launches[launch].parameters()[each].index
            slots.setdefault(name, {}).setdefault(kind_of(kernel, index), []).append((kernel, launch, index))
    if not slots:
        raise ValueError(f"cannot bind {owner}: no argument in it has a name; capture it with a Parameter")
    cdef BoundGraph bound = BoundGraph.__new__(BoundGraph)
    graph.retain()
    bound._graph = graph
    bound.graph = owner
    bound.parameters = tuple(slots)
    found, ends = [], []
    for by_kind in slots.values():
        for places in by_kind.values():
            bound._places.emplace_back()
            for _, launch, index in places:
                place.launch, place.index = launch, index
                bound._places.back().push_back(place)
            kernel, _, index = places[0]
            found.append(None if index == SHAPE else kernel)
            bound._block_size += (<KernelHandle>kernel)._block_size
        ends.append(len(found))
    bound._kernels, bound._ends = tuple(found), tuple(ends)
    return bound


cdef Kernel kernel_of(const CapturedLaunch* launch):
    cdef kernels.Kernel* kernel = &(<CapturedLaunch*>launch).kernel()
    kernel.retain()
    return Kernel.made_of(kernel, kernel.name().decode(), None)


cdef tuple kind_of(KernelHandle kernel, size_t index):
    return () if index == SHAPE else (kernel._slots[index].size, <int>kernel._slots[index].kind)
