"""Memory that graphs allocate and free: the simulated driver and a GPU behave alike."""

import ctypes
from ctypes import byref, c_int, c_longlong, c_size_t, c_ubyte, c_uint64, c_ulonglong, c_ushort, c_void_p

import pytest

from tests.conftest import simulated_only
from tests.contract.graphs import INVALID_VALUE, UPDATE_FAILURE, array
from tests.kernels import IS_SIMULATED

pytestmark = pytest.mark.thread_unsafe(reason="reads how much memory all graphs of the device have")

ALLOCATION, FREE = 10, 11
NOT_SUPPORTED = 801
USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)
AUTO_FREE = 1


class PoolProperties(ctypes.Structure):
    _fields_ = (
        ("allocation_type", c_int), ("handle_types", c_int), ("location_type", c_int), ("location", c_int),
        ("security", c_void_p), ("max_size", c_size_t), ("usage", c_ushort), ("reserved", c_ubyte * 54),
    )  # fmt: skip


class AllocationNode(ctypes.Structure):
    _fields_ = (
        ("pool", PoolProperties), ("accesses", c_void_p), ("access_count", c_size_t), ("size", c_size_t),
        ("pointer", c_void_p),
    )  # fmt: skip


class AnyNode(ctypes.Structure):
    class Kinds(ctypes.Union):
        _fields_ = (("reserved", c_longlong * 29), ("allocation", AllocationNode), ("free", c_void_p))

    _fields_ = (("type", c_int), ("reserved0", c_int * 3), ("of", Kinds), ("reserved2", c_longlong))


def of_the_device(size):
    return AllocationNode(pool=PoolProperties(allocation_type=1, location_type=1), size=size)


@pytest.fixture(autouse=True)
def _needs(driver):
    driver.needs(11, 4)
    supported = c_int()
    driver.call("cuDeviceGetAttribute", byref(supported), c_int(115), c_int(0))
    if not supported.value:
        pytest.skip(reason="the device has no memory pools")


def allocate(driver, stream, size=4):
    pointer = c_void_p()
    driver.call("cuMemAllocAsync", byref(pointer), c_size_t(size), stream)
    return pointer


def free(driver, stream, pointer):
    driver.call("cuMemFreeAsync", pointer, stream)


def allocation_node(driver, graph, before=(), size=4):
    parameters = of_the_device(size)
    node = driver.added("cuGraphAddMemAllocNode", graph, list(before), byref(parameters))
    return node, c_void_p(parameters.pointer)


def free_node(driver, graph, before, pointer):
    return driver.added("cuGraphAddMemFreeNode", graph, before, pointer)


def fails_to_free(driver, graph, before, pointer):
    made = c_void_p()
    return driver.result("cuGraphAddMemFreeNode", byref(made), graph, array(*before), c_size_t(len(before)), pointer)


def executable(driver, graph, flags=0):
    made = c_void_p()
    driver.call("cuGraphInstantiateWithFlags", byref(made), graph, c_ulonglong(flags))
    driver.undo.append(("cuGraphExecDestroy", made))
    return made


def amounts(driver):
    values = []
    for attribute in range(4):
        value = c_uint64(1 << 63)
        driver.call("cuDeviceGetGraphMemAttribute", c_int(0), c_int(attribute), byref(value))
        values.append(value.value)
    return values


def captured(driver, memory, frees, size=4):
    """A graph that writes 7 to memory of its own, and copies it to a word of the host's."""
    stream = driver.stream()
    driver.begin(stream)
    pointer = allocate(driver, stream, size)
    driver.launch(stream, "store", pointer, 7)
    driver.call("cuMemcpyAsync", memory.at(0), pointer, c_size_t(4), stream)
    if frees:
        free(driver, stream, pointer)
    return driver.end(stream), pointer


def test_stream_ordered_allocations_and_frees_are_captured_as_nodes(driver, memory):
    graph, pointer = captured(driver, memory, frees=True)
    kinds, edges = driver.shape(graph)
    assert (kinds[0], kinds[-1]) == (ALLOCATION, FREE) and edges == {(0, 1), (1, 2), (2, 3)}
    node, freed = AllocationNode(), c_void_p()
    first, *_, last = (c_void_p(each) for each in driver.nodes(graph))
    driver.call("cuGraphMemAllocNodeGetParams", first, byref(node))
    driver.call("cuGraphMemFreeNodeGetParams", last, byref(freed))
    assert (node.pointer, node.size, freed.value) == (pointer.value, 4, pointer.value)
    assert (node.pool.location_type, node.pool.location, node.pool.handle_types) == (1, 0, 0)
    assert driver.result("cuGraphMemAllocNodeGetParams", last, byref(node)) == INVALID_VALUE
    assert driver.result("cuGraphMemFreeNodeGetParams", first, byref(freed)) == INVALID_VALUE
    made = executable(driver, graph)
    for _ in range(3):  # what is freed inside can be allocated anew by each launch
        memory.words[0] = 0
        driver.run(made)
        assert memory.words[0] == 7


def test_nodes_that_are_added_are_the_same(driver, memory):
    graph = driver.graph()
    first, pointer = allocation_node(driver, graph)
    store = driver.kernel(graph, [first], "store", pointer, 5)
    copy = driver.copy(graph, [store], memory.at(0), pointer, 4)
    free_node(driver, graph, [copy], pointer)
    made = executable(driver, graph)
    for _ in range(2):
        memory.words[0] = 0
        driver.run(made)
        assert memory.words[0] == 5


def test_nodes_of_any_kind_are_added_by_one_call(driver, memory):
    driver.needs(12, 2)
    graph, node, last = driver.graph(), c_void_p(), c_void_p()
    given = AnyNode(type=ALLOCATION)
    given.of.allocation = of_the_device(4)
    driver.call("cuGraphAddNode", byref(node), graph, None, c_size_t(0), byref(given))
    pointer = c_void_p(given.of.allocation.pointer)
    copy = driver.copy(
        graph, [driver.kernel(graph, [node.value], "store", pointer, 6)], memory.at(0), pointer, 4
    )
    given = AnyNode(type=FREE)
    given.of.free = pointer.value
    driver.call("cuGraphAddNode", byref(last), graph, array(copy), c_size_t(1), byref(given))
    assert [driver.type(each.value) for each in (node, last)] == [ALLOCATION, FREE]
    driver.run(executable(driver, graph))
    assert memory.words[0] == 6


def test_what_an_allocation_node_cannot_be(driver, memory):
    graph, made = driver.graph(), c_void_p()

    def result(node):
        return driver.result("cuGraphAddMemAllocNode", byref(made), graph, None, c_size_t(0), node and byref(node))

    shared = of_the_device(4)
    shared.pool.handle_types = 1
    nowhere = of_the_device(4)
    nowhere.pool.location = 99
    assert [result(each) for each in (None, of_the_device(0), nowhere)] == [INVALID_VALUE] * 3
    assert result(shared) == NOT_SUPPORTED
    assert driver.nodes(graph) == []


def test_what_a_graph_leaves_allocated_outlives_the_launch(driver, memory):
    """Until a call frees it: only then the graph may be launched again."""
    graph, pointer = captured(driver, memory, frees=False)
    made, stream = executable(driver, graph), driver.stream()
    for freed in (lambda: free(driver, stream, pointer), lambda: driver.call("cuMemFree_v2", pointer)):
        driver.call("cuGraphLaunch", made, stream)
        driver.launch(stream, "digit", pointer, 1)
        driver.call("cuMemcpyAsync", memory.at(1), pointer, c_size_t(4), stream)
        driver.call("cuStreamSynchronize", stream)
        assert memory.words[:2].tolist() == [7, 71]
        assert driver.result("cuGraphLaunch", made, stream) == INVALID_VALUE
        freed()
        memory.words[:2] = 0
    driver.call("cuStreamSynchronize", stream)


def test_a_flag_makes_launches_free_what_is_left(driver, memory):
    graph, pointer = captured(driver, memory, frees=False)
    made = executable(driver, graph, AUTO_FREE)
    for _ in range(3):
        memory.words[0] = 0
        driver.run(made)
        assert memory.words[0] == 7
    driver.call("cuMemFree_v2", pointer)  # not by the end of the executable


def test_memory_outlives_the_graph_that_allocated_it(driver, memory):
    graph, pointer = captured(driver, memory, frees=False)
    made, stream = executable(driver, graph), driver.stream()
    driver.call("cuGraphLaunch", made, stream)
    driver.destroy(made)
    driver.destroy(graph)
    driver.launch(stream, "digit", pointer, 2)
    driver.call("cuMemcpyAsync", memory.at(1), pointer, c_size_t(4), stream)
    free(driver, stream, pointer)
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[1] == 72


def test_another_graph_may_use_and_free_it(driver, memory):
    graph, pointer = captured(driver, memory, frees=False)
    other = driver.graph()
    digit = driver.kernel(other, [], "digit", pointer, 3)
    free_node(driver, other, [driver.copy(other, [digit], memory.at(1), pointer, 4)], pointer)
    assert fails_to_free(driver, graph, [], pointer) == INVALID_VALUE  # in one of the two
    first, second, stream = executable(driver, graph), executable(driver, other), driver.stream()
    for _ in range(2):
        driver.call("cuGraphLaunch", first, stream)
        driver.call("cuGraphLaunch", second, stream)
        driver.call("cuStreamSynchronize", stream)
        assert memory.words[1] == 73
        memory.words[1] = 0


def test_what_a_free_node_cannot_free(driver, memory):
    """What another node or another graph frees, and what no graph has allocated."""
    graph, other = driver.graph(), driver.graph()
    node, pointer = allocation_node(driver, graph)
    plain = c_void_p()
    driver.call("cuMemAlloc_v2", byref(plain), c_size_t(64))
    assert fails_to_free(driver, graph, [node], plain) == INVALID_VALUE
    assert fails_to_free(driver, graph, [node], c_void_p(pointer.value + 1)) == INVALID_VALUE
    driver.call("cuMemFree_v2", plain)
    free_node(driver, graph, [node], pointer)
    assert fails_to_free(driver, graph, [node], pointer) == INVALID_VALUE
    assert fails_to_free(driver, other, [], pointer) == INVALID_VALUE


def test_such_a_graph_is_neither_copied_nor_taken_apart(driver, memory):
    graph, parent, made = driver.graph(), driver.graph(), c_void_p()
    node, pointer = allocation_node(driver, graph)
    last = free_node(driver, graph, [node], pointer)
    assert driver.result("cuGraphClone", byref(made), graph) == NOT_SUPPORTED
    assert driver.result("cuGraphAddChildGraphNode", byref(made), parent, None, c_size_t(0), graph) == NOT_SUPPORTED
    assert driver.result("cuGraphDestroyNode", c_void_p(last)) == NOT_SUPPORTED
    edge = array(node), array(last)
    assert driver.result("cuGraphRemoveDependencies", graph, *edge, c_size_t(1)) == NOT_SUPPORTED
    assert driver.shape(graph) == ([ALLOCATION, FREE], {(0, 1)}) and driver.nodes(parent) == []
    # No more than the graph with the free alone.
    other = driver.graph()
    source, memory_of_source = allocation_node(driver, other)
    third = driver.graph()
    free_node(driver, third, [], memory_of_source)
    assert driver.result("cuGraphClone", byref(made), third) == NOT_SUPPORTED


def test_child_graphs_do_not_allocate(driver, memory):
    parent, child, node, inner = driver.graph(), driver.graph(), c_void_p(), c_void_p()
    driver.call("cuGraphAddChildGraphNode", byref(node), parent, None, c_size_t(0), child)
    driver.call("cuGraphChildGraphNodeGetGraph", node, byref(inner))
    parameters = of_the_device(4)
    arguments = (byref(node), inner, None, c_size_t(0), byref(parameters))
    assert driver.result("cuGraphAddMemAllocNode", *arguments) == NOT_SUPPORTED


def test_there_is_one_executable_at_a_time(driver, memory):
    graph, _ = captured(driver, memory, frees=True)
    made, other = executable(driver, graph), c_void_p()
    assert driver.instantiate(other, graph) == NOT_SUPPORTED
    driver.run(made)
    driver.destroy(made)
    driver.run(executable(driver, graph))
    assert memory.words[0] == 7


def test_an_executable_is_not_updated_to_other_memory(driver, memory):
    """The simulated driver never does it. An H100 does of a few bytes, now and then, and an H200 of a megabyte too."""
    graph, _ = captured(driver, memory, frees=True, size=1 << 20)
    other, _ = captured(driver, memory, frees=True, size=1 << 20)
    made = executable(driver, graph)
    updated = driver.update(made, other)[0]
    assert updated == UPDATE_FAILURE or (updated == 0 and not IS_SIMULATED)
    driver.run(made)
    assert memory.words[0] == 7


def test_parameters_beside_memory_nodes_are_set(driver, memory):
    driver.needs(12, 0)
    graph, pointer = captured(driver, memory, frees=True)
    made = executable(driver, graph)
    kernel = c_void_p(driver.nodes(graph)[1])
    for value in (1, 2):
        launch = driver.launch_of("store", pointer, value)
        driver.call("cuGraphExecKernelNodeSetParams_v2", made, kernel, byref(launch))
        driver.run(made)
        assert memory.words[0] == value


def test_memory_is_there_from_the_first_launch_until_it_is_trimmed(driver, memory):
    def trim():
        driver.call("cuDeviceGraphMemTrim", c_int(0))
        return amounts(driver)

    used, _, reserved, _ = trim()
    graph, _ = captured(driver, memory, frees=True)
    made = executable(driver, graph)
    zero, one = c_uint64(0), c_uint64(1)
    for high in (USED_HIGH, RESERVED_HIGH):
        driver.call("cuDeviceSetGraphMemAttribute", c_int(0), c_int(high), byref(zero))
    assert amounts(driver) == [used, used, reserved, reserved]
    driver.run(made)
    now = amounts(driver)
    assert now[USED] > used and now[RESERVED] > reserved and now[USED_HIGH] >= now[USED] <= now[RESERVED]
    driver.destroy(made)
    driver.destroy(graph)
    after = trim()
    assert (after[USED], after[RESERVED]) == (used, reserved)
    assert after[USED_HIGH] == now[USED_HIGH] and after[RESERVED_HIGH] == now[RESERVED_HIGH]
    assert driver.result("cuDeviceSetGraphMemAttribute", c_int(0), c_int(USED_HIGH), byref(one)) == INVALID_VALUE
    assert driver.result("cuDeviceSetGraphMemAttribute", c_int(0), c_int(USED), byref(zero)) == INVALID_VALUE
    assert driver.result("cuDeviceGetGraphMemAttribute", c_int(99), c_int(USED), byref(zero)) == 101
    assert driver.result("cuDeviceGraphMemTrim", c_int(99)) == 101


# ---- What only the simulated driver says ---------------------------------------------------------------------------


@simulated_only
def test_use_outside_of_its_life_is_a_violation(driver, memory, violations):
    """After a free, until a launch allocates it again."""
    graph, pointer = captured(driver, memory, frees=False)
    made, stream = executable(driver, graph), driver.stream()
    driver.call("cuGraphLaunch", made, stream)
    free(driver, stream, pointer)
    driver.call("cuStreamSynchronize", stream)
    assert violations() == []
    other = driver.graph()
    driver.kernel(other, [], "maybe", pointer, 0)  # which does not touch it, though it names it
    second = executable(driver, other)
    assert violations() == []
    driver.run(second)
    assert violations() == ["work submitted with memory of a graph that is not allocated"]
    driver.call("cuGraphLaunch", made, stream)
    driver.call("cuGraphLaunch", second, stream)
    driver.call("cuStreamSynchronize", stream)
    assert violations() == []
    driver.call("cuMemFree_v2", pointer)
    assert driver.result("cuMemFree_v2", pointer) == INVALID_VALUE
    assert driver.result("cuMemFreeAsync", pointer, stream) == INVALID_VALUE
    assert violations() == [
        "memory of a graph freed that is not allocated (twice, or foreign)",
        "memory freed that is not allocated (twice, or foreign)",
    ]


@simulated_only
@pytest.mark.parametrize("edges", [("free", "store"), ("allocation", "store"), ("allocation", "free"), None])
def test_a_missing_edge_to_an_allocation_or_a_free_is_a_violation(driver, memory, violations, edges):
    """Though the nodes happen to run in the right order."""
    graph = driver.graph()
    first, pointer = allocation_node(driver, graph)
    between = driver.fill(graph, [first], memory.at(9), 0, 1)
    store = driver.kernel(graph, [] if edges == ("allocation", "store") else [between], "maybe", pointer, 0)
    behind = {("free", "store"): [between], ("allocation", "free"): []}.get(edges, [between, store])
    free_node(driver, graph, behind, pointer)
    made = executable(driver, graph)
    driver.call("cuGraphUpload", made, None)
    assert violations() == []
    driver.run(made)
    text = "graph launched in which "
    assert violations() == {
        None: [],
        ("free", "store"): [text + "work does not come before the free of its memory"],
        ("allocation", "store"): [text + "work does not come behind the allocation of its memory"],
        ("allocation", "free"): [
            text + "work does not come before the free of its memory",
            text + "a free does not come behind the allocation of its memory",
        ],
    }[edges]


@simulated_only
def test_a_launch_that_frees_races_with_other_streams(driver, memory, violations):
    """What another stream still does with the memory is in no order with the launch that allocates it anew."""
    from ftcuda.testing import simulation

    graph, pointer = captured(driver, memory, frees=False)
    made, stream, other = executable(driver, graph, AUTO_FREE), driver.stream(), driver.stream()
    with simulation.watched_races():
        driver.call("cuGraphLaunch", made, stream)
        driver.wait(other, driver.record(stream))
        driver.launch(other, "digit", pointer, 1)
        driver.wait(stream, driver.record(other))
        driver.call("cuGraphLaunch", made, stream)
        driver.call("cuCtxSynchronize")
        assert violations() == []
        driver.launch(other, "digit", pointer, 1)
        driver.call("cuGraphLaunch", made, stream)
        driver.call("cuCtxSynchronize")
        assert any("no order between streams" in each for each in violations())
    driver.call("cuMemFree_v2", pointer)


@simulated_only
def test_nodes_alone_are_no_allocation(driver, memory):
    """What a program forgets to free is counted when a launch has allocated it, and not before."""
    from ftcuda.testing import simulation

    before = simulation.live()["device_allocation"]
    graph, pointer = captured(driver, memory, frees=False)
    made = executable(driver, graph)
    assert simulation.live()["device_allocation"] == before
    driver.run(made)
    assert simulation.live()["device_allocation"] == before + 1
    driver.destroy(made)
    driver.destroy(graph)
    assert simulation.live()["device_allocation"] == before + 1
    driver.call("cuMemFree_v2", pointer)
    assert simulation.live()["device_allocation"] == before


@simulated_only
def test_a_launch_may_find_no_memory(driver, memory):
    from ftcuda.testing import simulation

    driver.call("cuDeviceGraphMemTrim", c_int(0))
    graph = driver.graph()
    node, pointer = allocation_node(driver, graph, size=64 << 20)
    free_node(driver, graph, [node], pointer)
    made, stream = executable(driver, graph), driver.stream()
    simulation.limit_memory(32 << 20)
    try:
        assert driver.result("cuGraphLaunch", made, stream) == 2
        assert driver.result("cuGraphUpload", made, stream) == 2
    finally:
        simulation.limit_memory(0)
    driver.run(made)
    driver.destroy(made)
    driver.destroy(graph)
    driver.call("cuDeviceGraphMemTrim", c_int(0))


def test_other_memory_is_not_freed_into_a_capture(driver, memory):
    stream, other = driver.stream(), driver.stream()
    plain = allocate(driver, other)
    driver.begin(stream)
    assert driver.result("cuMemFreeAsync", plain, stream) == INVALID_VALUE
    driver.end(stream)  # well: the capture goes on
    free(driver, other, plain)
    driver.call("cuStreamSynchronize", other)
