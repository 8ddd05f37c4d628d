"""What nodes are added to: a graph definition, or a node of one, behind which they come."""

from libc.stdint cimport uint64_t
from libcpp.utility cimport move

from core.graph.graph_builder cimport CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_SWITCH, CU_GRAPH_COND_TYPE_WHILE
from core.graph.graph_node cimport CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT
from core.graph.node_change cimport ConditionalChange, EmptyChange
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.graph.node_changes cimport (
    allocation_change, child_change, copy_change, event_change, fill_change, free_change, host_change, kernel_change,
)
from ftcuda._objects.launch.arguments cimport closable, numbered
from ftcuda._objects.support.raising cimport raise_status, release_and_warn

from ftcuda._objects.graph.graph_condition import checked_condition, checked_count

cdef dict MAKERS = {}  # by the type of a node, what makes its object; written while ftcuda is imported


cdef class Given:
    def __dealloc__(self):
        if self.definition != NULL:
            with nogil:
                self.definition.release()
                self.root.release()

    @staticmethod
    cdef Given of(core.GraphDefinition& definition):
        cdef Given given = Given.__new__(Given)
        definition.retain()
        definition.root().retain()
        given.root, given.definition = &definition.root(), &definition
        return given


cdef class NodeSource:
    """Below `GraphDefinition` and `GraphNode`, which add nodes by the same verbs."""

    cdef int put_before(self, vector[Ref[GraphNode]]& before) except -1:
        """What the nodes that are added come behind: nothing."""
        return 0

    cdef object add(self, unique_ptr[NodeChange] change, str verb, tuple involved):
        cdef vector[Ref[GraphNode]] before
        self.put_before(before)
        return self.add_behind(before, move(change), verb, involved)

    cdef object add_behind(self, vector[Ref[GraphNode]]& before, unique_ptr[NodeChange] change, str verb,
                           tuple involved):
        cdef Status status
        cdef Ref[GraphNode] node
        with nogil:
            status = self._given.definition.add(before, change.get()[0], node)
        if not status.ok():
            raise_status(status, verb, self, involved)
        release_and_warn()
        return node_object(self._given, node)

    def launch(self, config, kernel, *args):
        """Adds a launch of a kernel.

        Parameters
        ----------
        config : LaunchConfig
            Without a cluster, and not cooperative.
        kernel : Kernel
        *args
            As for :meth:`Kernel.bind`: arrays of the host's go by a `Buffer` or a `StridedMemoryView`. What is given is
            kept as long as the node, what is instantiated with it, and the launches of that.

        Returns
        -------
        KernelNode

        Thread safety: atomic.
        """
        if config is None or kernel is None:
            raise TypeError("config must be a LaunchConfig and kernel a Kernel, not None")
        involved = tuple(closable(numbered(args)))
        return self.add(kernel_change(config, kernel, args, NULL), f"add a launch of {kernel} to", involved)

    def memset(self, dst, value, width, height=1, pitch=0, *, dst_owner=None):
        """Adds a node that fills memory.

        Parameters
        ----------
        dst : Buffer or int
            A buffer is kept as the arguments of a launch are. An address is used as it is.
        value : int or object with the buffer protocol
            A byte from 0 to 255, or 1, 2 or 4 bytes.
        width : int
            Elements of that size in a row.
        height : int
            Rows.
        pitch : int
            Bytes from row to row, if there are several.
        dst_owner : object, optional
            Kept in place of a buffer, where `dst` is an address.

        Returns
        -------
        MemsetNode

        Thread safety: atomic.

        Raises
        ------
        ValueError
            The buffer ends before.
        """
        if any(each is None for each in (dst, value, width, height, pitch)):
            raise TypeError("a node that fills memory needs dst, value, width, height and pitch")
        return self.add(fill_change(dst, value, width, height, pitch, dst_owner), "add a fill to",
                        (("dst", dst), ("dst_owner", dst_owner)))

    def memcpy(self, dst, src, size, *, dst_owner=None, src_owner=None):
        """Adds a node that copies memory: of devices, pinned, or managed.

        Parameters
        ----------
        dst, src : Buffer or int
            A buffer is kept as the arguments of a launch are. An address is used as it is.
        size : int
            Bytes.
        dst_owner, src_owner : object, optional
            Kept in place of a buffer, where `dst` or `src` is an address.

        Returns
        -------
        MemcpyNode

        Thread safety: atomic.

        Raises
        ------
        ValueError
            A buffer ends before.
        """
        if any(each is None for each in (dst, src, size)):
            raise TypeError("a node that copies memory needs dst, src and size")
        return self.add(copy_change(dst, src, size, dst_owner, src_owner), "add a copy to",
                        (("dst", dst), ("src", src), ("dst_owner", dst_owner), ("src_owner", src_owner)))

    def allocate(self, size, *, device=None, memory_type="device", peer_access=None):
        """Adds a node that allocates memory in each launch, at one address, for what comes behind it.

        A graph with such a node has one executable at a time, is not embedded, and loses no node or edge any more.

        Parameters
        ----------
        size : int
            Bytes.
        device : Device or int, optional
            The definition's.
        memory_type : GraphMemoryType or str
            ``"device"``, or what the driver takes of ``"host"`` and ``"managed"``.
        peer_access : sequence of Device or int, optional
            Further devices that reach it.

        Returns
        -------
        AllocNode
            Its `dptr` is the address.

        Thread safety: atomic.
        """
        if device is not None and as_device(device).context_of() != &self._given.definition.context():
            raise ValueError(f"cannot allocate on {device}: the definition is for another device")
        return self.add(allocation_change(size, memory_type, peer_access), "add an allocation to", ())

    def deallocate(self, dptr):
        """Adds a node that frees what a node allocated.

        What none frees stays until the next launch, or until it is freed elsewhere.

        Parameters
        ----------
        dptr : int
            Of an `AllocNode`, of this definition or another one.

        Returns
        -------
        FreeNode

        Thread safety: atomic.
        """
        return self.add(free_change(dptr), "add a free to", ())

    def record(self, event):
        """Adds a node that records an event in each launch.

        Parameters
        ----------
        event : Event
            Kept as the arguments of a launch are.

        Returns
        -------
        EventRecordNode

        Thread safety: atomic.
        """
        return self.add(
            event_change(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event), "add a record to", (("the event", event),))

    def wait(self, event):
        """Adds a node that waits for an event, as it was recorded when a launch comes to it.

        Parameters
        ----------
        event : Event
            Kept as the arguments of a launch are.

        Returns
        -------
        EventWaitNode

        Thread safety: atomic.
        """
        return self.add(event_change(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event), "add a wait to", (("the event", event),))

    def callback(self, fn, *, user_data=None):
        """Adds a call of a function of the host's. What comes behind it waits until that has returned.

        Parameters
        ----------
        fn : callable or function pointer of ctypes
            As for :meth:`GraphBuilder.callback`.
        user_data : int or bytes-like, optional
            For a function pointer. Bytes are copied, and the copy is kept.

        Returns
        -------
        HostCallbackNode

        Thread safety: atomic.
        """
        return self.add(host_change(fn, user_data), "add a callback to", ())

    def embed(self, child):
        """Adds a copy of all of another graph as one node; of one with conditional or memory nodes the driver makes
        none.

        Parameters
        ----------
        child : GraphDefinition
            It may change later, and the copy stays as it is.

        Returns
        -------
        ChildGraphNode

        Thread safety: atomic.
        """
        return self.add(child_change(definition_of(child, self._given, "child")[0], False), f"embed {child} in", ())

    def join(self, *nodes):
        """Adds a node that does nothing, behind these and whatever it is added to.

        Parameters
        ----------
        *nodes : GraphNode

        Returns
        -------
        EmptyNode

        Thread safety: atomic.
        """
        cdef vector[Ref[GraphNode]] before
        self.put_before(before)
        put_nodes([node for node in dict.fromkeys(nodes) if node != self], before)
        return self.add_behind(before, unique_ptr[NodeChange](new EmptyChange()), "add a join to", ())

    cdef object add_conditional(self, object condition, int kind, size_t count, str verb):
        cdef uint64_t handle = checked_condition(condition)
        return self.add(unique_ptr[NodeChange](new ConditionalChange(handle, kind, count)), verb, ())

    def if_then(self, condition):
        """Adds a node that runs a graph if the condition is not 0 when a launch comes to it.

        Parameters
        ----------
        condition : GraphCondition
            Of the same definition; each is for one node.

        Returns
        -------
        IfNode
            Its `then` is the graph, to which nodes are added.

        Thread safety: atomic. Needs a driver of CUDA 12.3.
        """
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_IF, 1, "add an if to")

    def if_else(self, condition):
        """Adds a node that runs one of two graphs: `then` if the condition is not 0, else `else_`.

        Parameters
        ----------
        condition : GraphCondition
            As of :meth:`if_then`.

        Returns
        -------
        IfElseNode

        Thread safety: atomic. Needs a driver of CUDA 12.8.
        """
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_IF, 2, "add an if with an else to")

    def while_loop(self, condition):
        """Adds a node that runs a graph again and again, as long as the condition is not 0 before.

        Parameters
        ----------
        condition : GraphCondition
            As of :meth:`if_then`.

        Returns
        -------
        WhileNode
            Its `body` is the graph.

        Thread safety: atomic. Needs a driver of CUDA 12.3.
        """
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_WHILE, 1, "add a loop to")

    def switch(self, condition, count):
        """Adds a node that runs the graph whose number the condition is; none if there is no such number.

        Parameters
        ----------
        condition : GraphCondition
            As of :meth:`if_then`.
        count : int
            How many graphs, 4096 at most.

        Returns
        -------
        SwitchNode
            Its `branches` are the graphs.

        Thread safety: atomic. Needs a driver of CUDA 12.8.
        """
        number = checked_count(count, 1)
        return self.add_conditional(condition, CU_GRAPH_COND_TYPE_SWITCH, number, "add a switch to")


cdef class NodeHandle(NodeSource):
    """Below `GraphNode`: the node itself."""

    def __dealloc__(self):
        if self._node != NULL:
            with nogil:
                self._node.release()

    cdef int put_before(self, vector[Ref[GraphNode]]& before) except -1:
        before.push_back(Ref[GraphNode](self._node[0]))
        return 0


cdef int declare(int type, object make) except -1:
    """Says what makes objects for nodes of a type: `make(conditional type, graphs within)`. While ftcuda is imported.
    """
    MAKERS[type] = make
    return 0


cdef object node_object(Given given, Ref[GraphNode]& node):
    """The object for a node."""
    cdef core.NodeState state
    cdef Status status
    cdef int kind = node.get().type()
    with nogil:
        status = given.definition.state(node.get()[0], state)  # of a node that is gone by now it says nothing
    make = MAKERS.get(kind, MAKERS[-1])
    cdef NodeHandle made = make(state.parameters.conditional.type, state.within.size() if status.ok() else 0)
    made._given = given
    made._node = node.get()
    made._node.retain()
    return made


cdef int put_nodes(object nodes, vector[Ref[GraphNode]]& found) except -1:
    for each in nodes:
        if not isinstance(each, NodeHandle):
            raise TypeError(f"a node must be a GraphNode, not {type(each).__name__}")
        found.push_back(Ref[GraphNode]((<NodeHandle>each)._node[0]))
    return 0


cdef core.GraphDefinition* definition_of(object child, Given given, str name) except NULL:
    """Of a definition that is none of `given`'s."""
    if not isinstance(child, NodeSource) or isinstance(child, NodeHandle):
        raise TypeError(f"{name} must be a GraphDefinition, not {type(child).__name__}")
    cdef Given found = (<NodeSource>child)._given
    if found.root == given.root:
        raise ValueError(f"{name} must be another graph definition, and not part of this one")
    return found.definition
