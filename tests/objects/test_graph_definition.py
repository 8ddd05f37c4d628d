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
from ftcuda.testing import together
from ftcuda.typing import GraphConditionalType
from tests.conftest import compile_code
from tests.objects.graphs import DRIVER, ONE, assert_goes, assert_kept, assert_nothing_left, new_log, written

pytestmark = [
    pytest.mark.skipif(DRIVER < (12, 3), reason="graph definitions need a driver of CUDA 12.3"),
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
    for call in (lambda: one.grid, lambda: one.launch(ONE, kernels.nothing), lambda: one.succ.add(two), lambda: graph[one].disable()):
        with pytest.raises(RuntimeError, match="destroyed"):
            call()
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
        with pytest.raises(NotSupportedError, match="by name"):
            call()
    with pytest.raises(NotSupportedError, match="by name"):
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


def test_a_conditional_graph_is_not_embedded(kernels):
    definition = GraphDefinition()
    other = GraphDefinition()
    other.if_then(other.create_condition(1))
    with pytest.raises(CUDAError):
        definition.embed(other)
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
