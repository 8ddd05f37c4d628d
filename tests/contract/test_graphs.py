"""Graphs that are built by calls: the simulated driver and a GPU behave alike. Values in memory are compared."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_void_p

import numpy as np
import pytest

from tests.contract.graphs import (
    GRAPH,
    INVALID_VALUE,
    KERNEL,
    MEMCPY,
    MEMSET,
    UPDATE_FAILURE,
    CopyNode,
    FillNode,
    array,
    copy_of,
)

pytestmark = pytest.mark.thread_unsafe(reason="a call of another thread on the same device could end a capture")


def test_nodes_are_added_with_dependencies(driver, memory):
    graph = driver.graph()
    first = driver.kernel(graph, [], "store", memory.at(0), 1)
    left = driver.copy(graph, [first], memory.at(1), memory.at(0), 4)
    right = driver.fill(graph, [first], memory.at(2), 7, 3)
    driver.kernel(graph, [left, right], "add", memory.at(3), memory.at(1), memory.at(2))
    assert driver.shape(graph) == ([KERNEL, MEMCPY, MEMSET, KERNEL], {(0, 1), (0, 2), (1, 3), (2, 3)})
    driver.run(driver.executable(graph))
    assert memory.words[:6].tolist() == [1, 1, 7, 8, 7, 0]


def test_edges_come_and_go(driver, memory):
    graph = driver.graph()
    a, b, c = (driver.kernel(graph, [], "digit", memory.at(0), value) for value in (1, 2, 3))
    for begin, end in ((c, b), (b, a)):
        driver.call("cuGraphAddDependencies", graph, array(begin), array(end), c_size_t(1))
    assert (
        driver.result("cuGraphAddDependencies", graph, array(c), array(b), c_size_t(1)) == INVALID_VALUE
    )  # it is there
    driver.run(driver.executable(graph))
    assert memory.words[0] == 321
    driver.call("cuGraphRemoveDependencies", graph, array(b), array(a), c_size_t(1))
    assert driver.result("cuGraphRemoveDependencies", graph, array(b), array(a), c_size_t(1)) == INVALID_VALUE
    assert driver.shape(graph)[1] == {(2, 1)}
    driver.call("cuGraphDestroyNode", c_void_p(b))
    assert driver.shape(graph) == ([KERNEL] * 2, set())


def test_a_circle_cannot_be_instantiated(driver, memory):
    graph, made = driver.graph(), c_void_p()
    a = driver.kernel(graph, [], "store", memory.at(0), 1)
    b = driver.kernel(graph, [a], "store", memory.at(0), 2)
    assert driver.result("cuGraphAddDependencies", graph, array(a), array(a), c_size_t(1)) == INVALID_VALUE
    if driver.result("cuGraphAddDependencies", graph, array(b), array(a), c_size_t(1)) == 0:
        assert driver.instantiate(made, graph) == INVALID_VALUE


def test_nodes_belong_to_their_graph(driver, memory):
    one, other = driver.graph(), driver.graph()
    node = driver.kernel(one, [], "store", memory.at(0), 1)
    made = c_void_p()
    assert driver.result("cuGraphAddEmptyNode", byref(made), other, array(node), c_size_t(1)) == INVALID_VALUE
    assert driver.nodes(other) == []


def test_what_nodes_do_can_be_read_and_set(driver, memory):
    graph = driver.graph()
    kernel = driver.kernel(graph, [], "store", memory.at(0), 1)
    copy = driver.copy(graph, [kernel], memory.at(1), memory.at(0), 4)
    fill = driver.fill(graph, [kernel], memory.at(2), 7, 1)
    launch, transfer, memset = driver.KernelNode(), CopyNode(), FillNode()
    driver.call(driver.v2("cuGraphKernelNodeGetParams"), c_void_p(kernel), byref(launch))
    assert (launch.func, launch.grid[:], launch.block[:]) == (driver.kernels["store"].value, [1, 1, 1], [1, 1, 1])
    assert c_int.from_address(ctypes.cast(launch.parameters, ctypes.POINTER(c_void_p))[1]).value == 1
    driver.call("cuGraphMemcpyNodeGetParams", c_void_p(copy), byref(transfer))
    assert (transfer.width, transfer.height, transfer.depth) == (4, 1, 1)
    driver.call("cuGraphMemsetNodeGetParams", c_void_p(fill), byref(memset))
    assert (memset.destination, memset.value, memset.width) == (memory.at(2).value, 7, 1)
    before = driver.executable(graph)
    driver.call(
        driver.v2("cuGraphKernelNodeSetParams"), c_void_p(kernel), byref(driver.launch_of("store", memory.at(0), 5))
    )
    driver.call("cuGraphMemcpyNodeSetParams", c_void_p(copy), byref(copy_of(memory.at(4), memory.at(0), 4)))
    driver.call("cuGraphMemsetNodeSetParams", c_void_p(fill), byref(FillNode(memory.at(5).value, 0, 9, 4, 2, 1)))
    driver.run(before)  # which is as the graph was
    assert memory.words[:8].tolist() == [1, 1, 7, 0, 0, 0, 0, 0]
    driver.run(driver.executable(graph))
    assert memory.words[:8].tolist() == [5, 1, 7, 0, 5, 9, 9, 0]


def test_copies_have_rows_and_planes(driver, memory):
    words = memory.words
    words[:60] = np.arange(60)
    transfer = copy_of(memory.at(100), memory.at(0), 8)
    transfer.height, transfer.depth = 3, 2
    transfer.source_pitch, transfer.source_height = 5 * 4, 4
    transfer.destination_pitch, transfer.destination_height = 3 * 4, 3
    transfer.source_x, transfer.source_y = 4, 1
    graph, made, context = driver.graph(), c_void_p(), driver.context()
    driver.call("cuGraphAddMemcpyNode", byref(made), graph, None, c_size_t(0), byref(transfer), context)
    rows = FillNode(memory.at(200).value, 16, 0x0102, 2, 3, 2)
    driver.call("cuGraphAddMemsetNode", byref(made), graph, None, c_size_t(0), byref(rows), context)
    driver.run(driver.executable(graph))
    source = np.arange(60).reshape(3, 4, 5)
    assert (words[100:118].reshape(2, 3, 3)[:, :, :2] == source[:2, 1:4, 1:3]).all()
    assert not words[100:118].reshape(2, 3, 3)[:, :, 2].any()
    halves = words[200:208].view(np.uint16).reshape(2, 8)
    assert (halves[:, :3] == 0x0102).all() and not halves[:, 3:].any()


@pytest.mark.parametrize("shape", [(0, 1, 1), (4, 0, 1), (4, 1, 0)])
def test_an_empty_copy_is_no_node(driver, memory, shape):
    transfer, made = copy_of(memory.at(0), memory.at(1), 4), c_void_p()
    transfer.width, transfer.height, transfer.depth = shape
    arguments = (byref(made), driver.graph(), None, c_size_t(0), byref(transfer), driver.context())
    assert driver.result("cuGraphAddMemcpyNode", *arguments) == INVALID_VALUE


def test_a_clone_is_a_graph_of_its_own(driver, memory):
    graph = driver.graph()
    a = driver.kernel(graph, [], "digit", memory.at(0), 1)
    b = driver.kernel(graph, [a], "digit", memory.at(0), 2)
    clone = driver.made("cuGraphClone", "cuGraphDestroy", graph)
    twin = c_void_p()
    driver.call("cuGraphNodeFindInClone", byref(twin), c_void_p(b), clone)
    assert driver.nodes(clone).index(twin.value) == 1 and driver.shape(clone) == driver.shape(graph)
    assert driver.result("cuGraphNodeFindInClone", byref(c_void_p()), c_void_p(b), graph) == INVALID_VALUE
    driver.call(driver.v2("cuGraphKernelNodeSetParams"), twin, byref(driver.launch_of("digit", memory.at(0), 7)))
    driver.destroy(graph)
    driver.run(driver.executable(clone))
    assert memory.words[0] == 17


def test_a_child_graph_is_a_copy_that_runs_as_one_node(driver, memory):
    child, graph = driver.graph(), driver.graph()
    inner = driver.kernel(child, [], "digit", memory.at(0), 2)
    driver.kernel(child, [inner], "digit", memory.at(0), 3)
    first = driver.kernel(graph, [], "digit", memory.at(0), 1)
    node, copy = c_void_p(), c_void_p()
    driver.call("cuGraphAddChildGraphNode", byref(node), graph, array(first), c_size_t(1), child)
    driver.kernel(graph, [node.value], "digit", memory.at(0), 4)
    driver.destroy(child)
    driver.call("cuGraphChildGraphNodeGetGraph", node, byref(copy))
    assert driver.shape(copy) == ([KERNEL] * 2, {(0, 1)})
    assert driver.shape(graph) == ([KERNEL, GRAPH, KERNEL], {(0, 1), (1, 2)})
    executable = driver.executable(graph)
    driver.run(executable)
    assert memory.words[0] == 1234
    other = driver.graph()
    inner = driver.kernel(other, [], "digit", memory.at(0), 8)
    assert driver.result("cuGraphExecChildGraphNodeSetParams", executable, node, other) == UPDATE_FAILURE
    driver.kernel(other, [inner], "digit", memory.at(0), 9)
    driver.call("cuGraphExecChildGraphNodeSetParams", executable, node, other)
    memory.words[0] = 0
    driver.run(executable)
    assert memory.words[0] == 1894


def test_nodes_of_any_kind_are_added_by_one_call(driver, memory):
    driver.needs(12, 2)
    graph, made, any_kind = driver.graph(), c_void_p(), (ctypes.c_longlong * 32)()
    transfer = copy_of(memory.at(1), memory.at(0), 4)
    memory.words[0] = 6
    ctypes.c_int.from_buffer(any_kind).value = MEMCPY  # int type, 12 bytes, then: int flags, int, context, the copy
    ctypes.memmove(ctypes.addressof(any_kind) + 24, byref(driver.context()), 8)
    ctypes.memmove(ctypes.addressof(any_kind) + 32, byref(transfer), ctypes.sizeof(transfer))
    driver.call("cuGraphAddNode", byref(made), graph, None, c_size_t(0), any_kind)
    assert driver.type(made.value) == MEMCPY
    executable = driver.executable(graph)
    driver.run(executable)
    assert memory.words[:3].tolist() == [6, 6, 0]
    ctypes.memmove(
        ctypes.addressof(any_kind) + 32, byref(copy_of(memory.at(2), memory.at(0), 4)), ctypes.sizeof(transfer)
    )
    driver.call("cuGraphExecNodeSetParams", executable, made, any_kind)
    driver.run(executable)
    assert memory.words[:3].tolist() == [6, 6, 6]


def test_a_graph_is_drawn(driver, memory, tmp_path):
    driver.needs(11, 3)
    graph = driver.graph()
    driver.kernel(graph, [driver.kernel(graph, [], "store", memory.at(0), 1)], "digit", memory.at(0), 2)
    path = tmp_path / "graph.dot"
    driver.call("cuGraphDebugDotPrint", graph, ctypes.c_char_p(str(path).encode()), 0)
    assert path.read_text().startswith("digraph") and "->" in path.read_text()
