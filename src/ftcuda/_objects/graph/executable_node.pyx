"""Nodes of graphs that are launched."""

from libcpp cimport bool
from libcpp.memory cimport unique_ptr

cimport core.graph.graph as core
cimport core.graph.graph_node as nodes
from core.graph.node_change cimport NodeChange
from core.sync.reason cimport Status
from ftcuda._objects.graph.node_changes cimport (
    child_change, copy_change, event_change, fill_change, host_change, kernel_change,
)
from ftcuda._objects.graph.node_source cimport NodeHandle, definition_of
from ftcuda._objects.launch.arguments cimport closable, numbered
from ftcuda._objects.support.raising cimport raise_status, refuse_to_make, release_and_warn


cdef class ExecutableGraphNode:
    """A node of a graph that is launched, by the node that it was made of: ``graph[node]``.

    What it is told counts for launches from now on; those before run as they were. With a `max_concurrency` it counts
    for all executables of the graph.
    """

    _made = "executable nodes are made by graph[node]"

    def __dealloc__(self):
        if self._graph != NULL:
            with nogil:
                self._graph.release()

    cdef int change(self, unique_ptr[NodeChange] change, tuple involved) except -1:
        cdef Status status
        with nogil:
            status = self._graph.update_node(self._node._given.definition[0], self._node._node[0], change.get()[0])
        if not status.ok():
            raise_status(status, "update", self, (("the graph", self._owner), *involved))
        release_and_warn()
        return 0

    def __eq__(self, other):
        if not isinstance(other, ExecutableGraphNode):
            return NotImplemented
        cdef ExecutableGraphNode theirs = other
        return self._graph == theirs._graph and self._node._node == theirs._node._node

    def __hash__(self):
        return hash((<size_t>self._graph, <size_t>self._node._node))

    def __repr__(self):
        return f"<{type(self).__name__} {self._node} in {self._owner}>"


cdef class SwitchableNode(ExecutableGraphNode):
    """What kernels, fills and copies have in common."""

    @property
    def is_enabled(self):
        """Whether launches run it. Thread safety: atomic."""
        cdef Status status
        cdef bool enabled = False
        with nogil:
            status = self._graph.is_enabled(self._node._given.definition[0], self._node._node[0], enabled)
        if not status.ok():
            raise_status(status, "ask about", self, (("the graph", self._owner),))
        return True if enabled else False

    def enable(self):
        """Launches from now on run it. Thread safety: atomic."""
        switch(self, True)

    def disable(self):
        """Launches from now on pass it over: what comes behind it does not wait for it. Thread safety: atomic."""
        switch(self, False)


cdef class ExecutableKernelNode(SwitchableNode):
    """A kernel of a graph that is launched."""

    def update(self, *, config, kernel, args):
        """Changes what later launches launch: all of it.

        Parameters
        ----------
        config : LaunchConfig
            Without a cluster, and not cooperative.
        kernel : Kernel
        args : sequence
            All arguments; () for none. Kept until the last launch with them is done.

        Thread safety: atomic.
        """
        given = tuple(args)
        refuse_none(config=config, kernel=kernel)
        self.change(kernel_change(config, kernel, given, NULL), tuple(closable(numbered(given))))


cdef class ExecutableMemsetNode(SwitchableNode):
    """A fill of a graph that is launched."""

    def update(self, *, dst, value, width, height=1, pitch=0):
        """Changes what later launches fill: all of it.

        Parameters
        ----------
        dst, value, width, height, pitch
            As for :meth:`GraphDefinition.memset`; of one row the driver makes no several.

        Thread safety: atomic.
        """
        refuse_none(dst=dst, value=value, width=width, height=height, pitch=pitch)
        self.change(fill_change(dst, value, width, height, pitch, None), (("dst", dst),))


cdef class ExecutableMemcpyNode(SwitchableNode):
    """A copy of a graph that is launched."""

    def update(self, *, dst, src, size):
        """Changes what later launches copy: all of it.

        Parameters
        ----------
        dst, src, size
            As for :meth:`GraphDefinition.memcpy`; memory of the same kinds as before.

        Thread safety: atomic.
        """
        refuse_none(dst=dst, src=src, size=size)
        self.change(copy_change(dst, src, size, None, None), (("dst", dst), ("src", src)))


cdef class ExecutableChildGraphNode(ExecutableGraphNode):
    """A child graph of a graph that is launched."""

    def update(self, child):
        """Takes another graph of the same shape for later launches.

        Parameters
        ----------
        child : GraphDefinition

        Thread safety: atomic.
        """
        cdef bool lasts = self._graph.most() > 1  # then launches make executables too
        self.change(child_change(definition_of(child, self._node._given, "child")[0], lasts), ())


cdef class ExecutableEventRecordNode(ExecutableGraphNode):
    """A record of an event in a graph that is launched."""

    def update(self, event):
        """Changes the event that later launches record.

        Parameters
        ----------
        event : Event

        Thread safety: atomic.
        """
        self.change(event_change(nodes.CU_GRAPH_NODE_TYPE_EVENT_RECORD, event), (("the event", event),))


cdef class ExecutableEventWaitNode(ExecutableGraphNode):
    """A wait for an event in a graph that is launched."""

    def update(self, event):
        """Changes the event that later launches wait for.

        Parameters
        ----------
        event : Event

        Thread safety: atomic.
        """
        self.change(event_change(nodes.CU_GRAPH_NODE_TYPE_WAIT_EVENT, event), (("the event", event),))


cdef class ExecutableHostCallbackNode(ExecutableGraphNode):
    """A call of the host's in a graph that is launched."""

    def update(self, fn, *, user_data=None):
        """Changes what later launches call.

        Parameters
        ----------
        fn, user_data
            As for :meth:`GraphDefinition.callback`.

        Thread safety: atomic.
        """
        self.change(host_change(fn, user_data), ())


cdef int switch(SwitchableNode node, bint on) except -1:
    cdef Status status
    cdef bool enabled = on
    with nogil:
        status = node._graph.enable(node._node._given.definition[0], node._node._node[0], enabled)
    if not status.ok():
        raise_status(status, "enable" if on else "disable", node, (("the graph", node._owner),))
    return 0


def refuse_none(**given):
    for name, value in given.items():
        if value is None:
            raise TypeError(f"{name} must be given; None leaves it open")


cdef dict MAKERS = {  # by the type of a node
    nodes.CU_GRAPH_NODE_TYPE_KERNEL: lambda: ExecutableKernelNode.__new__(ExecutableKernelNode),
    nodes.CU_GRAPH_NODE_TYPE_MEMSET: lambda: ExecutableMemsetNode.__new__(ExecutableMemsetNode),
    nodes.CU_GRAPH_NODE_TYPE_MEMCPY: lambda: ExecutableMemcpyNode.__new__(ExecutableMemcpyNode),
    nodes.CU_GRAPH_NODE_TYPE_GRAPH: lambda: ExecutableChildGraphNode.__new__(ExecutableChildGraphNode),
    nodes.CU_GRAPH_NODE_TYPE_EVENT_RECORD: lambda: ExecutableEventRecordNode.__new__(ExecutableEventRecordNode),
    nodes.CU_GRAPH_NODE_TYPE_WAIT_EVENT: lambda: ExecutableEventWaitNode.__new__(ExecutableEventWaitNode),
    nodes.CU_GRAPH_NODE_TYPE_HOST: lambda: ExecutableHostCallbackNode.__new__(ExecutableHostCallbackNode),
}


cdef ExecutableGraphNode executable_node(core.Graph* graph, object owner, object node):
    """Behind `Graph.__getitem__`."""
    if not isinstance(node, NodeHandle):
        raise TypeError(f"a graph is asked for the nodes of its definition, not {type(node).__name__}")
    make = MAKERS.get((<NodeHandle>node)._node.type())
    cdef ExecutableGraphNode made = make() if make is not None else ExecutableGraphNode.__new__(ExecutableGraphNode)
    graph.retain()
    made._graph, made._owner, made._node = graph, owner, node
    return made


for each in (
    ExecutableGraphNode, SwitchableNode, ExecutableKernelNode, ExecutableMemsetNode, ExecutableMemcpyNode,
    ExecutableChildGraphNode, ExecutableEventRecordNode, ExecutableEventWaitNode, ExecutableHostCallbackNode,
):
    refuse_to_make(each)
