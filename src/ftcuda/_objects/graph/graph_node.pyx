"""The nodes of graph definitions, of each kind."""

from libcpp cimport bool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

cimport core.code.kernel as kernels
cimport core.graph.graph_definition as core
cimport core.graph.graph_node as nodes
from core.completion.deferred_release cimport ForeignReference
from core.graph.graph_builder cimport CU_GRAPH_COND_TYPE_SWITCH, CU_GRAPH_COND_TYPE_WHILE
from core.graph.node_change cimport NodeChange
from core.sync.reason cimport Reason, Status
from core.sync.ref cimport Ref
from ftcuda._objects.code.kernel cimport Kernel
from ftcuda._objects.graph.graph_definition cimport GraphDefinition
from ftcuda._objects.graph.node_changes cimport (
    child_change, copy_change, event_change, fill_change, host_change, kernel_change,
)
from ftcuda._objects.graph.node_source cimport Given, declare, definition_of, put_nodes
from ftcuda._objects.launch.arguments cimport closable, numbered
from ftcuda._objects.support.raising cimport check, raise_status, refuse_to_make, release_and_warn

from ftcuda._objects.graph.adjacent_nodes import AdjacentNodes
from ftcuda._objects.graph.graph_condition import condition_of
from ftcuda._objects.launch.launch_config import LaunchConfig
from ftcuda.typing import GraphConditionalType, GraphMemoryType


cdef class GraphNode(NodeHandle):
    """A node of a graph definition. Made by what adds one. Nodes that are added to it come behind it.

    Nodes are equal if they are the same one.
    """

    _made = "nodes are made by the methods of GraphDefinition and GraphNode that add them"

    cdef core.NodeState read(self) except *:
        """What it does now; raises if it was destroyed."""
        cdef core.NodeState state
        cdef Status status
        with nogil:
            status = self._given.definition.state(self._node[0], state)
        check(status, "read", self)
        return state

    cdef int change(self, unique_ptr[NodeChange] change, tuple involved) except -1:
        cdef Status status
        with nogil:
            status = self._given.definition.update(self._node[0], change.get()[0])
        if not status.ok():
            raise_status(status, "update", self, involved)
        release_and_warn()
        return 0

    @property
    def type(self):
        """The ``CUgraphNodeType`` as an integer. Thread safety: atomic."""
        return self._node.type()

    @property
    def handle(self):
        """The ``CUgraphNode`` as an integer; another node may have it once this one is destroyed.

        Thread safety: atomic.
        """
        return <size_t>self._node.cu_node()

    @property
    def graph(self):
        """The definition that the node is of. Thread safety: atomic."""
        return GraphDefinition.show(self._given)

    @property
    def is_valid(self):
        """Whether it is there: not, once it was destroyed, or what it is within. Thread safety: atomic."""
        cdef bool there = False
        cdef Status status
        with nogil:
            status = self._given.definition.is_node_there(self._node[0], there)
        check(status, "ask about", self)
        return True if there else False

    @property
    def pred(self):
        """The nodes that it comes behind, as a set that can be changed, or assigned to.

        Thread safety: atomic; an assignment is two changes, and others may see the first alone.
        """
        return AdjacentNodes(self, False)

    @pred.setter
    def pred(self, value):
        AdjacentNodes(self, False).assign(value)

    @property
    def succ(self):
        """The nodes that come behind it, as a set that can be changed, or assigned to.

        Thread safety: atomic; an assignment is two changes, and others may see the first alone.
        """
        return AdjacentNodes(self, True)

    @succ.setter
    def succ(self, value):
        AdjacentNodes(self, True).assign(value)

    def _adjacent(self, forward):
        self.read()  # raises if it was destroyed
        return {to if forward else origin for origin, to in self.graph.edges() if (origin if forward else to) == self}

    def _connect(self, forward, others):
        cdef vector[Ref[nodes.GraphNode]] found
        cdef Status status
        cdef bool onward = forward
        put_nodes(others, found)
        with nogil:
            status = self._given.definition.connect(self._node[0], onward, found)
        check(status, "connect", self)

    def _disconnect(self, forward, others):
        cdef vector[Ref[nodes.GraphNode]] found
        cdef Status status
        cdef bool onward = forward
        put_nodes(others, found)
        with nogil:
            status = self._given.definition.disconnect(self._node[0], onward, found)
        check(status, "disconnect", self)

    def destroy(self):
        """Takes the node out of the graph, with its edges, and lets go of what it uses. Idempotent.

        What was instantiated with it keeps both. The driver takes no node out of a graph with memory nodes.

        Thread safety: atomic.
        """
        cdef Status status
        with nogil:
            status = self._given.definition.destroy(self._node[0])
        check(status, "destroy", self)
        release_and_warn()

    def __eq__(self, other):
        if not isinstance(other, GraphNode):
            return NotImplemented
        return self._node == (<GraphNode>other)._node

    def __hash__(self):
        return hash((GraphNode, <size_t>self._node))

    def __repr__(self):
        return f"<{type(self).__name__} {<size_t>self._node.cu_node():#x}>"


cdef class EmptyNode(GraphNode):
    """A node that does nothing, and that others come behind."""


cdef class KernelNode(GraphNode):
    """A node that launches a kernel."""

    def update(self, *, config=None, kernel=None, args=None):
        """Changes what is launched by graphs that are instantiated from now on. What is None stays.

        Parameters
        ----------
        config : LaunchConfig, optional
        kernel : Kernel, optional
            With its arguments, also where it has none: ``args=()``.
        args : sequence, optional
            All arguments.

        Thread safety: atomic.
        """
        if kernel is not None and args is None:
            raise ValueError("another kernel needs its args; () if it has none")
        if args is not None:
            args = tuple(args)
        if args is None or kernel is not None:
            self.change(kernel_change(config, kernel, args, NULL), tuple(closable(numbered(args or ()))))
            return
        while not self.change_arguments(config, args):
            pass  # another thread gave it another kernel

    cdef bint change_arguments(self, object config, tuple args) except -1:
        """Keeps the kernel, whose parameters the arguments must fit; False if that is another one when they did."""
        cdef core.NodeState state = self.read()
        cdef unique_ptr[NodeChange] change = kernel_change(config, self.kernel_of(state), args, &state.kept)
        cdef Status status
        with nogil:
            status = self._given.definition.update(self._node[0], change.get()[0])
        if status.reason() == Reason.other_kernel:
            return False
        if not status.ok():
            raise_status(status, "update", self, tuple(closable(numbered(args))))
        release_and_warn()
        return True

    @property
    def grid(self):
        """Blocks, as three ints. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        return (state.parameters.kernel.gridDimX, state.parameters.kernel.gridDimY, state.parameters.kernel.gridDimZ)

    @property
    def block(self):
        """Threads of a block, as three ints. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        return (state.parameters.kernel.blockDimX, state.parameters.kernel.blockDimY, state.parameters.kernel.blockDimZ)

    @property
    def shmem_size(self):
        """Bytes of dynamic shared memory of a block. Thread safety: atomic."""
        return self.read().parameters.kernel.sharedMemBytes

    @property
    def kernel(self):
        """The kernel. Thread safety: atomic."""
        return self.kernel_of(self.read())

    cdef Kernel kernel_of(self, core.NodeState state):
        cdef Ref[kernels.Kernel] made
        cdef Status status
        cdef kernels.Kernel* kernel
        if state.kept[1].get() != NULL:
            kernel = <kernels.Kernel*>state.kept[1].get()
            kernel.retain()
            return Kernel.made_of(kernel, kernel.name().decode(), None)
        with nogil:
            status = kernels.Kernel.wrap(self._given.definition.context(), state.parameters.kernel.func, made)
        check(status, "find the kernel of", self)
        return Kernel.made_of(made.detach(), f"{<size_t>state.parameters.kernel.func:#x}", None)

    @property
    def config(self):
        """The configuration; of a node that was captured without cluster and the like. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        if state.kept[2].get() != NULL:
            return of_caller(state, 2)
        node = state.parameters.kernel
        return LaunchConfig(
            grid=(node.gridDimX, node.gridDimY, node.gridDimZ),
            block=(node.blockDimX, node.blockDimY, node.blockDimZ),
            shmem_size=node.sharedMemBytes,
        )


cdef class MemsetNode(GraphNode):
    """A node that fills memory."""

    def update(self, *, dst=None, value=None, width=None, height=None, pitch=None, dst_owner=None):
        """Changes what is filled by graphs that are instantiated from now on. What is None stays.

        Parameters
        ----------
        dst, value, width, height, pitch, dst_owner
            As for :meth:`GraphDefinition.memset`.

        Thread safety: atomic.
        """
        self.change(fill_change(dst, value, width, height, pitch, dst_owner), (("dst", dst), ("dst_owner", dst_owner)))

    @property
    def dptr(self):
        """The address. Thread safety: atomic."""
        return self.read().parameters.memset.dst

    @property
    def value(self):
        """What is filled in, as a number. Thread safety: atomic."""
        return self.read().parameters.memset.value

    @property
    def element_size(self):
        """Bytes of an element: 1, 2 or 4. Thread safety: atomic."""
        return self.read().parameters.memset.elementSize

    @property
    def width(self):
        """Elements in a row. Thread safety: atomic."""
        return self.read().parameters.memset.width

    @property
    def height(self):
        """Rows. Thread safety: atomic."""
        return self.read().parameters.memset.height

    @property
    def pitch(self):
        """Bytes from row to row, if there are several. Thread safety: atomic."""
        return self.read().parameters.memset.pitch


cdef class MemcpyNode(GraphNode):
    """A node that copies memory."""

    def update(self, *, dst=None, src=None, size=None, dst_owner=None, src_owner=None):
        """Changes what is copied by graphs that are instantiated from now on. What is None stays.

        Parameters
        ----------
        dst, src, size, dst_owner, src_owner
            As for :meth:`GraphDefinition.memcpy`.

        Thread safety: atomic.
        """
        involved = (("dst", dst), ("src", src), ("dst_owner", dst_owner), ("src_owner", src_owner))
        self.change(copy_change(dst, src, size, dst_owner, src_owner), involved)

    @property
    def dst(self):
        """The address that is written. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        copied = state.parameters.memcpy.copyParams
        return <size_t>copied.dstHost if copied.dstMemoryType == nodes.CU_MEMORYTYPE_HOST else copied.dstDevice

    @property
    def src(self):
        """The address that is read. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        copied = state.parameters.memcpy.copyParams
        return <size_t>copied.srcHost if copied.srcMemoryType == nodes.CU_MEMORYTYPE_HOST else copied.srcDevice

    @property
    def size(self):
        """Bytes. Thread safety: atomic."""
        return self.read().parameters.memcpy.copyParams.WidthInBytes


cdef class AllocNode(GraphNode):
    """A node that allocates memory."""

    @property
    def dptr(self):
        """The address, the same in all launches. Thread safety: atomic."""
        return self.read().parameters.alloc.dptr

    @property
    def bytesize(self):
        """Bytes. Thread safety: atomic."""
        return self.read().parameters.alloc.bytesize

    @property
    def device_id(self):
        """The device's ordinal. Thread safety: atomic."""
        return self._given.definition.context().device().ordinal()

    @property
    def memory_type(self):
        """A `ftcuda.typing.GraphMemoryType`. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        props = state.parameters.alloc.poolProps
        if props.allocType == nodes.CU_MEM_ALLOCATION_TYPE_MANAGED:
            return GraphMemoryType.MANAGED
        if props.location.type == nodes.CU_MEM_LOCATION_TYPE_DEVICE:
            return GraphMemoryType.DEVICE
        return GraphMemoryType.HOST

    @property
    def peer_access(self):
        """Ordinals of the further devices that reach it. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        cdef size_t index
        return tuple([
            state.parameters.alloc.accessDescs[index].location.id
            for index in range(state.parameters.alloc.accessDescCount)
        ])


cdef class FreeNode(GraphNode):
    """A node that frees memory which a node allocated."""

    @property
    def dptr(self):
        """The address. Thread safety: atomic."""
        return self.read().parameters.free.dptr


cdef class EventRecordNode(GraphNode):
    """A node that records an event."""

    def update(self, event):
        """Changes the event in graphs that are instantiated from now on.

        Parameters
        ----------
        event : Event

        Thread safety: atomic.
        """
        self.change(event_change(nodes.CU_GRAPH_NODE_TYPE_EVENT_RECORD, event), (("the event", event),))

    @property
    def event(self):
        """The event; None, if it was captured. Thread safety: atomic."""
        return of_caller(self.read(), 1)


cdef class EventWaitNode(GraphNode):
    """A node that waits for an event."""

    def update(self, event):
        """Changes the event in graphs that are instantiated from now on.

        Parameters
        ----------
        event : Event

        Thread safety: atomic.
        """
        self.change(event_change(nodes.CU_GRAPH_NODE_TYPE_WAIT_EVENT, event), (("the event", event),))

    @property
    def event(self):
        """The event; None, if it was captured. Thread safety: atomic."""
        return of_caller(self.read(), 1)


cdef class HostCallbackNode(GraphNode):
    """A node that calls a function of the host's."""

    def update(self, fn, *, user_data=None):
        """Changes what is called by graphs that are instantiated from now on.

        Parameters
        ----------
        fn, user_data
            As for :meth:`GraphDefinition.callback`.

        Thread safety: atomic.
        """
        self.change(host_change(fn, user_data), ())

    @property
    def callback(self):
        """The callable; None for a function pointer, or if it was captured. Thread safety: atomic."""
        return of_caller(self.read(), 1)


cdef class ChildGraphNode(GraphNode):
    """A node that is a copy of another graph."""

    def update(self, child):
        """Takes a copy of another graph in place of the one before, for graphs that are instantiated from now on.

        Parameters
        ----------
        child : GraphDefinition

        Thread safety: atomic.
        """
        self.change(child_change(definition_of(child, self._given, "child")[0], False), ())

    @property
    def child_graph(self):
        """The copy, as a definition: it can be looked at and changed. Thread safety: atomic."""
        return graphs_within(self)[0]


cdef class ConditionalNode(GraphNode):
    """A node that runs graphs by a condition. Of one that was captured nothing more is known."""

    @property
    def condition(self):
        """The condition; None, if it was captured. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        return condition_of(state.parameters.conditional.handle) if state.within.size() else None

    @property
    def cond_type(self):
        """The kind of node, a `ftcuda.typing.GraphConditionalType`; None, if it was captured. Thread safety: atomic."""
        cdef core.NodeState state = self.read()
        return KINDS[state.parameters.conditional.type] if state.within.size() else None

    @property
    def branches(self):
        """The graphs, as a tuple of definitions; empty, if it was captured. Thread safety: atomic."""
        return graphs_within(self)


cdef class IfNode(ConditionalNode):
    """A node that runs a graph if its condition is not 0."""

    @property
    def then(self):
        """The graph. Thread safety: atomic."""
        return graphs_within(self)[0]


cdef class IfElseNode(ConditionalNode):
    """A node that runs one of two graphs."""

    @property
    def then(self):
        """The graph for a condition that is not 0. Thread safety: atomic."""
        return graphs_within(self)[0]

    @property
    def else_(self):
        """The graph for a condition that is 0. Thread safety: atomic."""
        return graphs_within(self)[1]


cdef class WhileNode(ConditionalNode):
    """A node that runs a graph as long as its condition is not 0."""

    @property
    def body(self):
        """The graph. Thread safety: atomic."""
        return graphs_within(self)[0]


cdef class SwitchNode(ConditionalNode):
    """A node that runs the graph whose number its condition is: one of its `branches`."""


KINDS = tuple(map(GraphConditionalType, ("if", "while", "switch")))  # by CUgraphConditionalNodeType


cdef object of_caller(core.NodeState state, size_t index):
    """What the caller gave, if the node keeps it there; else None."""
    return None if state.kept[index].get() == NULL else <object>(<ForeignReference*>state.kept[index].get()).object()


cdef tuple graphs_within(GraphNode node):
    cdef core.NodeState state = node.read()
    cdef size_t index
    return tuple([
        GraphDefinition.show(Given.of(state.within[index].get()[0]))
        for index in range(state.within.size())
    ])


def make_conditional(kind, count):
    if count == 0:
        return ConditionalNode.__new__(ConditionalNode)
    if kind == CU_GRAPH_COND_TYPE_WHILE:
        return WhileNode.__new__(WhileNode)
    if kind == CU_GRAPH_COND_TYPE_SWITCH:
        return SwitchNode.__new__(SwitchNode)
    return IfNode.__new__(IfNode) if count == 1 else IfElseNode.__new__(IfElseNode)


declare(-1, lambda kind, count: GraphNode.__new__(GraphNode))  # whatever else there is
declare(nodes.CU_GRAPH_NODE_TYPE_EMPTY, lambda kind, count: EmptyNode.__new__(EmptyNode))
declare(nodes.CU_GRAPH_NODE_TYPE_KERNEL, lambda kind, count: KernelNode.__new__(KernelNode))
declare(nodes.CU_GRAPH_NODE_TYPE_MEMSET, lambda kind, count: MemsetNode.__new__(MemsetNode))
declare(nodes.CU_GRAPH_NODE_TYPE_MEMCPY, lambda kind, count: MemcpyNode.__new__(MemcpyNode))
declare(nodes.CU_GRAPH_NODE_TYPE_MEM_ALLOC, lambda kind, count: AllocNode.__new__(AllocNode))
declare(nodes.CU_GRAPH_NODE_TYPE_MEM_FREE, lambda kind, count: FreeNode.__new__(FreeNode))
declare(nodes.CU_GRAPH_NODE_TYPE_EVENT_RECORD, lambda kind, count: EventRecordNode.__new__(EventRecordNode))
declare(nodes.CU_GRAPH_NODE_TYPE_WAIT_EVENT, lambda kind, count: EventWaitNode.__new__(EventWaitNode))
declare(nodes.CU_GRAPH_NODE_TYPE_HOST, lambda kind, count: HostCallbackNode.__new__(HostCallbackNode))
declare(nodes.CU_GRAPH_NODE_TYPE_GRAPH, lambda kind, count: ChildGraphNode.__new__(ChildGraphNode))
declare(nodes.CU_GRAPH_NODE_TYPE_CONDITIONAL, make_conditional)

for each in (
    GraphNode, EmptyNode, KernelNode, MemsetNode, MemcpyNode, AllocNode, FreeNode, EventRecordNode, EventWaitNode,
    HostCallbackNode, ChildGraphNode, ConditionalNode, IfNode, IfElseNode, WhileNode, SwitchNode,
):
    refuse_to_make(each)
