"""What others make of a graph, by its handle and the driver alone, keeps what its nodes use."""

import ctypes
import gc
import weakref
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import LaunchConfig, LegacyPinnedMemoryResource, StatisticsMemoryResource, launch
from ftcuda.errors import CUDAError
from ftcuda.graph import GraphDefinition
from ftcuda.testing import faults, simulation
from tests.conftest import simulated_only
from tests.kernels import compile_code
from tests.objects.graphs import ONE, OUT_OF_MEMORY, assert_goes, needs_definitions

pytestmark = [
    needs_definitions,
    pytest.mark.thread_unsafe(reason="counts what lives, and another thread's call may be the one that lets go"),
]

SOURCE = """
extern "C" __global__ void add(int* total, int value) { atomicAdd(total, value); }
"""


class Others:
    """The driver itself, which knows a graph by its handle."""

    def __init__(self):
        self.library = ctypes.CDLL(ftcuda.driver_info().path)

    def call(self, name, *arguments):
        answer = getattr(self.library, name)(*arguments)
        assert answer == 0, f"{name} answered {answer}"

    def clone(self, handle):
        clone = ctypes.c_void_p()
        self.call("cuGraphClone", ctypes.byref(clone), ctypes.c_void_p(handle))
        return clone

    def instantiate(self, graph):
        executable = ctypes.c_void_p()
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        return executable

    def launch(self, executable, stream):
        self.call("cuGraphLaunch", executable, ctypes.c_void_p(stream.handle))
        stream.sync()

    def destroy(self, executable=None, graph=None):
        if executable is not None:
            self.call("cuGraphExecDestroy", executable)
        if graph is not None:
            self.call("cuGraphDestroy", graph)


@pytest.fixture
def others(device):
    return Others()


@pytest.fixture(scope="module")
def add():
    return compile_code(SOURCE).get_kernel("add")


class Memory:
    """Buffers of one int each, of which an account says how many there are."""

    def __init__(self):
        self.resource = StatisticsMemoryResource(LegacyPinnedMemoryResource())

    def make(self, value=0):
        buffer = self.resource.allocate(4)
        view = np.frombuffer(buffer, np.int32)
        view[0] = value
        return SimpleNamespace(buffer=buffer, address=buffer.handle)

    @property
    def count(self):
        gc.collect()
        return self.resource.statistics.current_count


@pytest.fixture
def memory():
    return Memory()


def value_at(address):
    return ctypes.c_int.from_address(address).value


def kernel_node(definition, add, memory):
    made = memory.make()
    definition.launch(ONE, add, made.buffer, 7)
    return lambda: value_at(made.address)


def memset_node(definition, add, memory):
    made = memory.make()
    definition.memset(made.buffer, 7, 4)
    return lambda: value_at(made.address) & 0xFF


def memcpy_node(definition, add, memory):
    made, source = memory.make(), memory.make(7)
    definition.memcpy(made.buffer, source.buffer, 4)
    return lambda: value_at(made.address)


def child_node(definition, add, memory):
    child = GraphDefinition()
    value = kernel_node(child, add, memory)
    definition.embed(child)
    return value


def callback_node(definition, add, memory):
    made = memory.make()
    view = np.frombuffer(made.buffer, np.int32)

    def put():
        view[0] = 7

    definition.callback(put)
    return lambda: value_at(made.address)


def event_nodes(definition, add, memory):
    made = memory.make()
    event = ftcuda.Device(0).create_event()
    definition.record(event).wait(event).launch(ONE, add, made.buffer, 7)
    event.close()
    return lambda: value_at(made.address)


KINDS = (kernel_node, memset_node, memcpy_node, child_node, callback_node, event_nodes)


@pytest.mark.parametrize("way", ["clone", "executable"])
@pytest.mark.parametrize("begins", ["before", "behind"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_others_make_keeps_what_nodes_use(kind, begins, way, others, add, memory, stream):
    """Whether the handle was asked for before there were nodes or behind them."""
    definition = GraphDefinition()
    if begins == "before":
        assert definition.handle
    value = kind(definition, add, memory)
    graph = others.clone(definition.handle) if way == "clone" else None
    executable = others.instantiate(graph or ctypes.c_void_p(definition.handle))
    del definition
    used = memory.count
    stream.sync()
    ftcuda.memory.wait_for_deallocations()
    assert memory.count == used >= 1
    others.launch(executable, stream)
    assert value() == 7
    del value
    others.destroy(executable, graph)
    assert_goes(lambda: memory.count == 0, stream.device)


def test_what_was_captured(others, add, memory, device, stream):
    builder = device.create_graph_builder().begin_building()
    made = memory.make()
    launch(builder, LaunchConfig(grid=1, block=1), add, made.buffer, 7)
    definition = builder.end_building().graph_definition
    executable = others.instantiate(ctypes.c_void_p(definition.handle))
    address = made.address
    builder.close()
    del builder, definition, made
    ftcuda.memory.wait_for_deallocations()
    assert memory.count == 1
    others.launch(executable, stream)
    assert value_at(address) == 7
    others.destroy(executable)
    assert_goes(lambda: memory.count == 0, device)


def test_a_branch(others, add, memory, device, stream):
    """What a body uses is kept by what was made of the graph around it."""
    definition = GraphDefinition()
    assert definition.handle
    node = definition.if_then(definition.create_condition(1))
    made = memory.make()
    node.then.launch(ONE, add, made.buffer, 7)
    executable = others.instantiate(ctypes.c_void_p(definition.handle))
    address = made.address
    del definition, node, made
    ftcuda.memory.wait_for_deallocations()
    assert memory.count == 1
    others.launch(executable, stream)
    assert value_at(address) == 7
    others.destroy(executable)
    assert_goes(lambda: memory.count == 0, device)


def test_a_child_alone(others, add, memory, device, stream):
    """The handle of a graph within a node; one more buffer comes after it was asked for."""
    definition = GraphDefinition()
    node = definition.embed(GraphDefinition())
    child = node.child_graph
    first, second = memory.make(), memory.make()
    child.launch(ONE, add, first.buffer, 7)
    assert child.handle
    child.launch(ONE, add, second.buffer, 8)
    clone = others.clone(child.handle)
    addresses = first.address, second.address
    del first, second, child
    node.destroy()
    del node, definition
    executable = others.instantiate(clone)
    assert memory.count == 2
    others.launch(executable, stream)
    assert [value_at(address) for address in addresses] == [7, 8]
    others.destroy(executable, clone)
    assert_goes(lambda: memory.count == 0, device)


def test_a_clone_keeps_what_it_was_cloned_with(others, add, memory, device, stream):
    """An update of the definition's node is none of the clone's."""
    definition, first, second = GraphDefinition(), memory.make(), memory.make()
    addresses = first.address, second.address
    node = definition.launch(ONE, add, first.buffer, 7)
    clone = others.clone(definition.handle)
    node.update(args=(second.buffer, 8))
    del first, second
    executables = others.instantiate(clone), others.instantiate(ctypes.c_void_p(definition.handle))
    del definition, node
    assert memory.count == 2
    for executable in executables:
        others.launch(executable, stream)
    assert [value_at(address) for address in addresses] == [7, 8]
    others.destroy(executables[0], clone)
    assert_goes(lambda: memory.count == 1, device)
    others.destroy(executables[1])
    assert_goes(lambda: memory.count == 0, device)


@pytest.mark.parametrize("end", ["update", "destroy"])
def test_what_a_node_used_goes_where_nobody_cloned_it(end, add, memory, device):
    definition, last = GraphDefinition(), memory.make()
    node = definition.launch(ONE, add, memory.make().buffer, 7)
    assert definition.handle
    for _ in range(20):
        if end == "update":
            node.update(args=(memory.make().buffer, 7))
        else:
            node.destroy()
            node = definition.launch(ONE, add, memory.make().buffer, 7)
    node.update(args=(last.buffer, 7))
    assert_goes(lambda: memory.count == 1, device)


def test_the_handle_of_a_graph_in_a_node_that_is_gone():
    definition = GraphDefinition()
    node = definition.embed(GraphDefinition())
    child = node.child_graph
    assert child.handle
    node.destroy()
    assert child.handle == 0 and not child.is_valid
    definition.embed(GraphDefinition())  # which the driver may put at the same address
    assert child.handle == 0


@pytest.mark.parametrize("end", ["destroy", "update"])
def test_a_node_with_graphs_further_within(end, add, memory, device):
    """All of them end at once; whose handle somebody has comes after a node that gave it something."""
    for _ in range(4):  # the order of nodes is that of their addresses
        definition = GraphDefinition()
        outer = definition.embed(GraphDefinition())
        middle = outer.child_graph
        nodes = [middle.launch(ONE, add, memory.make().buffer, 1) for _ in range(2)]
        inner = middle.embed(GraphDefinition()).child_graph
        nodes += [middle.launch(ONE, add, memory.make().buffer, 1) for _ in range(2)]
        assert inner.handle
        if end == "destroy":
            outer.destroy()
        else:
            outer.update(GraphDefinition())
        del nodes
        assert inner.handle == middle.handle == 0
    assert_goes(lambda: memory.count == 0, device)


def test_a_callback_goes_with_the_clone(others, device):
    class Called:
        def __call__(self):
            pass

    called = Called()
    watched = weakref.ref(called)
    definition = GraphDefinition()
    definition.callback(called)
    clone = others.clone(definition.handle)
    del called, definition
    ftcuda.memory.wait_for_deallocations()
    gc.collect()
    assert watched() is not None
    others.destroy(graph=clone)
    assert_goes(lambda: watched() is None, device)


@simulated_only
def test_a_handle_that_nobody_asked_for_costs_nothing(add, memory, stream):
    """Launches of an executable with user objects are dearer."""
    with faults.failing("cuUserObjectCreate", OUT_OF_MEMORY) as fault:
        definition = GraphDefinition()
        definition.launch(ONE, add, memory.make().buffer, 7)
        definition.instantiate().launch(stream)
        stream.sync()
        assert fault.hits == 0


def another_child(definition, add):
    parent = GraphDefinition()
    parent.embed(GraphDefinition()).update(definition)
    return parent


def another_child_of_an_executable(definition, add):
    parent, child = GraphDefinition(), GraphDefinition()
    child.launch(ONE, add, LegacyPinnedMemoryResource().allocate(4), 1)
    node = parent.embed(child)
    graph = parent.instantiate()
    graph[node].update(definition)
    return graph


def update_of_an_executable(definition, add):
    first = GraphDefinition()
    first.launch(ONE, add, LegacyPinnedMemoryResource().allocate(4), 1)
    graph = first.instantiate()
    graph.update(definition)
    return graph


MAKERS = {
    "an executable": lambda definition, add: definition.instantiate(),
    "an update": update_of_an_executable,
    "a child": lambda definition, add: GraphDefinition().embed(definition),
    "another child": another_child,
    "another child of an executable": another_child_of_an_executable,
}


@simulated_only
@pytest.mark.parametrize("name", MAKERS)
def test_what_ftcuda_makes_has_no_user_objects(name, others, add, memory, device, stream):
    """With one, each launch takes ten microseconds more. They are there again for what others make afterwards."""
    definition = GraphDefinition()
    value = kernel_node(definition, add, memory)
    handle = definition.handle
    before = [simulation.calls(entry) for entry in ("cuGraphReleaseUserObject", "cuUserObjectCreate")]
    made = MAKERS[name](definition, add)
    calls = [simulation.calls(entry) for entry in ("cuGraphReleaseUserObject", "cuUserObjectCreate")]
    assert [now - then for now, then in zip(calls, before, strict=True)] == [2, 2]  # what was captured, and the node
    executable = others.instantiate(ctypes.c_void_p(handle))
    del definition, made
    ftcuda.memory.wait_for_deallocations()
    assert memory.count == 1
    others.launch(executable, stream)
    assert value() == 7
    del value
    others.destroy(executable)
    assert_goes(lambda: memory.count == 0, device)


@simulated_only
def test_a_child_of_a_builder_has_no_user_objects(add, memory, device):
    child = device.create_graph_builder().begin_building()
    launch(child, ONE, add, memory.make().buffer, 7)
    assert child.end_building().graph_definition.handle
    before = simulation.calls("cuGraphReleaseUserObject")
    builder = device.create_graph_builder().begin_building()
    builder.embed(child)
    builder.end_building()
    assert simulation.calls("cuGraphReleaseUserObject") == before + 1


@simulated_only
def test_what_cannot_be_kept_again_is_said(others, add, memory, device):
    """The executable is there; who asks for the handle once more is kept from nothing."""
    definition = GraphDefinition()
    definition.launch(ONE, add, memory.make().buffer, 7)
    assert definition.handle
    with (
        faults.failing("cuUserObjectCreate", OUT_OF_MEMORY),
        pytest.warns(ftcuda.CUDAWarning, match="cannot keep for others what is used by a graph: .*OUT_OF_MEMORY"),
    ):
        graph = definition.instantiate()
        graph.close()
    clone = others.clone(definition.handle)
    del definition, graph
    ftcuda.memory.wait_for_deallocations()
    assert memory.count == 1
    others.destroy(graph=clone)
    assert_goes(lambda: memory.count == 0, device)


@contextmanager
def refused(entry):
    with pytest.raises(CUDAError) as raised:
        yield
    assert raised.value.entry_point == entry


@simulated_only
@pytest.mark.parametrize("entry", ["cuUserObjectCreate", "cuGraphRetainUserObject"])
def test_what_cannot_be_kept_is_not_done(entry, add, memory, device):
    definition = GraphDefinition()
    node = definition.launch(ONE, add, memory.make().buffer, 7)
    definition.launch(ONE, add, memory.make().buffer, 7)
    for nth in 1, 2, 3:  # what was captured, and two nodes
        with faults.failing(entry, OUT_OF_MEMORY, nth=nth), refused(entry):
            assert definition.handle
    assert definition.handle
    with faults.failing(entry, OUT_OF_MEMORY), refused(entry):
        definition.launch(ONE, add, memory.make().buffer, 7)
    with faults.failing(entry, OUT_OF_MEMORY), refused(entry):
        node.update(args=(memory.make().buffer, 8))
    assert len(definition.nodes()) == 2
    assert_goes(lambda: memory.count == 2, device)
    node.update(args=(memory.make().buffer, 9))
    assert_goes(lambda: memory.count == 2, device)
    del definition, node
    assert_goes(lambda: memory.count == 0, device)
