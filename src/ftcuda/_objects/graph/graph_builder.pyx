"""Graphs under construction."""

import warnings

from libc.stdint cimport uint64_t
from libcpp cimport bool
from libcpp.utility cimport move
from libcpp.vector cimport vector

cimport core.graph.graph_builder as core
from core.completion.deferred_release cimport ForeignReference, Retention
from core.device.device cimport Context
from core.driver.loader cimport loaded_driver
from core.graph.captured_launch cimport SHAPE, Named
from core.graph.graph_definition cimport GraphDefinition
from core.graph.graph_builder cimport CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_SWITCH, CU_GRAPH_COND_TYPE_WHILE
from core.launch.bound_launch cimport BoundArguments
from core.stream.stream cimport CU_STREAM_NON_BLOCKING
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.device.device_handle cimport DeviceHandle
from ftcuda._objects.graph.graph cimport Graph
from ftcuda._objects.graph.graph_definition cimport GraphDefinition as PublicDefinition
from ftcuda._objects.graph.graph_definition cimport print_dot
from ftcuda._objects.graph.graph_source cimport GraphSource
from ftcuda._objects.graph.node_source cimport Given
from ftcuda._objects.launch.bound_launch cimport bind_all
from ftcuda._objects.launch.launch_config cimport LaunchConfig
from ftcuda._objects.memory.size cimport checked_size
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.deferred_release cimport foreign_reference
from ftcuda._objects.support.host_function cimport HostFunction, host_function
from ftcuda._objects.support.raising cimport check, raise_status, refuse_to_make, release_and_warn

from ftcuda._objects.graph.graph_condition import checked_condition, checked_count, checked_default, condition_of
from ftcuda._objects.launch.graph_scratch import GraphScratch, scratch_of
from ftcuda._objects.launch.parameter import Parameter
from ftcuda._objects.memory.device_memory import SynchronousMemoryResource
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import ClosedError, NotSupportedError

cdef enum:
    FIRST_WITH_SWITCH = 12080    # as cuDriverGetVersion says it; else came with it

MODES = ("relaxed", "thread_local", "global")
KINDS = {<int>core.Kind.primary: "", <int>core.Kind.part: " part", <int>core.Kind.body: " body"}


cdef class GraphBuilder(GraphSource):
    """A graph under construction. Made by :meth:`Device.create_graph_builder` or :meth:`Stream.create_graph_builder`.

    Between :meth:`begin_building` and :meth:`end_building` it is a stream to :func:`launch`, to copies and to fills:
    nothing of it runs, and all of it becomes part of the graph. What is captured is kept for as long as the graph, its
    executables and their launches. Calls of several threads come one after the other.
    """

    _made = "graph builders are made by Device.create_graph_builder() or Stream.create_graph_builder()"

    def __dealloc__(self):
        cdef bool lost = False
        if self._builder != NULL:
            with nogil:
                lost = self._builder.close()
                self._builder.release()
            if lost:
                warn_of_loss()

    @staticmethod
    cdef GraphBuilder create(DeviceHandle device, int priority):
        cdef Ref[core.GraphBuilder] made
        cdef Status status
        cdef Context* context = device.context_of()
        with nogil:
            status = core.GraphBuilder.create(context[0], CU_STREAM_NON_BLOCKING, priority, made)
        check(status, "create a graph builder on", device)
        return adopt(made.detach())

    cdef int take_definition(self, Ref[GraphDefinition]& definition, str verb) except -1:
        cdef Status status
        with nogil:
            status = self._builder.definition(definition)
        check(status, verb, self)
        return 0

    cdef int launch_named(self, object config, object kernel, tuple values) except -1:
        cdef Status status
        cdef vector[Named] parameters
        cdef vector[size_t] scratch
        cdef Named parameter
        cdef KernelHandle called = kernel
        cdef LaunchConfig shape
        cdef Ref[BoundArguments] arguments
        cdef Ref[ForeignReference] caller
        if self._builder.is_in_body():
            raise NotSupportedError(f"cannot launch {kernel} with a Parameter or scratch memory in {self}: the driver "
                                    "lets nobody change the bodies of conditional nodes")
        shape = checked_config(example_of(config))
        for index, value in enumerate((config, *values)):
            if type(value) is Parameter:
                parameter.name = zero_ended(value.name, "name")
                parameter.index = index - 1 if index else SHAPE
                parameters.push_back(parameter)
            elif type(value) is GraphScratch:
                if not self._builder.is_of_capture((<GraphBuilder?>value._builder)._builder[0]):
                    raise ValueError(f"cannot launch {kernel} in {self} with {value}: it is of another graph")
                scratch.push_back(index - 1)
        arguments = bind_all(called, tuple([example_of(each) for each in values]), self._stream)
        caller = foreign_reference(shape)
        with nogil:
            status = self._builder.launch(shape._shape[0], move(caller), called._kernel[0], arguments, parameters,
                                          scratch)
        check(status, f"launch {kernel} in", self)
        return 0

    cdef int check_primary(self, str verb) except -1:
        if self._builder.kind() == core.Kind.part:
            raise RuntimeError(f"cannot {verb} {self}: it is a part that split() made; join it, and ask the first one")
        if self._builder.kind() == core.Kind.body and verb not in ("begin", "end"):
            raise RuntimeError(f"cannot {verb} {self}: it builds the body of a node, of the builder that has the node")
        return 0

    def begin_building(self, mode="relaxed"):
        """Begins to capture. Once: a builder builds one graph.

        Parameters
        ----------
        mode : {"relaxed", "thread_local", "global"}, optional
            For programs of cuda.core. All of them are the first one here: nothing that another thread does ends the
            capture, and nobody is kept from anything by it.

        Returns
        -------
        GraphBuilder
            This one.

        Thread safety: atomic.
        """
        cdef Status status
        if mode is not None and mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
        self.check_primary("begin")
        with nogil:
            status = self._builder.begin()
        check(status, "begin", self)
        return self

    def end_building(self):
        """Ends the capture. Those of the bodies of conditional nodes come before.

        Returns
        -------
        GraphBuilder
            This one.

        Thread safety: atomic.

        Raises
        ------
        RuntimeError
            A part was not joined, or a body is still building: nothing is lost, and this may be called again. Or one of
            them was closed or lost: close the builder.
        CUDAError
            A call spoilt the capture. There is no graph then.
        """
        cdef Status status
        self.check_primary("end")
        with nogil:
            status = self._builder.end()
        check(status, "end", self)
        release_and_warn()
        return self

    def complete(self, options=None):
        """Makes a graph that can be launched, as often as it is called.

        With conditional nodes in it the driver has one such graph at a time: close it before the next.

        Parameters
        ----------
        options : GraphCompleteOptions or dict, optional

        Returns
        -------
        Graph

        Thread safety: atomic.

        Raises
        ------
        RuntimeError
            It has no graph yet; or one of its conditions has no conditional node.
        """
        cdef Ref[GraphDefinition] definition
        self.check_primary("complete")
        self.take_definition(definition, "complete")
        return Graph.instantiate(definition.get()[0], options, self)

    def split(self, count):
        """Returns `count` builders, whose work runs beside each other. The first is this one.

        Parameters
        ----------
        count : int
            2 at least, 4096 at most.

        Returns
        -------
        tuple of GraphBuilder

        Thread safety: shared.

        Raises
        ------
        OutOfMemoryError
            There is no memory for as many streams. The builder goes on as before.
        """
        cdef Status status
        cdef Ref[core.GraphBuilder] made
        number = checked_count(count, 2)
        parts = [self]
        while len(parts) < number:
            with nogil:
                status = self._builder.split(made)
            if not status.ok():
                try:
                    if len(parts) > 1:
                        GraphBuilder.join(*parts)  # those that nobody gets, so that the capture can go on
                finally:
                    check(status, "split", self)
            parts.append(adopt(made.detach()))
        return tuple(parts)

    @staticmethod
    def join(*graph_builders):
        """Makes one builder of several, which goes on after the work of all. The others are closed by that.

        Parameters
        ----------
        *graph_builders : GraphBuilder
            2 at least, of one capture.

        Returns
        -------
        GraphBuilder
            The one that was split, if it is among them, else the first.

        Thread safety: shared.
        """
        cdef Status status
        cdef GraphBuilder target, part
        if len(graph_builders) < 2:
            raise ValueError(f"join takes 2 builders at least, not {len(graph_builders)}")
        for each in graph_builders:
            if not isinstance(each, GraphBuilder):
                raise TypeError(f"join takes GraphBuilder, not {type(each).__name__}")
        if len(set(map(id, graph_builders))) != len(graph_builders):
            raise ValueError("join takes each builder once")
        target = next((each for each in graph_builders if not each.is_join_required), graph_builders[0])
        for part in graph_builders:
            if part is target:
                continue
            if not part.is_join_required or not target._builder.is_of_capture(part._builder[0]):
                raise ValueError(f"cannot join {part} to {target}: it is no part of that capture")
            with nogil:
                status = target._builder.join(part._builder[0])
            if not status.ok():
                raise_status(status, "join", f"{part} to {target}", (("the part", part), ("the builder", target)))
        return target

    def embed(self, child):
        """Adds a copy of another builder's graph as one node. The driver makes none with conditional or memory nodes.

        Parameters
        ----------
        child : GraphBuilder
            After its :meth:`end_building`.

        Thread safety: atomic.
        """
        cdef Status status
        if not isinstance(child, GraphBuilder):
            raise TypeError(f"child must be a GraphBuilder, not {type(child).__name__}")
        cdef GraphBuilder embedded = child
        if embedded is self or embedded._builder.is_building():
            raise ValueError(f"cannot embed {child} in {self}: it has not ended building")
        embedded.check_primary("embed")
        with nogil:
            status = self._builder.embed(embedded._builder[0])
        if not status.ok():
            raise_status(status, "embed", f"{child} in {self}", (("the child", child), ("the builder", self)))

    def scratch(self, size):
        """Makes memory for what lies between the kernels of this graph: kernels write it, later ones read it.

        Launches that may overlap must not share it: each executable of the graph has some of its own, so that a launch
        finds there what the same launch wrote, and nothing that counts before. It is freed with the executable.

        Parameters
        ----------
        size : int
            Bytes, 1 at least.

        Returns
        -------
        GraphScratch
            In place of an argument of :func:`ftcuda.launch` with this builder, or one of its parts, as the stream. Not
            in the bodies of conditional nodes.

        Thread safety: atomic. Needs a driver of CUDA 12.0 to be launched.

        Raises
        ------
        OutOfMemoryError
            For the first executable; :meth:`complete`, :meth:`Graph.launch` and :meth:`BoundGraph.launch` raise it for
            further ones.
        """
        wanted = checked_size(size, "size")
        if wanted == 0:
            raise ValueError("size must be 1 at least, not 0")
        if self._builder.is_in_body():
            raise NotSupportedError(f"cannot make scratch memory for {self}: the driver lets nobody change the bodies "
                                    "of conditional nodes; a graph with one has one executable, so any memory will do")
        if self._builder.is_closed():
            raise ClosedError(f"cannot make scratch memory for {self}: it is closed")
        return scratch_of(self, SynchronousMemoryResource(self._stream.device).allocate(wanted))

    cdef int check_host_function(self) except -1:
        if self._builder.is_in_body():
            raise NotSupportedError(f"cannot add a callback to {self}: the bodies of conditional nodes have none")
        return 0

    def callback(self, fn, *, user_data=None):
        """Adds a call of a function of the host's. What comes after it waits until that has returned.

        Parameters
        ----------
        fn : callable or function pointer of ctypes
            A callable is called without arguments, by a thread of ftcuda's that makes such calls one after the other.
            What it raises goes to `sys.unraisablehook`. What waits for the graph, or for another such call, waits for
            ever. What needs the driver is refused, with ``CUDA_ERROR_NOT_PERMITTED``; what is closed or dropped there
            ends a moment later. A function pointer is called by the driver's thread, with `user_data`, and must not
            come to a call of the driver: of the type ``ctypes.CFUNCTYPE(None, ctypes.c_void_p)``. Either is kept as
            long as the graph. One that refers to its own graph or builder keeps that, until it is closed.
        user_data : int or bytes-like, optional
            For a function pointer. Bytes are copied, and the copy is kept as long as the graph.

        At exit what was not called yet never is. The bodies of conditional nodes have no callbacks.

        Thread safety: atomic.
        """
        cdef Status status
        cdef Retention retention
        self.check_host_function()
        cdef HostFunction found = host_function(fn, user_data, retention)
        with nogil:
            status = self._builder.call(found.function, found.user_data, move(retention))
        check(status, "add a callback to", self)
        release_and_warn()

    def create_condition(self, default_value=None):
        """Makes a condition for one conditional node of this builder's, which kernels set.

        Parameters
        ----------
        default_value : int, optional
            What it is when a launch of the graph begins, 32 bits. None: anything, until a kernel sets it.

        Returns
        -------
        GraphCondition

        Thread safety: atomic. Needs a driver of CUDA 12.3.
        """
        cdef Status status
        cdef uint64_t handle = 0
        cdef unsigned value = 0
        cdef bool has_default = default_value is not None
        if has_default:
            value = checked_default(default_value)
        with nogil:
            status = self._builder.create_condition(has_default, value, handle)
        check(status, "create a condition in", self)
        return condition_of(handle)

    cdef tuple add_conditional(self, object condition, int kind, size_t count, str verb):
        cdef Status status
        cdef vector[Ref[core.GraphBuilder]] bodies
        cdef uint64_t handle = checked_condition(condition)
        cdef size_t index
        if (count > 1 or kind == CU_GRAPH_COND_TYPE_SWITCH) and loaded_driver().version < FIRST_WITH_SWITCH:
            raise NotSupportedError(f"cannot {verb} {self}: it needs a driver of CUDA 12.8 or newer")
        bodies.resize(count)
        with nogil:
            status = self._builder.add_conditional(handle, kind, bodies)
        check(status, verb, self)
        return tuple([adopt(bodies[index].detach()) for index in range(count)])

    def if_then(self, condition):
        """Adds a node that runs its body if the condition is not 0 when the graph comes to it.

        Parameters
        ----------
        condition : GraphCondition
            Of this builder; each is for one node.

        Returns
        -------
        GraphBuilder
            Builds the body, between its own `begin_building` and `end_building`, before this one ends.

        Thread safety: atomic. Needs a driver of CUDA 12.3.
        """
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_IF, 1, "add an if to")[0]

    def if_else(self, condition):
        """Adds a node that runs the first of two bodies if the condition is not 0, else the second.

        Parameters
        ----------
        condition : GraphCondition
            Of this builder; each is for one node.

        Returns
        -------
        tuple of GraphBuilder
            Two, as of :meth:`if_then`.

        Thread safety: atomic. Needs a driver of CUDA 12.8.
        """
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_IF, 2, "add an if with an else to")

    def switch(self, condition, count):
        """Adds a node that runs the body whose number the condition is; none if there is no such number.

        Parameters
        ----------
        condition : GraphCondition
            Of this builder; each is for one node.
        count : int
            How many bodies, 4096 at most.

        Returns
        -------
        tuple of GraphBuilder
            As of :meth:`if_then`.

        Thread safety: atomic. Needs a driver of CUDA 12.8.
        """
        number = checked_count(count, 1)
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_SWITCH, number, "add a switch to")

    def while_loop(self, condition):
        """Adds a node that runs its body again and again, as long as the condition is not 0 before.

        Parameters
        ----------
        condition : GraphCondition
            Of this builder; each is for one node.

        Returns
        -------
        GraphBuilder
            As of :meth:`if_then`.

        Thread safety: atomic. Needs a driver of CUDA 12.3.
        """
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_WHILE, 1, "add a loop to")[0]

    def debug_dot_print(self, path, options=None):
        """Writes the graph that was built as a file for Graphviz.

        Parameters
        ----------
        path : str, bytes or path
            Not of a file descriptor.
        options : GraphDebugPrintOptions or dict, optional

        Thread safety: atomic.
        """
        cdef Ref[GraphDefinition] definition
        self.check_primary("print")
        self.take_definition(definition, "print")
        print_dot(definition.get()[0], path, options, self)

    @property
    def graph_definition(self):
        """The graph that was built, as a definition: it can be looked at and changed, and stays when this is closed.

        Changes are in what :meth:`complete` makes from then on. A graph with a `Parameter` in it is not changed. It is
        there after :meth:`end_building`; a part has none, nor has the body of a conditional node.

        Thread safety: atomic.
        """
        cdef Ref[GraphDefinition] definition
        self.check_primary("take the definition of")
        self.take_definition(definition, "take the definition of")
        return PublicDefinition.show(Given.of(definition.get()[0]))

    def close(self):
        """Ends the capture, if it has not ended, and lets go of the graph. Idempotent.

        Graphs that were completed stay. A part stays in the capture, which cannot end well without it.

        Thread safety: atomic.
        """
        with nogil:
            self._builder.close()
        release_and_warn()

    @property
    def is_building(self):
        """Whether the capture has begun and not ended. Thread safety: atomic."""
        cdef bool building
        with nogil:
            building = self._builder.is_building()
        return True if building else False

    @property
    def is_join_required(self):
        """Whether it is a part that :meth:`split` made. Thread safety: atomic."""
        return self._builder.kind() == core.Kind.part

    @property
    def is_closed(self):
        """Whether it was closed, or joined to another one. Thread safety: atomic."""
        return self._builder.is_closed()

    @property
    def device(self):
        """The builder's device. Thread safety: atomic."""
        return self._stream.device

    @property
    def stream(self):
        """The stream that is captured, for other libraries too. Thread safety: atomic.

        Outside of the capture it refuses all work. It closes with the builder: its own `close()` does nothing.
        """
        return self._stream

    def __cuda_stream__(self):
        """Returns ``(0, handle)``: what other libraries submit is captured too. Thread safety: atomic.

        Raises
        ------
        ClosedError
            The handle may be another stream's by now.
        """
        if self._builder.is_closed():
            raise ClosedError(f"cannot give the handle of {self} away: it is closed")
        return self._stream.__cuda_stream__()

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return hash((GraphBuilder, <size_t>self._builder))

    def __repr__(self):
        state = " closed" if self._builder.is_closed() else KINDS[<int>self._builder.kind()]
        return f"<GraphBuilder {self._stream.number():#x}{state}>"


refuse_to_make(GraphBuilder)


cdef GraphBuilder adopt(core.GraphBuilder* made):
    cdef GraphBuilder builder = GraphBuilder.__new__(GraphBuilder)
    builder._builder = made
    made.stream().retain()
    builder._stream = Stream.adopt(&made.stream())
    return builder


cdef object example_of(object value):
    if type(value) is GraphScratch:
        return value._captured
    return value.example if type(value) is Parameter else value


cdef LaunchConfig checked_config(object config):
    if not isinstance(config, LaunchConfig):
        raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
    return config


cdef warn_of_loss():
    if warnings is not None:  # as it is at the end of the process
        text = "a graph builder was lost while it captured; the capture is ended, and its graph is gone"
        warnings.warn(text, ResourceWarning)
