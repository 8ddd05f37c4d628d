"""Graphs that are launched."""

cimport core.graph.graph as core
from core.graph.graph_definition cimport GraphDefinition
from core.stream.stream cimport Stream as CoreStream
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport device_of
from ftcuda._objects.graph.bound_graph cimport bind
from ftcuda._objects.graph.executable_node cimport executable_node
from ftcuda._objects.graph.graph_source cimport GraphSource
from ftcuda._objects.graph.node_source cimport NodeHandle, NodeSource
from ftcuda._objects.stream.stream cimport Stream, as_stream, core_stream, quick_stream
from ftcuda._objects.support.raising cimport check, raise_status, refuse_to_make, release_and_warn

from ftcuda._objects.graph.graph_options import GraphCompleteOptions
from ftcuda._objects.support.options import checked, integer
from ftcuda.errors import CUDAError, NotSupportedError

MOST_EXECUTABLES = 256  # of a graph

# CUgraphExecUpdateResult, cuda.h 13.0.
REFUSALS = {
    2: "the graphs have not the same nodes and edges",
    3: "a node is of another kind",
    4: "a kernel is of another context or kind, or the driver cannot change it",
    5: "a parameter cannot be changed",
    6: "a node is of a kind that cannot be changed",
    7: "a kernel that cannot be changed to that one",
    8: "an attribute of a node cannot be changed",
}


cdef class Graph:
    """A graph that is launched: all that was captured in a `GraphBuilder`, as one submission.

    Made by :meth:`GraphBuilder.complete`. Any number of threads may launch it, in any streams. Its launches run one
    after the other, in the order in which they were submitted; with a `max_concurrency` those in different streams may
    run at once. What was captured is kept until the last is done.
    """

    _made = "graphs are made by GraphBuilder.complete()"

    def __dealloc__(self):
        if self._graph != NULL:
            with nogil:
                self._graph.close()
                self._graph.release()

    @staticmethod
    cdef Graph instantiate(GraphDefinition& definition, object options, object builder):
        cdef Ref[core.Graph] made
        cdef Status status
        cdef CoreStream* upload = NULL
        cdef unsigned flags = 0
        cdef unsigned most
        cdef Stream stream = None
        options = checked(options, GraphCompleteOptions)
        asked = integer(options.max_concurrency, "max_concurrency")
        if not 1 <= asked <= MOST_EXECUTABLES:
            raise ValueError(f"max_concurrency must be from 1 to {MOST_EXECUTABLES}, not {asked}")
        most = asked
        if options.auto_free_on_launch:
            flags |= core.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
        if options.device_launch:
            flags |= core.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
        if options.use_node_priority:
            flags |= core.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
        if options.upload_stream is not None:
            stream = as_stream(options.upload_stream)
            upload = stream.on(NULL)
        with nogil:
            status = core.Graph.instantiate(definition, flags, most, upload, made)
        if not status.ok():
            raise_status(status, "complete", builder, (("the stream", stream),))
        cdef Graph graph = Graph.__new__(Graph)
        graph._graph = made.detach()
        return graph

    @property
    def handle(self):
        """The ``CUgraphExec`` as an integer, the first if there are several; 0 once closed. Thread safety: atomic.

        Code that launches it by itself launches it with the arguments that the last :meth:`BoundGraph.launch` left.
        """
        return 0 if self._graph.is_closed() else <size_t>self._graph.cu_graph_exec()

    @property
    def device(self):
        """The graph's device. Thread safety: atomic."""
        return device_of(&self._graph.context())

    @property
    def is_closed(self):
        """Whether :meth:`close` was called. Thread safety: atomic."""
        return self._graph.is_closed()

    @property
    def max_concurrency(self):
        """How many launches may run at once. Thread safety: atomic."""
        return self._graph.most()

    @property
    def executable_count(self):
        """How many executables of the driver's the graph has now; 0 once closed. Thread safety: atomic."""
        cdef unsigned count = 0
        cdef Status status
        with nogil:
            status = self._graph.count(count)
        check(status, "count the executables of", self)
        return count

    @property
    def scratch_size(self):
        """Bytes of scratch memory that each executable has. Thread safety: atomic."""
        return self._graph.scratch_size()

    def launch(self, stream):
        """Submits the graph to a stream, after its launches before; with a `max_concurrency`, after those there.

        Parameters
        ----------
        stream : Stream or object with ``__cuda_stream__``
            None that is captured: the driver captures no launch of a graph. :meth:`GraphBuilder.embed` is what to call.

        Thread safety: atomic. Stream order: a submission.
        """
        cdef Status status
        cdef Stream where = quick_stream(stream)
        cdef CoreStream* target = core_stream(where, &self._graph.context())
        with nogil:
            status = self._graph.launch(target[0])
        if not status.ok():
            raise_status(status, "launch", f"{self} in {where}", (("the stream", where), ("the graph", self)))

    def bind(self):
        """Returns what launches the graph with other arguments, by the names that a `Parameter` gave them.

        Returns
        -------
        BoundGraph

        Thread safety: atomic.

        Raises
        ------
        ValueError
            No argument has a name.
        """
        return bind(self._graph, self)

    def __getitem__(self, node):
        """Returns the node that this graph has of a node of its definition, by which its later launches are changed.

        Parameters
        ----------
        node : GraphNode
            Of the definition that the graph was made of, before any :meth:`update`.

        Returns
        -------
        ExecutableGraphNode
            An `ExecutableKernelNode` for a `KernelNode`, and so on.

        Thread safety: atomic.
        """
        return executable_node(self._graph, self, node)

    def upload(self, stream):
        """Moves what the device needs for the graph there, so that its first launch need not.

        Parameters
        ----------
        stream : Stream or object with ``__cuda_stream__``

        Thread safety: atomic. Stream order: a submission.
        """
        cdef Status status
        cdef Stream where = as_stream(stream)
        cdef CoreStream* target = where.on(&self._graph.context())
        with nogil:
            status = self._graph.upload(target[0])
        if not status.ok():
            raise_status(status, "upload", f"{self} in {where}", (("the stream", where), ("the graph", self)))

    def update(self, source):
        """Takes the kernels, parameters and memory of another graph of the same shape, for launches from now on.

        Launches before run as they were. What they use is kept until they are done. What was disabled is enabled.

        Parameters
        ----------
        source : GraphBuilder or GraphDefinition
            A builder after its :meth:`~GraphBuilder.end_building`.

        Thread safety: atomic.

        Raises
        ------
        ClosedError
            A node that was disabled was destroyed since, so that nobody can enable it. The graph is as it was.
        CUDAError
            The shape is another one, and the message says in what. The graph is as it was.
        """
        cdef Status status
        cdef int refusal = 0
        cdef Ref[GraphDefinition] definition
        if isinstance(source, GraphSource):
            (<GraphSource>source).take_definition(definition, "update a graph from")
        elif isinstance(source, NodeSource) and not isinstance(source, NodeHandle):
            if (<NodeSource>source)._given.definition != (<NodeSource>source)._given.root:
                raise NotSupportedError(f"cannot update {self} from {source}: it is within a node of another one")
            definition = Ref[GraphDefinition]((<NodeSource>source)._given.definition[0])
        else:
            raise TypeError(f"source must be a GraphBuilder or a GraphDefinition, not {type(source).__name__}")
        with nogil:
            status = self._graph.update(definition.get()[0], refusal)
        if not status.ok():
            if refusal in REFUSALS:
                raise CUDAError(
                    f"cannot update {self} from {source}: {REFUSALS[refusal]}; complete the builder to another graph",
                    status.code(), "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "cuGraphExecUpdate",
                )
            raise_status(status, "update", f"{self} from {source}", (("the graph", self),))
        release_and_warn()

    def trim(self):
        """Destroys all executables but the first; launches in progress run on. Later launches make them anew.

        Thread safety: atomic.
        """
        cdef Status status
        with nogil:
            status = self._graph.trim()
        check(status, "trim", self)

    def close(self):
        """Destroys the graph; launches in progress in other threads are submitted, and run on. Idempotent.

        Thread safety: atomic.
        """
        with nogil:
            self._graph.close()
        release_and_warn()

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return hash((Graph, <size_t>self._graph))

    def __repr__(self):
        return f"<Graph {<size_t>self._graph.cu_graph_exec():#x}{' closed' if self._graph.is_closed() else ''}>"


refuse_to_make(Graph)
