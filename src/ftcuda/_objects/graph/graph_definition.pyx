"""Graphs that are built node by node."""

from os import fspath
from tempfile import TemporaryDirectory

from libc.stdint cimport uint64_t
from libcpp cimport bool
from libcpp.memory cimport unique_ptr
from libcpp.utility cimport pair
from libcpp.vector cimport vector

from core.device.device cimport Context
from core.graph.graph_definition cimport CUgraph
from core.graph.graph_node cimport GraphNode
from core.graph.node_change cimport EmptyChange, NodeChange
from core.sync.reason cimport Reason, Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport as_device, device_of
from ftcuda._objects.graph.graph cimport Graph
from ftcuda._objects.graph.node_source cimport node_object
from ftcuda._objects.support.raising cimport check, raise_status

from ftcuda._objects.graph.graph_condition import checked_default, condition_of
from ftcuda._objects.graph.graph_options import GraphDebugPrintOptions, debug_flags
from ftcuda._objects.support.options import checked
from ftcuda._objects.support.texts import zero_ended
from ftcuda.errors import NotSupportedError


cdef class GraphDefinition(NodeSource):
    """A graph that is built node by node: what adds a node returns it, and what is added to that comes behind it.

    Nodes that are added to the definition itself come behind nothing. What they use is kept, as long as they are there
    and as what was instantiated with them. Calls of several threads come one after the other. One that a builder has
    captured, or that is within a node, is looked at and added to in the same way.

    Parameters
    ----------
    device : Device or int, optional
        Where it will run, which cuda.core takes from the thread too; None is the thread's current device.

    Thread safety: atomic. Needs a driver of CUDA 12.3.
    """

    def __cinit__(self, *, device=None):
        cdef Ref[core.GraphDefinition] made
        cdef Status status
        cdef Context* context
        if type(device) is Given:
            self._given = device
            return
        context = as_device(device).context_of()
        with nogil:
            status = core.GraphDefinition.create(context[0], made)
        if not status.ok():
            raise_status(status, "make", "a graph definition")
        self._given = Given.of(made.get()[0])

    @staticmethod
    cdef GraphDefinition show(Given given):
        return GraphDefinition.__new__(GraphDefinition, device=given)

    @property
    def device(self):
        """The device that it is for. Thread safety: atomic."""
        return device_of(&self._given.definition.context())

    @property
    def handle(self):
        """The ``CUgraph`` as an integer; 0 once the node that it is within was destroyed or updated.

        Once it was asked for, what others make of the graph, by a clone or an instantiation, keeps what the nodes use.
        They take turns with calls of the definition, and with the end of what is made of it: the driver crashes
        otherwise.

        Thread safety: atomic.
        """
        cdef CUgraph graph = NULL
        cdef Status status
        with nogil:
            status = self._given.definition.share_cu_graph(graph)
        if status.reason() == Reason.gone:
            return 0
        check(status, "give the handle away of", self)
        return <size_t>graph

    @property
    def is_valid(self):
        """Whether it is there: not, once the node that it is within was destroyed or updated. Thread safety: atomic."""
        cdef bool there = False
        cdef Status status
        with nogil:
            status = self._given.definition.is_there(there)
        check(status, "ask about", self)
        return True if there else False

    def empty(self):
        """Adds a node that does nothing, behind nothing.

        Returns
        -------
        EmptyNode

        Thread safety: atomic.
        """
        return self.add(unique_ptr[NodeChange](new EmptyChange()), "add an empty node to", ())

    def nodes(self):
        """Returns all nodes, as a set. Thread safety: atomic."""
        cdef vector[Ref[GraphNode]] found
        cdef Status status
        cdef size_t index
        with nogil:
            status = self._given.definition.nodes(found)
        check(status, "list the nodes of", self)
        return {node_object(self._given, found[index]) for index in range(found.size())}

    def edges(self):
        """Returns all edges, as a set of pairs: the second node comes behind the first. Thread safety: atomic."""
        cdef vector[pair[Ref[GraphNode], Ref[GraphNode]]] found
        cdef Status status
        cdef size_t index
        with nogil:
            status = self._given.definition.edges(found)
        check(status, "list the edges of", self)
        return {
            (node_object(self._given, found[index].first), node_object(self._given, found[index].second))
            for index in range(found.size())
        }

    def create_condition(self, default_value=None):
        """Makes a condition for one conditional node, which kernels set.

        Parameters
        ----------
        default_value : int, optional
            What it is when a launch begins, 32 bits. None: anything, until a kernel sets it.

        Returns
        -------
        GraphCondition

        Thread safety: atomic.
        """
        cdef Status status
        cdef uint64_t handle = 0
        cdef unsigned value = 0
        cdef bool has_default = default_value is not None
        if has_default:
            value = checked_default(default_value)
        with nogil:
            status = self._given.definition.create_condition(has_default, value, handle)
        check(status, "create a condition in", self)
        return condition_of(handle)

    def instantiate(self, options=None):
        """Makes a graph that can be launched, as often as it is called. What changes here later does not change that.

        With conditional nodes in it the driver has one such graph at a time: close it before the next.

        Parameters
        ----------
        options : GraphCompleteOptions or dict, optional
            With a `max_concurrency` the definition does not change as long as the graph is open.

        Returns
        -------
        Graph

        Thread safety: atomic.
        """
        if self._given.definition != self._given.root:
            raise NotSupportedError(f"cannot instantiate {self}: it is within a node of another one")
        return Graph.instantiate(self._given.definition[0], options, self)

    def debug_dot_print(self, path, options=None):
        """Writes the graph as a file for Graphviz.

        Parameters
        ----------
        path : str, bytes or path
            Not of a file descriptor.
        options : GraphDebugPrintOptions or dict, optional

        Thread safety: atomic.
        """
        print_dot(self._given.definition[0], path, options, self)

    def __eq__(self, other):
        if not isinstance(other, GraphDefinition):
            return NotImplemented
        return self._given.definition == (<GraphDefinition>other)._given.definition

    def __hash__(self):
        return hash((GraphDefinition, <size_t>self._given.definition))

    def __repr__(self):
        return f"<GraphDefinition {<size_t>self._given.definition.cu_graph():#x}>"


cdef int print_dot(core.GraphDefinition& definition, object path, object options, object subject) except -1:
    cdef Status status
    cdef unsigned flags = debug_flags(checked(options, GraphDebugPrintOptions))
    cdef bytes name
    cdef const char* text
    cdef core.GraphDefinition* printed = &definition
    target = fspath(path)
    with TemporaryDirectory() as folder:  # the driver says of no file why it cannot write it, and would wait for it
        name = zero_ended(f"{folder}/graph.dot", "path")
        text = name
        with nogil:
            status = printed.print_dot(text, flags)
        check(status, "print", subject)
        with open(name, "rb") as file:
            content = file.read()
    with open(target, "wb") as file:
        file.write(content)
    return 0
