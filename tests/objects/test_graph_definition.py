"""Graphs that are built node by node."""

import ctypes
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, Device, LaunchConfig, LegacyPinnedMemoryResource, NotSupportedError, launch
from ftcuda.errors import CUDAError
from ftcuda.graph import (
    ConditionalNode,
    EmptyNode,
    ExecutableKernelNode,
    GraphCompleteOptions,
    GraphDefinition,
    GraphNode,
    KernelNode,
    Parameter,
)
from ftcuda.testing import faults, simulated_clock, together
from ftcuda.typing import GraphConditionalType
from tests.conftest import simulated_only
from tests.kernels import compile_code
from tests.objects.graphs import (
    DRIVER,
    ONE,
    OUT_OF_MEMORY,
    assert_goes,
    assert_kept,
    assert_nothing_left,
    meet,
    needs_definitions,
    new_log,
    written,
)

pytestmark = [
    needs_definitions,
    pytest.mark.thread_unsafe(reason="counts what lives, and makes threads of its own"),
]

SOURCE = """
extern "C" __global__ void append(int* log, int value) { int at = ++log[0]; log[at] = value; }
extern "C" __global__ void put(int* place, int value) { *place = value; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void count(int* total) { atomicAdd(total, 1); }
"""


@pytest.fixture(scope="module")
def kernels():
    code = compile_code(SOURCE)
    return SimpleNamespace(**{name: code.get_kernel(name) for name in ("append", "put", "nothing", "count")})


@pytest.fixture
def make_log(pinned):
    def make():
        memory, view = new_log(pinned)
        return SimpleNamespace(memory=memory, view=view, written=lambda: written(view))

    return make


@pytest.fixture
def make_words(pinned):
    """Makes pinned memory of 16 ints, and a view of it."""
    return lambda: pinned(np.zeros(16, np.int32))


def run(definition, stream, times=1):
    graph = definition.instantiate()
    for _ in range(times):
        graph.launch(stream)
    stream.sync()
    graph.close()


def test_nodes_run_in_the_order_of_their_edges(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    first = definition.launch(ONE, kernels.append, log.memory, 1)
    assert isinstance(first, KernelNode) and first.is_valid and first.graph == definition
    first.launch(ONE, kernels.append, log.memory, 2).launch(ONE, kernels.append, log.memory, 3)
    run(definition, stream)
    assert log.written() == [1, 2, 3]


def test_an_empty_definition_runs(stream):
    definition = GraphDefinition()
    assert definition.nodes() == set() and definition.edges() == set()
    run(definition, stream)


def test_edges_are_sets(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    one, two, three = (definition.launch(ONE, kernels.append, log.memory, value) for value in (1, 2, 3))
    assert definition.nodes() == {one, two, three} and definition.edges() == set()
    one.succ.add(two)
    one.succ.add(two)  # is there
    assert definition.edges() == {(one, two)} and list(two.pred) == [one] and one in two.pred and two in one.succ
    three.pred = [two]
    assert definition.edges() == {(one, two), (two, three)} and len(three.pred) == 1
    two.pred.discard(three)  # is not there
    three.pred |= {one}
    assert three.pred == {one, two}
    three.pred -= {one}
    assert three.pred == {two} and one.succ | {three} == {two, three}
    with pytest.raises(TypeError, match="GraphNode"):
        one.succ.add("two")
    run(definition, stream)
    assert log.written() == [1, 2, 3]
    two.succ.clear()
    one.succ = {three}
    three.succ.update([two], ())
    run(definition, stream)
    assert log.written()[3:] == [1, 3, 2]
    with pytest.raises(CUDAError):
        one.succ.add(one)
    two.succ.add(one)  # a circle
    with pytest.raises(CUDAError):
        definition.instantiate()
    two.succ.remove(one)
    with pytest.raises(KeyError):
        two.succ.remove(one)


def test_nodes_of_another_definition_are_refused(kernels):
    definition = GraphDefinition()
    other = GraphDefinition()
    mine, theirs = definition.launch(ONE, kernels.nothing), other.launch(ONE, kernels.nothing)
    with pytest.raises(ValueError, match="another graph definition"):
        mine.succ.add(theirs)
    with pytest.raises(ValueError, match="another graph definition"):
        definition.join(mine, theirs)
    assert definition.nodes() == {mine} and definition.edges() == set()
    graph = definition.instantiate()
    with pytest.raises(ValueError, match="another graph definition"):
        graph[theirs].disable()
    graph.close()


def test_join_and_empty(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    start = definition.empty()
    parts = [start.launch(ONE, kernels.count, log.memory) for _ in range(3)]
    end = parts[0].join(*definition.nodes() - {start}, parts[1], parts[0])
    assert isinstance(end, EmptyNode) and end.pred == set(parts) and start.succ == set(parts)
    end.launch(ONE, kernels.append, log.memory, 9)
    run(definition, stream)
    assert log.view[0] == 4 and log.view[4] == 9


def test_fills_and_copies(make_words, stream):
    definition = GraphDefinition()
    memory, view = make_words()
    fill = definition.memset(memory, np.int32(7), 4)
    copy = fill.memcpy(int(memory.handle) + 32, memory, 16, dst_owner=memory)
    assert (fill.dptr, fill.value, fill.element_size, fill.width, fill.height) == (int(memory.handle), 7, 4, 4, 1)
    assert (copy.dst, copy.src, copy.size) == (int(memory.handle) + 32, int(memory.handle), 16)
    copy.memset(int(memory.handle) + 16, 255, 2, 2, 8)
    run(definition, stream)
    assert view.tolist() == [7, 7, 7, 7, 65535, 0, 65535, 0, 7, 7, 7, 7, 0, 0, 0, 0]


def test_updates_of_nodes_count_for_what_is_made_later(kernels, make_words, stream):
    definition = GraphDefinition()
    memory, view = make_words()
    base = int(memory.handle)
    put = definition.launch(ONE, kernels.put, memory, 1)
    fill = definition.memset(base + 4, 2, 1)
    copy = put.memcpy(base + 8, memory, 4)
    before = definition.instantiate()
    put.update(args=[memory, 5])
    fill.update(value=np.uint16(3), width=2)
    copy.update(dst=base + 12)
    assert (fill.value, fill.element_size, fill.width, fill.dptr) == (3, 2, 2, base + 4)
    assert (copy.dst, copy.src, copy.size) == (base + 12, base, 4)
    before.launch(stream)
    stream.sync()
    assert view[:4].tolist() == [1, 2, 1, 0]
    before.close()
    run(definition, stream)
    assert view[:4].tolist() == [5, 0x30003, 1, 5]


class Amid(int):
    """A number that calls something, once, while it becomes an argument."""

    def __int__(self):
        if self.calls:
            self.calls.pop()()
        return int.__int__(self)


def test_arguments_are_for_the_kernel_that_is_there(kernels, make_log, stream):
    """Another thread gives the node another kernel while they are packed."""
    log = make_log()
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels.put, log.memory, 1)
    value = Amid(5)
    value.calls = [lambda: node.update(kernel=kernels.append, args=(log.memory, 9))]
    node.update(args=(log.memory, value))
    assert node.kernel == kernels.append and not value.calls
    run(definition, stream)
    assert log.written() == [5]
    value.calls = [lambda: node.update(kernel=kernels.nothing, args=())]
    with pytest.raises(TypeError, match="takes 0 arguments"):
        node.update(args=(log.memory, value))
    assert node.kernel == kernels.nothing


@simulated_only
def test_what_is_said_of_a_launch_that_fails(device, stream):
    """Of memory that is left only where some is. A device without pools allocates none in graphs."""
    definition = GraphDefinition()
    if not device.features.memory_pools:
        with pytest.raises(NotSupportedError, match="does not offer it"):
            definition.allocate(64)
        return
    allocated = definition.allocate(64)
    allocated.deallocate(allocated.dptr)
    graph = definition.instantiate()
    graph.launch(stream)
    with faults.failing("cuGraphLaunch", 1), pytest.raises(CUDAError):
        graph.launch(stream)
    graph.launch(stream)
    stream.sync()
    graph.close()


def test_executable_nodes_are_equal_if_they_are_one_node_of_one_graph(kernels, make_words):
    memory, _ = make_words()
    definition = GraphDefinition()
    nodes = [definition.memset(memory, 1, 4), definition.memset(memory, 2, 4)]
    first, second = (definition.instantiate() for _ in range(2))
    assert first[nodes[0]] == first[nodes[0]] and hash(first[nodes[0]]) == hash(first[nodes[0]])
    assert first[nodes[0]] != first[nodes[1]] and first[nodes[0]] != second[nodes[0]]
    with pytest.raises(TypeError):
        first[nodes[0]].update(dst=None, value=1, width=4)
    first.close()
    second.close()


def test_a_kernel_node_keeps_what_an_update_leaves_out(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels.count, log.memory)
    node.update(config=LaunchConfig(grid=(2, 1, 1), block=3))
    assert (node.grid, node.block, node.shmem_size) == ((2, 1, 1), (3, 1, 1), 0)
    assert node.config == LaunchConfig(grid=2, block=3) and node.kernel == kernels.count
    run(definition, stream)
    assert log.view[0] == 6
    node.update(config=ONE, kernel=kernels.append, args=(log.memory, 8))
    node.update(args=(log.memory, 9))
    run(definition, stream)
    assert node.kernel == kernels.append and log.view[0] == 7 and log.view[7] == 9
    with pytest.raises(ValueError, match="args"):
        node.update(kernel=kernels.nothing)
    node.update(kernel=kernels.nothing, args=())
    run(definition, stream)
    assert log.view[0] == 7


def test_what_does_not_fit(kernels, make_words):
    definition = GraphDefinition()
    memory, _ = make_words()
    base = int(memory.handle)
    for call in (
        lambda: definition.memset(memory, 0, 65),
        lambda: definition.memset(memory, np.int32(0), 1, 3, 32),
        lambda: definition.memset(memory, 0, 1, 2, 2**62),
        lambda: definition.memcpy(base, memory, 65),
        lambda: definition.memcpy(memory, base, 65),
        lambda: definition.memcpy(base + 60, base, 8, dst_owner=memory),
        lambda: definition.memset(memory, 0, -1),
    ):
        with pytest.raises(ValueError):
            call()
    for error, call in (
        (ValueError, lambda: definition.memset(memory, 0, 1, dst_owner=memory)),
        (ValueError, lambda: definition.memcpy(memory, base, 1, dst_owner=memory)),
        (TypeError, lambda: definition.memset(None, 0, 1)),
        (TypeError, lambda: definition.memset("memory", 0, 1)),
        (OverflowError, lambda: definition.memset(memory, 256, 1)),
        (TypeError, lambda: definition.memset(memory, True, 1)),
        (TypeError, lambda: definition.launch(None, kernels.nothing)),
        (TypeError, lambda: definition.launch(ONE, "nothing")),
        (TypeError, lambda: definition.launch(ONE, kernels.put, memory)),
        (TypeError, lambda: definition.launch(ONE, kernels.put, memory, "1")),
        (TypeError, lambda: definition.launch(ONE, kernels.put, memory, Parameter("value", 1))),
        (NotSupportedError, lambda: definition.launch(LaunchConfig(grid=1, block=1, is_cooperative=True), kernels.nothing)),
        (TypeError, lambda: definition.record(None)),
        (TypeError, lambda: definition.callback(1)),
        (TypeError, lambda: definition.embed(1)),
        (ValueError, lambda: definition.embed(definition)),
        (TypeError, lambda: definition.if_then(1)),
        (TypeError, lambda: GraphDefinition(device="0")),
        (TypeError, lambda: GraphNode()),
    ):
        with pytest.raises(error):
            call()
    assert definition.nodes() == set()
    fill = definition.memset(memory, 0, 64)
    with pytest.raises(ValueError, match="smaller"):
        fill.update(width=65)
    with pytest.raises(ValueError, match="smaller"):
        fill.update(dst=base + 1, dst_owner=memory)
    assert (fill.width, fill.dptr) == (64, base)


def test_closed_things_are_refused(device, kernels, pinned):
    definition = GraphDefinition()
    memory, event = LegacyPinnedMemoryResource().allocate(8), device.create_event()
    memory.close()
    event.close()
    for call in (
        lambda: definition.launch(ONE, kernels.put, memory, 1),
        lambda: definition.memset(memory, 0, 1),
        lambda: definition.memcpy(8, memory, 1),
        lambda: definition.record(event),
        lambda: definition.wait(event),
    ):
        with pytest.raises(ClosedError, match="closed"):
            call()
    assert definition.nodes() == set()


def test_events(device, kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    gate, done = device.create_event(), device.create_event()
    wait = definition.wait(gate)
    end = wait.launch(ONE, kernels.append, log.memory, 1).record(done)
    assert wait.event is gate and end.event is done
    assert done.is_done
    run(definition, stream)
    assert done.is_done and log.written() == [1]
    other = device.create_event()
    end.update(other)
    wait.update(done)
    assert end.event is other and wait.event is done
    run(definition, stream)
    assert other.is_done


def test_an_event_that_a_graph_records_is_asked_anew(device, stream, held_clock):
    """A question that found it done is no answer after a launch."""
    definition = GraphDefinition()
    event = device.create_event()
    definition.record(event)
    graph = definition.instantiate()
    stream.record(event)
    stream.sync()
    assert event.is_done
    with held_clock():
        graph.launch(stream)
        assert not event.is_done
    stream.sync()
    assert event.is_done
    graph.close()


def test_callbacks(stream):
    definition = GraphDefinition()
    seen = []
    node = definition.callback(lambda: seen.append(1))
    node.join().callback(lambda: seen.append(2))
    run(definition, stream)
    assert seen == [1, 2] and node.callback is not None
    node.update(lambda: seen.append(3))
    run(definition, stream)
    assert seen == [1, 2, 3, 2]
    data = ctypes.c_int(5)
    found = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda at: found.append(ctypes.c_int.from_address(at).value))
    node.update(function, user_data=bytes(data))
    run(definition, stream)
    assert found == [5] and seen[-1] == 2 and node.graph == definition


def test_a_child_graph_is_a_copy(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    child = GraphDefinition()
    inner = child.launch(ONE, kernels.append, log.memory, 2)
    node = definition.launch(ONE, kernels.append, log.memory, 1).embed(child)
    node.launch(ONE, kernels.append, log.memory, 3)
    inner.destroy()
    assert child.nodes() == set() and len(node.child_graph.nodes()) == 1 and node.child_graph == node.child_graph
    del child, inner
    run(definition, stream)
    assert log.written() == [1, 2, 3]
    (within,) = node.child_graph.nodes()
    within.update(args=(log.memory, 5), kernel=kernels.append)
    within.launch(ONE, kernels.append, log.memory, 6)
    run(definition, stream)
    assert log.written()[3:] == [1, 5, 6, 3]
    with pytest.raises(NotSupportedError, match="within a node"):
        node.child_graph.instantiate()
    with pytest.raises(ValueError, match="another graph definition"):
        definition.embed(node.child_graph)


@simulated_only
def test_a_child_graph_that_the_driver_does_not_show(kernels, make_log, stream):
    """It is not added. An update is done by then: who asks for the graph is told that it is gone."""
    log, definition, child = make_log(), GraphDefinition(), GraphDefinition()
    child.launch(ONE, kernels.append, log.memory, 1)
    with faults.failing("cuGraphChildGraphNodeGetGraph", OUT_OF_MEMORY), pytest.raises(CUDAError, match="OUT_OF_MEMORY"):
        definition.embed(child)
    assert definition.nodes() == set()
    node = definition.embed(GraphDefinition())
    with (
        faults.failing("cuGraphChildGraphNodeGetGraph", OUT_OF_MEMORY),
        pytest.warns(ftcuda.CUDAWarning, match="cannot find the graph within a node"),
    ):
        node.update(child)
    assert node.is_valid and not node.child_graph.is_valid
    run(definition, stream)
    assert log.written() == [1]


def test_another_child_graph(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    first, second = GraphDefinition(), GraphDefinition()
    first.launch(ONE, kernels.append, log.memory, 1)
    second.launch(ONE, kernels.append, log.memory, 2)
    node = definition.embed(first)
    old = node.child_graph
    (gone,) = old.nodes()
    node.update(second)
    assert not old.is_valid and not gone.is_valid and node.child_graph != old
    for call in (old.nodes, lambda: gone.update(config=ONE), lambda: gone.grid, lambda: old.launch(ONE, kernels.nothing)):
        with pytest.raises(RuntimeError, match="destroyed"):
            call()
    gone.destroy()
    run(definition, stream)
    assert log.written() == [2]


def test_destroyed_nodes(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    one = definition.launch(ONE, kernels.append, log.memory, 1)
    two = one.launch(ONE, kernels.append, log.memory, 2)
    two.launch(ONE, kernels.append, log.memory, 3)
    graph = definition.instantiate()
    one.destroy()
    one.destroy()
    assert not one.is_valid and one not in definition.nodes() and two.pred == set()
    for call in (lambda: one.grid, lambda: one.launch(ONE, kernels.nothing), lambda: one.succ.add(two), lambda: list(one.succ), lambda: two in one.pred, lambda: graph[one].disable()):
        with pytest.raises(RuntimeError, match="destroyed"):
            call()
    assert "before a destroyed node" in repr(one.pred) and "behind a destroyed node" in repr(one.succ)
    graph.launch(stream)
    stream.sync()
    assert log.written() == [1, 2, 3]
    graph.close()
    run(definition, stream)
    assert log.written()[3:] == [2, 3]


@pytest.mark.parametrize("end", ["update", "destroy", "definition"])
def test_memory_lives_as_long_as_what_may_use_it(device, kernels, stream, end):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    definition = GraphDefinition()
    memory, other = resource.allocate(4), LegacyPinnedMemoryResource().allocate(4)
    node = definition.launch(ONE, kernels.put, memory, 1)
    memory.close()
    assert_kept(resource, device)
    graph = definition.instantiate()
    if end == "update":
        node.update(args=(other, 1))
    elif end == "destroy":
        node.destroy()
    else:
        del definition, node
    assert_kept(resource, device)
    graph.launch(stream)
    graph.close()
    assert_nothing_left(resource, device)


@pytest.mark.parametrize("verb", ["memset", "memcpy to", "memcpy from", "child", "owner"])
def test_memory_of_every_kind_of_node_is_kept(device, kernels, verb):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    definition = GraphDefinition()
    memory, other = resource.allocate(8), LegacyPinnedMemoryResource().allocate(8)
    if verb == "memset":
        node = definition.memset(memory, 0, 8)
    elif verb == "memcpy to":
        node = definition.memcpy(memory, other, 8)
    elif verb == "memcpy from":
        node = definition.memcpy(other, memory, 8)
    elif verb == "owner":
        node = definition.memset(int(memory.handle), 0, 8, dst_owner=memory)
    else:
        child = GraphDefinition()
        child.memset(memory, 0, 8)
        node = definition.embed(child)
        del child
    memory.close()
    assert_kept(resource, device)
    node.destroy()
    assert_nothing_left(resource, device)


def test_a_callback_and_an_event_are_kept_and_go(device):
    definition = GraphDefinition()
    class Called:
        def __call__(self):
            pass

    called, event = Called(), device.create_event()
    gone, event_gone = weakref.ref(called), weakref.ref(event)
    nodes = [definition.callback(called), definition.record(event), definition.wait(event)]
    del called, event
    ftcuda.memory.wait_for_deallocations()
    assert gone() is not None and event_gone() is not None
    for node in nodes:
        node.destroy()
    assert_goes(lambda: gone() is None and event_gone() is None, device)


@pytest.mark.parametrize("change", ["made", "updated", "changed"])
def test_an_event_that_is_closed_serves_the_nodes_that_have_it(device, stream, change):
    """Of a definition and of a graph. The simulated driver reports launches with an event that is gone."""
    definition, event, other = GraphDefinition(), device.create_event(), device.create_event()
    record = definition.record(other if change != "made" else event)
    wait = record.wait(other if change != "made" else event)
    nodes = [record, wait]
    if change == "updated":
        for node in nodes:
            node.update(event)
    graph = definition.instantiate()
    if change == "changed":
        for node in nodes:
            graph[node].update(event)
    event.close()
    graph.launch(stream)
    stream.sync()
    graph.close()


def test_executable_nodes(kernels, make_words, device, stream):
    definition = GraphDefinition()
    memory, view = make_words()
    base = int(memory.handle)
    put = definition.launch(ONE, kernels.put, memory, 1)
    fill = definition.memset(base + 4, 2, 1)
    copy = put.memcpy(base + 8, memory, 4)
    graph = definition.instantiate()
    assert isinstance(graph[put], ExecutableKernelNode) and graph[put] == graph[put] and graph[put].is_enabled
    graph[put].update(config=ONE, kernel=kernels.put, args=(base + 12, 5))
    graph[fill].update(dst=base + 4, value=9, width=2)
    graph[copy].update(dst=base + 16, src=base + 12, size=4)
    graph.launch(stream)
    stream.sync()
    assert view[:5].tolist() == [0, 0x909, 0, 5, 5]
    for node in (put, fill, copy):
        graph[node].disable()
        assert not graph[node].is_enabled
    view[:] = 0
    graph.launch(stream)
    stream.sync()
    assert not view.any()
    graph[put].enable()
    graph.launch(stream)
    stream.sync()
    assert view[:5].tolist() == [0, 0, 0, 5, 0]
    with pytest.raises(TypeError):
        graph[put].update(config=ONE, kernel=kernels.put)
    with pytest.raises(TypeError):
        graph[1]
    graph.close()
    with pytest.raises(ClosedError):
        graph[put].enable()
    run(definition, stream)  # which stayed as it was
    assert view[:3].tolist() == [1, 2, 1]


def test_executable_nodes_of_other_kinds(device, kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    seen, first, second = [], device.create_event(), device.create_event()
    child, other = GraphDefinition(), GraphDefinition()
    child.launch(ONE, kernels.append, log.memory, 1)
    other.launch(ONE, kernels.append, log.memory, 2)
    call, inner = definition.callback(lambda: seen.append(1)), definition.embed(child)
    record, wait = call.record(first), inner.wait(first)
    graph = definition.instantiate()
    graph[call].update(lambda: seen.append(2))
    graph[inner].update(other)
    graph[record].update(second)
    graph[wait].update(second)
    graph.launch(stream)
    stream.sync()
    assert seen == [2] and log.written() == [2]
    for node in (call, inner, record, wait):
        assert not hasattr(graph[node], "disable")
    graph.close()


def test_what_an_executable_was_given_goes_with_its_launches(device, kernels, stream, held_clock):
    definition = GraphDefinition()
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    memory, own = resource.allocate(4), LegacyPinnedMemoryResource().allocate(4)
    node = definition.launch(ONE, kernels.put, own, 1)
    graph = definition.instantiate()
    graph[node].update(config=ONE, kernel=kernels.put, args=(memory, 7))
    memory.close()
    assert_kept(resource, device)
    with held_clock():
        graph.launch(stream)
        graph[node].update(config=ONE, kernel=kernels.put, args=(own, 8))
        ftcuda.memory.wait_for_deallocations()
        assert resource.statistics.current_count == 1
    stream.sync()
    assert_nothing_left(resource, device)
    graph.launch(stream)
    stream.sync()
    assert np.frombuffer(own, np.int32)[0] == 8
    graph.close()


def test_memory_of_a_node_within_a_node_lives_as_long_as_the_graph(device, kernels, stream):
    definition = GraphDefinition()
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    memory = resource.allocate(4)
    node = definition.embed(GraphDefinition())
    node.child_graph.launch(ONE, kernels.put, memory, 1)
    memory.close()
    graph = definition.instantiate()
    node.destroy()
    assert_kept(resource, device)
    graph.launch(stream)
    graph.close()
    assert_nothing_left(resource, device)


def test_all_executables_of_a_graph_take_a_change(device, kernels, make_words):
    """Those that there are, and those that are made later."""
    definition = GraphDefinition()
    memory, view = make_words()
    put = definition.launch(ONE, kernels.put, memory, 1)
    fill = definition.memset(int(memory.handle) + 4, 1, 1)
    graph = definition.instantiate(GraphCompleteOptions(max_concurrency=8))
    graph[put].update(config=ONE, kernel=kernels.put, args=(memory, 5))
    graph[fill].disable()
    for _ in range(12):
        view[:] = 0
        stream = device.create_stream()
        graph.launch(stream)
        stream.sync()
        assert view[:2].tolist() == [5, 0]
    assert graph.executable_count > 2
    graph.trim()
    graph.launch(stream)
    stream.sync()
    assert view[:2].tolist() == [5, 0]
    graph.close()


@pytest.mark.parametrize("later", ["updated", "added to", "collected"])
def test_executables_made_later_have_the_child_graph_of_that_moment(device, kernels, make_words, later):
    memory, view = make_words()

    def put(value):
        made = GraphDefinition()
        return made, made.launch(ONE, kernels.put, memory, value)

    definition, (other, inner) = GraphDefinition(), put(2)
    node = definition.embed(put(1)[0])
    graph = definition.instantiate(GraphCompleteOptions(max_concurrency=8))
    graph[node].update(other)
    if later == "updated":
        inner.update(args=(memory, 3))
    elif later == "added to":
        inner.launch(ONE, kernels.nothing)
    else:
        del other, inner
    others = [put(4) for _ in range(4)]  # where the collected one was
    for _ in range(8):
        view[:] = 0
        stream = device.create_stream()
        graph.launch(stream)
        stream.sync()
        assert view[0] == 2
    assert graph.executable_count > 2 and others
    graph.close()


@simulated_only
def test_an_executable_node_is_updated_while_the_graph_is_closed(device, kernels, stream):
    """What it was given before stays until its launches are done, also if the update's end is the graph's."""
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    memory, own = resource.allocate(4), LegacyPinnedMemoryResource().allocate(4)
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels.put, own, 1)
    graph = definition.instantiate()
    executable_node = graph[node]
    executable_node.update(config=ONE, kernel=kernels.put, args=(memory, 7))
    memory.close()
    with simulated_clock() as clock:
        clock.delay(stream, 1.0)
        graph.launch(stream)
        raised = meet(
            "cuGraphExecNodeSetParams",
            lambda: executable_node.update(config=ONE, kernel=kernels.put, args=(own, 8)),
            graph.close,
        )
        assert raised is None and graph.is_closed and graph.executable_count == 0
        ftcuda.memory.wait_for_deallocations()
        assert resource.statistics.current_count == 1
        clock.advance(1.0)
    assert_nothing_left(resource, device)


@simulated_only
def test_what_the_driver_refuses_an_executable_node_is_told_of_none(device, kernels, make_words):
    """Not of those that are made later either."""
    memory, view = make_words()
    definition = GraphDefinition()
    put = definition.launch(ONE, kernels.put, memory, 1)
    fill = definition.memset(int(memory.handle) + 4, 1, 1)
    graph = definition.instantiate(GraphCompleteOptions(max_concurrency=8))
    with faults.failing("cuGraphExecNodeSetParams", 999), pytest.raises(CUDAError):
        graph[put].update(config=ONE, kernel=kernels.put, args=(memory, 5))
    with faults.failing("cuGraphNodeSetEnabled", 999), pytest.raises(CUDAError):
        graph[fill].disable()
    assert graph[fill].is_enabled
    for _ in range(8):
        view[:] = 0
        stream = device.create_stream()
        graph.launch(stream)
        stream.sync()
        assert view[:2].tolist() == [1, 1]
    assert graph.executable_count > 2
    graph.close()


@simulated_only
def test_a_node_that_the_driver_does_not_update_stays_as_it_was(device, kernels, stream):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    memory, other = resource.allocate(8), LegacyPinnedMemoryResource().allocate(8)
    definition = GraphDefinition()
    fill = definition.memset(memory, 1, 4)
    with faults.failing("cuGraphNodeSetParams", 999), pytest.raises(CUDAError):
        fill.update(dst=other, value=2, width=8)
    assert (fill.dptr, fill.value, fill.width) == (int(memory.handle), 1, 4)
    memory.close()
    assert_kept(resource, device)
    run(definition, stream)
    assert not (np.frombuffer(other, np.uint8) == 2).any()
    fill.destroy()
    assert_nothing_left(resource, device)


@pytest.mark.parametrize("end", ["close", "update"])
def test_what_an_executable_was_given_outlives_the_graph(device, kernels, stream, held_clock, end):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    memory, own = resource.allocate(4), LegacyPinnedMemoryResource().allocate(4)
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels.put, own, 1)
    graph = definition.instantiate()
    graph[node].update(config=ONE, kernel=kernels.put, args=(memory, 7))
    memory.close()
    with held_clock():
        graph.launch(stream)
        if end == "close":
            graph.close()
        else:
            graph.update(definition)
        ftcuda.memory.wait_for_deallocations()
        assert resource.statistics.current_count == 1
    stream.sync()
    assert_nothing_left(resource, device)
    graph.close()


def test_an_update_of_a_concurrent_graph_ties_it_to_another_definition(kernels, make_log):
    log = make_log()
    first, second = GraphDefinition(), GraphDefinition()
    for definition in (first, second):
        definition.launch(ONE, kernels.append, log.memory, 1)
    graph = first.instantiate({"max_concurrency": 2})
    graph.update(second)
    first.empty()
    with pytest.raises(RuntimeError, match="max_concurrency"):
        second.empty()
    graph.close()
    second.empty()


def test_edges_that_are_named_twice_are_one():
    definition = GraphDefinition()
    one, two = definition.empty(), definition.empty()
    one.succ.update([two, two], [two])
    assert definition.edges() == {(one, two)}
    two.pred.discard(one)
    assert definition.edges() == set()


def test_sizes_beyond_all_numbers_do_not_fit(kernels, make_words):
    memory, _ = make_words()
    definition = GraphDefinition()
    for value, sizes in ((b"1234", (2**62,)), (0, (1, 5, 2**62)), (0, (2**63 - 1, 3, 2**62))):
        with pytest.raises(ValueError, match="smaller"):
            definition.memset(memory, value, *sizes)
    assert definition.nodes() == set()


def test_events_of_a_capture_are_refused(device):
    builder = device.create_graph_builder().begin_building()
    event = builder.stream.record()
    definition = GraphDefinition()
    for call in (definition.record, definition.wait):
        with pytest.raises(RuntimeError):
            call(event)
    builder.end_building()
    assert definition.nodes() == set()


def test_much_dynamic_shared_memory(kernels, stream):
    definition = GraphDefinition()
    node = definition.launch(LaunchConfig(grid=1, block=1, shmem_size=64 << 10), kernels.nothing)
    run(definition, stream)
    node.update(config=LaunchConfig(grid=1, block=1, shmem_size=80 << 10))
    run(definition, stream)
    assert node.shmem_size == 80 << 10


def test_a_definition_with_a_concurrent_graph_stays(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels.append, log.memory, 1)
    graph = definition.instantiate({"max_concurrency": 2})
    for call in (lambda: node.update(config=ONE), node.destroy, lambda: node.launch(ONE, kernels.nothing), lambda: definition.create_condition()):
        with pytest.raises(RuntimeError, match="max_concurrency"):
            call()
    graph.close()
    node.launch(ONE, kernels.append, log.memory, 2)
    run(definition, stream)
    assert log.written() == [1, 2]


def test_a_graph_is_updated_from_a_definition(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels.append, log.memory, 1)
    graph = definition.instantiate()
    other = GraphDefinition()
    other.launch(ONE, kernels.append, log.memory, 2)
    graph.update(other)
    graph.launch(stream)
    stream.sync()
    assert log.written() == [2]
    with pytest.raises(RuntimeError, match="update"):
        graph[node].disable()
    with pytest.raises(TypeError, match="GraphDefinition"):
        graph.update(node)
    graph.close()


@pytest.fixture
def make_definition(kernels):
    """Makes a definition that puts a value in a word, and in each byte of the next one; with its two nodes."""

    def make(memory, value):
        definition = GraphDefinition()
        put = definition.launch(ONE, kernels.put, memory, value)
        return definition, put, definition.memset(int(memory.handle) + 4, value, 4)

    return make


def in_each_stream(device, graph, view):
    """What launches put in the words, in more streams than there are executables."""
    seen = []
    for _ in range(4):
        view[:] = 0
        stream = device.create_stream()
        graph.launch(stream)
        stream.sync()
        seen.append(view[:2].tolist())
    return seen


@pytest.mark.parametrize("most", [1, 3])
def test_an_update_says_all_that_a_graph_does(device, make_words, make_definition, most):
    """Also of nodes that were left out."""
    memory, view = make_words()
    first, put, fill = make_definition(memory, 1)
    graph = first.instantiate(GraphCompleteOptions(max_concurrency=most))
    graph[put].disable()
    graph[fill].disable()
    assert in_each_stream(device, graph, view) == [[0, 0]] * 4
    second, _, _ = make_definition(memory, 2)
    graph.update(second)
    assert in_each_stream(device, graph, view) == [[2, 0x02020202]] * 4
    graph.close()


@pytest.mark.parametrize("most", [1, 3])
def test_an_update_that_is_refused_changes_nothing(device, kernels, make_words, make_definition, most):
    """Nor does it bring back what was left out."""
    memory, view = make_words()
    first, put, fill = make_definition(memory, 1)
    graph = first.instantiate(GraphCompleteOptions(max_concurrency=most))
    graph[put].disable()
    other = GraphDefinition()
    other.launch(ONE, kernels.put, memory, 2)
    with pytest.raises(CUDAError, match="cannot update"):
        graph.update(other)
    assert not graph[put].is_enabled and graph[fill].is_enabled
    assert in_each_stream(device, graph, view) == [[0, 0x01010101]] * 4
    graph[put].enable()
    assert in_each_stream(device, graph, view) == [[1, 0x01010101]] * 4
    graph.close()


@simulated_only
def test_an_update_says_what_it_could_not_take_back(kernels, make_words, make_definition):
    memory, _ = make_words()
    first, put, _ = make_definition(memory, 1)
    graph = first.instantiate()
    graph[put].disable()
    other = GraphDefinition()
    other.launch(ONE, kernels.put, memory, 2)
    with faults.failing("cuGraphNodeSetEnabled", 999, nth=2), pytest.warns(ftcuda.CUDAWarning, match="disable node again"):
        with pytest.raises(CUDAError, match="cannot update"):
            graph.update(other)
        graph.close()


def test_an_update_cannot_bring_back_a_node_that_was_destroyed(device, make_words, make_definition):
    memory, view = make_words()
    first, put, fill = make_definition(memory, 1)
    graph = first.instantiate()
    graph[fill].disable()
    graph[put].disable()
    fill.destroy()
    with pytest.raises(ClosedError, match="was destroyed"):
        graph.update(make_definition(memory, 2)[0])
    assert in_each_stream(device, graph, view) == [[0, 0]] * 4
    graph[put].enable()
    assert in_each_stream(device, graph, view) == [[1, 0]] * 4
    graph.close()


@simulated_only
def test_an_executable_that_does_not_take_a_change_is_made_anew(device, kernels, make_words, make_definition):
    """With the change: the first one has it, so all have it."""
    memory, view = make_words()
    first, put, fill = make_definition(memory, 1)
    graph = first.instantiate(GraphCompleteOptions(max_concurrency=3))
    assert in_each_stream(device, graph, view) == [[1, 0x01010101]] * 4
    count = graph.executable_count
    with faults.failing("cuGraphExecNodeSetParams", 999, nth=2):
        graph[put].update(config=ONE, kernel=kernels.put, args=(memory, 5))
    assert graph.executable_count == count - 1
    with faults.failing("cuGraphNodeSetEnabled", 999, nth=2):
        graph[fill].disable()
    assert in_each_stream(device, graph, view) == [[5, 0]] * 4
    graph.close()


@simulated_only
@pytest.mark.parametrize("change", ["disable", "update"])
def test_a_node_changes_when_nobody_is_in_what_its_graph_is_made_of(kernels, make_words, make_definition, change):
    """The simulated driver reports two threads inside one graph."""
    memory, _ = make_words()
    definition, put, _ = make_definition(memory, 1)
    graph = definition.instantiate()
    changes = {
        "disable": lambda: graph[put].disable(),
        "update": lambda: graph[put].update(config=ONE, kernel=kernels.put, args=(memory, 2)),
    }
    assert meet("cuGraphInstantiateWithFlags", lambda: definition.instantiate().close(), changes[change]) is None
    graph.close()


def test_the_definition_of_a_builder(device, kernels, make_log, stream):
    log = make_log()
    builder = device.create_graph_builder()
    with pytest.raises(RuntimeError):
        builder.graph_definition
    builder.begin_building()
    with pytest.raises(RuntimeError):
        builder.graph_definition
    launch(builder, LaunchConfig(grid=1, block=2), kernels.count, log.memory)
    log.memory.fill(0, stream=builder)
    seen = []
    builder.callback(lambda: seen.append(1))
    definition = builder.end_building().graph_definition
    assert definition == builder.graph_definition
    kinds = {type(node).__name__: node for node in definition.nodes()}
    assert set(kinds) == {"KernelNode", "MemsetNode", "HostCallbackNode"} and len(definition.edges()) == 2
    node = kinds["KernelNode"]
    assert node.config == LaunchConfig(grid=1, block=2) and node.kernel.num_arguments == 1
    assert kinds["HostCallbackNode"].callback is None and kinds["MemsetNode"].dptr == int(log.memory.handle)
    kinds["HostCallbackNode"].launch(ONE, kernels.count, log.memory)
    node.update(config=LaunchConfig(grid=1, block=3))
    builder.complete().close()
    builder.close()
    run(definition, stream)
    assert log.view[0] == 1 and seen == [1]
    kinds["MemsetNode"].destroy()
    run(definition, stream)
    assert log.view[0] in (4, 5) and definition.is_valid


def test_a_captured_definition_with_parameters_does_not_change(device, kernels, make_log, stream):
    log = make_log()
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, kernels.append, log.memory, Parameter("value", 1))
    definition = builder.end_building().graph_definition
    (node,) = definition.nodes()
    graph = definition.instantiate()
    for call in (node.destroy, lambda: definition.launch(ONE, kernels.nothing), lambda: GraphDefinition().embed(definition)):
        with pytest.raises(NotSupportedError, match="replace arguments, and"):
            call()
    with pytest.raises(NotSupportedError, match="replace arguments, and"):
        graph[node].update(config=ONE, kernel=kernels.append, args=(log.memory, 3))
    graph.bind().launch(stream, value=2)
    stream.sync()
    assert log.written() == [2]
    graph[node].disable()
    graph.bind().launch(stream, value=2)
    stream.sync()
    assert log.written() == [2]
    graph.close()


needs_else = pytest.mark.skipif(DRIVER < (12, 8), reason="else and switch need a driver of CUDA 12.8")


def test_conditional_nodes(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    condition = definition.create_condition(1)
    with pytest.raises(RuntimeError, match="condition"):
        definition.instantiate()
    node = definition.if_then(condition)
    assert isinstance(node, ConditionalNode) and node.condition == condition and node.cond_type is GraphConditionalType.IF
    assert node.branches == (node.then,) and node.then.is_valid
    node.then.launch(ONE, kernels.append, log.memory, 1).launch(ONE, kernels.append, log.memory, 2)
    node.launch(ONE, kernels.append, log.memory, 3)
    run(definition, stream)
    assert log.written() == [1, 2, 3]
    then, (inner, _) = node.then, list(node.then.nodes())
    inner.update(args=(log.memory, 9), kernel=kernels.append)
    node.destroy()
    assert not then.is_valid and not inner.is_valid
    with pytest.raises(RuntimeError, match="condition"):  # which the driver has still
        definition.instantiate()


@needs_else
def test_conditional_nodes_of_other_kinds(kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    either = definition.if_else(definition.create_condition(0))
    either.then.launch(ONE, kernels.append, log.memory, 1)
    either.else_.launch(ONE, kernels.append, log.memory, 2)
    chosen = either.switch(definition.create_condition(2), 3)
    for value, branch in enumerate(chosen.branches):
        branch.launch(ONE, kernels.append, log.memory, 10 + value)
    loop = chosen.while_loop(definition.create_condition(0))
    loop.body.launch(ONE, kernels.append, log.memory, 3)
    assert [each.cond_type for each in (either, chosen, loop)] == ["if", "switch", "while"]
    run(definition, stream)
    assert log.written() == [2, 12]
    assert {type(each).__name__ for each in definition.nodes()} == {"IfElseNode", "SwitchNode", "WhileNode"}


@needs_else
def test_conditions_of_nodes_that_are_gone_need_nodes_again(device, kernels, make_log, stream):
    log = make_log()
    definition = GraphDefinition()
    outer = definition.create_condition(1)
    node = definition.if_else(outer)
    inner = node.then.create_condition(1)
    node.then.if_then(inner)
    node.destroy()
    last = definition
    for condition in (outer, inner):
        with pytest.raises(RuntimeError, match="without a conditional node"):
            definition.instantiate()
        last = last.if_then(condition)
        last.then.launch(ONE, kernels.append, log.memory, 1)
    run(definition, stream)
    assert log.written() == [1, 1]


def test_a_conditional_graph_is_not_embedded(kernels):
    definition = GraphDefinition()
    other = GraphDefinition()
    other.if_then(other.create_condition(1))
    with pytest.raises(CUDAError):
        definition.embed(other)
    assert definition.nodes() == set()


needs_pools = pytest.mark.skipif(
    not ftcuda.Device(0).features.memory_pools, reason="memory of graphs needs a device with pools"
)


@needs_pools
def test_memory_of_nodes(device, make_words, stream):
    memory, view = make_words()
    definition = GraphDefinition()
    allocated = definition.allocate(64, device=device)
    filled = allocated.memset(allocated.dptr, np.int32(5), 16)
    freed = filled.memcpy(memory, allocated.dptr, 64).deallocate(allocated.dptr)
    assert allocated.bytesize == 64 and allocated.device_id == 0 and allocated.peer_access == ()
    assert allocated.memory_type == "device" and freed.dptr == allocated.dptr != 0
    graph = definition.instantiate()
    for _ in range(3):
        view[:] = 0
        graph.launch(stream)
        stream.sync()
        assert (view == 5).all()
    for call in (definition.instantiate, lambda: definition.instantiate({"max_concurrency": 2})):
        with pytest.raises(NotSupportedError, match="one executable at a time"):
            call()
    with pytest.raises(NotSupportedError, match="allocates memory"):
        GraphDefinition().embed(definition)
    with pytest.raises(CUDAError):  # which the driver takes out of no graph
        freed.destroy()
    graph.close()


@needs_pools
def test_memory_that_no_node_frees(stream):
    definition = GraphDefinition()
    pointer = definition.allocate(64).dptr
    graph = definition.instantiate()
    graph.launch(stream)
    with pytest.raises(RuntimeError, match="not freed"):
        graph.launch(stream)
    freeing = GraphDefinition()
    freeing.deallocate(pointer)
    other = freeing.instantiate()
    other.launch(stream)
    graph.launch(stream)
    other.launch(stream)
    stream.sync()
    graph.close()
    again = definition.instantiate({"auto_free_on_launch": True})
    again.launch(stream)
    again.launch(stream)
    other.launch(stream)
    stream.sync()
    for each in (again, other):
        each.close()


@needs_pools
def test_bad_allocations(device):
    definition = GraphDefinition()
    for error, call in (
        (ValueError, lambda: definition.allocate(0)),
        (TypeError, lambda: definition.allocate("64")),
        (ValueError, lambda: definition.allocate(64, memory_type="elsewhere")),
        (TypeError, lambda: definition.allocate(64, peer_access=0)),
        (TypeError, lambda: definition.deallocate(None)),
        (CUDAError, lambda: definition.deallocate(4096)),
    ):
        with pytest.raises(error):
            call()
    assert definition.nodes() == set()


def test_threads_build_and_launch_one_definition(device, kernels, make_words):
    """Nodes are added, changed, connected, destroyed and instantiated by all; what stays has run as often as launched."""
    memory, view = make_words()
    definition = GraphDefinition()
    base = definition.launch(ONE, kernels.count, memory)
    launches, lock = [0], threading.Lock()

    def act(index):
        stream = device.create_stream()
        for _ in range(12):
            own = base.memset(int(memory.handle) + 4 + 4 * index, 6, 1, dst_owner=memory)
            with_others = definition.join(base, own)
            own.update(value=np.uint8(7))
            assert own.is_valid and base in own.pred
            graph = definition.instantiate()
            graph[base].update(config=ONE, kernel=kernels.count, args=(memory,))
            for _ in range(2):
                graph.launch(stream)
            with lock:
                launches[0] += 2
            stream.sync()
            assert view[1 + index] in (6, 7)  # another thread's graph may have been made before the update
            graph.close()
            with_others.destroy()
            own.destroy()

    together(4, act)
    device.sync()
    assert view[0] == launches[0] and definition.nodes() == {base}


def test_dot(kernels, tmp_path):
    definition = GraphDefinition()
    definition.launch(ONE, kernels.nothing)
    definition.debug_dot_print(tmp_path / "graph.dot")
    assert "digraph" in (tmp_path / "graph.dot").read_text()


def test_the_device(device):
    assert GraphDefinition(device=device).device == device and GraphDefinition(device=0).device == Device(0)


def test_equality_and_words(kernels):
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels.nothing)
    (again,) = definition.nodes()
    assert again == node and hash(again) == hash(node) and again is not None and node != definition.empty()
    assert definition != GraphDefinition() and hash(definition) == hash(node.graph)
    assert repr(node).startswith("<KernelNode 0x") and node.type == 0 and node.handle != 0 and definition.handle != 0
