"""Handles of conditions, the nodes that read them, their bodies and executables: the simulated driver and a GPU behave alike."""

import ctypes
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np
import pytest

from tests.contract.conditionals import (
    CONDITIONAL,
    IF,
    INVALID_CONTEXT,
    NOT_SUPPORTED,
    SWITCH,
    WHILE,
    driver,
    graph_kernels,
    handle_in,
    instantiation,
    node,
    only,
    parameters,
    result_of_node,
)
from tests.contract.graphs import (
    INVALID_VALUE,
    KERNEL,
    TOPOLOGY_CHANGED,
    UPDATE_FAILURE,
    array,
    copy_of,
    host_of,
)

__all__ = ["driver", "graph_kernels"]
pytestmark = pytest.mark.thread_unsafe(reason="a call of another thread on the same device could end a capture")

UPDATE_NOT_SUPPORTED = 6  # CUgraphExecUpdateResult
FAILED, NOT_IN_A_BODY, OTHER_CONTEXTS, UNUSED_HANDLE = 1, 3, 4, 5  # CUgraphInstantiateResult


# ---- Handles and nodes -----------------------------------------------------------------------------------------------


def test_handles_are_of_a_graph_with_all_that_is_in_it(driver, memory):
    """A body's node may have one that was made for the graph, and the other way round."""
    graph = driver.graph()
    first = handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], first)
    second, third = handle_in(driver, body, 1), handle_in(driver, graph, 1)
    assert len({first.value, second.value, third.value}) == 3
    _, (outside,) = node(driver, graph, [], second)
    _, (inside,) = node(driver, body, [], third)
    driver.kernel(outside, [], "store", memory.at(0), 1)
    driver.kernel(inside, [], "store", memory.at(1), 2)
    driver.run(driver.executable(graph))
    assert list(memory.words[:2]) == [1, 2]


def test_what_is_no_handle(driver, memory):
    graph, other = driver.graph(), driver.graph()
    context, handle = driver.context(), c_uint64()
    create = "cuGraphConditionalHandleCreate"
    assert driver.result(create, byref(handle), graph, context, c_uint(0), c_uint(2)) == INVALID_VALUE
    assert driver.result(create, byref(handle), graph, None, c_uint(0), c_uint(1)) == INVALID_CONTEXT
    assert result_of_node(driver, graph, c_void_p(0)) == INVALID_VALUE
    made = handle_in(driver, graph)
    assert result_of_node(driver, graph, c_void_p(made.value + 77)) == INVALID_VALUE
    assert result_of_node(driver, other, made) == INVALID_VALUE
    assert driver.nodes(graph) == driver.nodes(other) == []


def test_a_handle_is_of_one_node(driver, memory):
    graph, handle, made, (body,) = only(driver, memory)
    assert result_of_node(driver, graph, handle) == INVALID_VALUE
    assert result_of_node(driver, body, handle) == INVALID_VALUE
    driver.call("cuGraphDestroyNode", c_void_p(made))
    assert instantiation(driver, graph) == (INVALID_VALUE, UNUSED_HANDLE, 0)
    _, (body,) = node(driver, graph, [], handle, WHILE)  # it has become free again
    driver.kernel(body, [], "count_to", handle, memory.at(0), 2)
    driver.run(driver.executable(graph))
    assert memory.words[0] == 2


@pytest.mark.parametrize(("kind", "size"), [(IF, 0), (IF, 3), (WHILE, 0), (WHILE, 2), (SWITCH, 0), (3, 1), (-1, 1)])
def test_how_many_bodies_there_are(driver, memory, kind, size):
    graph = driver.graph()
    assert result_of_node(driver, graph, handle_in(driver, graph), kind, size) == INVALID_VALUE


@pytest.mark.parametrize(("kind", "size"), [(IF, 2), (SWITCH, 1), (SWITCH, 5)])
def test_older_drivers_have_one_body(driver, memory, kind, size):
    graph = driver.graph()
    result = result_of_node(driver, graph, handle_in(driver, graph), kind, size)
    assert result == (0 if driver.version >= (12, 8) else INVALID_VALUE)


def test_a_node_names_its_context(driver, memory):
    graph, made = driver.graph(), c_void_p()
    given = parameters(driver, handle_in(driver, graph))
    given.context = None
    assert driver.result("cuGraphAddNode", byref(made), graph, None, c_size_t(0), byref(given)) == INVALID_CONTEXT


def test_a_node_is_added_with_edges_that_wait_for_whole_nodes(driver, memory):
    graph, made = driver.graph(), c_void_p()
    handle = handle_in(driver, graph)
    first = driver.kernel(graph, [], "set", handle, 1)
    given = parameters(driver, handle)
    edges = c_uint64(0)
    driver.call("cuGraphAddNode_v2", byref(made), graph, array(first), byref(edges), c_size_t(1), byref(given))
    driver.kernel(c_void_p(given.bodies[0]), [], "store", memory.at(0), 1)
    assert driver.shape(graph) == ([KERNEL, CONDITIONAL], {(0, 1)})
    driver.run(driver.executable(graph))
    assert memory.words[0] == 1


def test_bodies_belong_to_their_node(driver, memory):
    graph, _, made, (body,) = only(driver, memory)
    other, node_of_other = driver.graph(), c_void_p()
    assert driver.result("cuGraphDestroy", body) == INVALID_VALUE
    assert driver.type(made) == CONDITIONAL
    for each in (graph, body):  # such graphs are not copied
        assert driver.result("cuGraphClone", byref(c_void_p()), each) == NOT_SUPPORTED
        child = driver.result("cuGraphAddChildGraphNode", byref(node_of_other), other, None, c_size_t(0), each)
        assert child == NOT_SUPPORTED
    assert instantiation(driver, body) == (NOT_SUPPORTED, FAILED, 0)
    inner = driver.nodes(body)
    driver.call("cuGraphDestroyNode", c_void_p(inner[0]))
    assert driver.nodes(body) == []
    assert instantiation(driver, graph) == (0, 0, 0)


def test_what_a_node_is_stays(driver, memory):
    graph, handle, made, _ = only(driver, memory)
    executable, enabled = driver.executable(graph), c_uint(7)
    given = parameters(driver, handle)
    assert driver.result("cuGraphNodeSetParams", c_void_p(made), byref(given)) == NOT_SUPPORTED
    assert driver.result("cuGraphExecNodeSetParams", executable, c_void_p(made), byref(given)) == NOT_SUPPORTED
    assert driver.result("cuGraphNodeSetEnabled", executable, c_void_p(made), c_uint(0)) == INVALID_VALUE
    assert driver.result("cuGraphNodeGetEnabled", executable, c_void_p(made), byref(enabled)) == INVALID_VALUE
    driver.run(executable)
    assert memory.words[0] == 1


def test_a_picture_has_the_node_and_its_bodies(driver, memory, tmp_path):
    graph, _, _, _ = only(driver, memory, WHILE)
    path = tmp_path / "graph.dot"
    driver.call("cuGraphDebugDotPrint", graph, str(path).encode(), c_uint(0))
    text = path.read_text()
    assert "CONDITIONAL" in text and "WHILE" in text and "plus" in text and text.count("subgraph") == 2


# ---- Instantiation and updates ---------------------------------------------------------------------------------------


def test_a_handle_without_a_node_keeps_a_graph_from_being_instantiated(driver, memory):
    graph, _, _, body = only(driver, memory)
    assert instantiation(driver, graph) == (0, 0, 0)
    handle_in(driver, body[0])
    assert instantiation(driver, graph) == (INVALID_VALUE, UNUSED_HANDLE, 0)
    assert driver.instantiate(c_void_p(), graph) == INVALID_VALUE


def test_there_is_one_executable_of_a_graph_at_a_time(driver, memory):
    graph, _, _, _ = only(driver, memory)
    executable = driver.executable(graph)
    assert instantiation(driver, graph) == (NOT_SUPPORTED, FAILED, 0)
    driver.run(executable)
    driver.destroy(executable)
    driver.run(driver.executable(graph))
    assert memory.words[0] == 2


def add_host_node(driver, graph, memory):
    function = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: None)
    return driver.added("cuGraphAddHostNode", graph, [], byref(host_of(function)))


def add_record(driver, graph, memory):
    return driver.added("cuGraphAddEventRecordNode", graph, [], driver.event())


def add_wait(driver, graph, memory):
    return driver.added("cuGraphAddEventWaitNode", graph, [], driver.event())


@pytest.mark.parametrize("add", [add_host_node, add_record, add_wait])
@pytest.mark.parametrize("where", ["in a body", "in a child graph there", "in a body there"])
def test_what_may_not_be_in_a_body(driver, memory, add, where):
    """It can be added; the graph cannot be instantiated."""
    graph, _, _, (body,) = only(driver, memory)
    if where == "in a body":
        wrong = add(driver, body, memory)
    elif where == "in a body there":
        _, (inner,) = node(driver, body, [], handle_in(driver, graph))
        wrong = add(driver, inner, memory)
    else:
        inner = c_void_p()
        child = driver.added("cuGraphAddChildGraphNode", body, [], driver.graph())
        driver.call("cuGraphChildGraphNodeGetGraph", c_void_p(child), byref(inner))
        wrong = add(driver, inner, memory)
    result, reason, named = instantiation(driver, graph)
    assert (result, reason) == (INVALID_VALUE, NOT_IN_A_BODY) and named
    driver.call("cuGraphDestroyNode", c_void_p(wrong))
    assert instantiation(driver, graph)[:2] == (0, 0)


def test_a_body_has_no_copies_of_pageable_memory(driver, memory):
    graph, _, _, (body,) = only(driver, memory)
    plain = np.zeros(1, np.int32)
    copy = copy_of(memory.at(0), c_void_p(plain.ctypes.data), 4)
    driver.added("cuGraphAddMemcpyNode", body, [], byref(copy), driver.context())
    result, reason, named = instantiation(driver, graph)
    assert (result, reason) == (INVALID_VALUE, OTHER_CONTEXTS) and named


def test_an_update_changes_bodies_and_how_launches_begin(driver, memory):
    executable = driver.executable(only(driver, memory)[0])
    assert driver.update(executable, only(driver, memory, value=7)[0]) == (0, 0)
    driver.run(executable)
    assert memory.words[0] == 7
    assert driver.update(executable, only(driver, memory, default=0)[0]) == (0, 0)
    driver.run(executable)
    assert memory.words[0] == 7
    assert driver.update(executable, only(driver, memory, default=1, flags=0)[0]) == (0, 0)
    driver.run(executable)
    assert memory.words[0] == 7  # the value has stayed


def test_what_an_update_cannot_change(driver, memory):
    executable = driver.executable(only(driver, memory)[0])
    refused = (UPDATE_FAILURE, UPDATE_NOT_SUPPORTED)
    assert driver.update(executable, only(driver, memory, WHILE, default=0)[0]) == refused
    if driver.version >= (12, 8):
        assert driver.update(executable, only(driver, memory, IF, 2)[0]) == refused
    graph, _, _, (body,) = only(driver, memory)
    driver.kernel(body, [], "plus", memory.at(0), 1)
    assert driver.update(executable, graph) == (UPDATE_FAILURE, TOPOLOGY_CHANGED)
    assert driver.update(executable, driver.graph()) == (UPDATE_FAILURE, TOPOLOGY_CHANGED)
    driver.run(executable)
    assert memory.words[0] == 1


def test_an_update_pairs_handles_in_the_order_in_which_they_were_made(driver, memory):
    def two(order):
        graph = driver.graph()
        handles, before = [handle_in(driver, graph, 1), handle_in(driver, graph, 0)], []
        for place in order:
            made, (body,) = node(driver, graph, before, handles[place])
            driver.kernel(body, [], "plus", memory.at(0), 10**place)
            before = [made]
        return graph

    executable = driver.executable(two((0, 1)))
    assert driver.update(executable, two((0, 1))) == (0, 0)
    assert driver.update(executable, two((1, 0))) == (UPDATE_FAILURE, UPDATE_NOT_SUPPORTED)
    driver.run(executable)
    assert memory.words[0] == 1
