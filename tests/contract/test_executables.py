"""Executables of graphs, their launches and user objects: the simulated driver and a GPU behave alike."""

import ctypes
import threading
from ctypes import byref, c_size_t, c_uint, c_void_p

import pytest

from tests.contract.graphs import (
    INVALID_VALUE,
    NODE_TYPE_CHANGED,
    TOPOLOGY_CHANGED,
    UPDATE_FAILURE,
    FillNode,
    array,
    copy_of,
    host_of,
)

pytestmark = pytest.mark.thread_unsafe(reason="a call of another thread on the same device could end a capture")


def test_a_captured_graph_runs_any_number_of_times(driver, memory):
    first, second = driver.stream(), driver.stream()
    called = []
    function = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: called.append(int(memory.words[0])))
    driver.begin(first)
    driver.launch(first, "digit", memory.at(0), 1)
    driver.wait(second, driver.record(first))
    driver.launch(second, "store", memory.at(1), 5)
    driver.launch(first, "digit", memory.at(0), 2)
    driver.wait(first, driver.record(second))
    driver.call("cuMemcpyAsync", memory.at(2), memory.at(0), c_size_t(8), first)
    driver.call("cuLaunchHostFunc", first, function, None)
    executable = driver.executable(driver.end(first))
    assert not memory.words.any()
    for launches, value in ((1, 12), (2, 1212), (3, 121212)):
        driver.run(executable)
        assert memory.words[:4].tolist() == [value, 5, value, 5] and called[launches - 1 :] == [value]


def test_a_launch_comes_after_its_stream_and_before_what_follows(driver, memory):
    graph, stream = driver.graph(), driver.stream()
    a = driver.kernel(graph, [], "digit", memory.at(0), 2)
    for value in (3, 3):
        driver.kernel(graph, [a], "store", memory.at(value), value)  # branches
    executable = driver.executable(graph)
    driver.launch(stream, "digit", memory.at(0), 1)
    driver.call("cuGraphLaunch", executable, stream)
    driver.launch(stream, "digit", memory.at(0), 4)
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[:4].tolist() == [124, 0, 0, 3]


def test_launches_of_one_executable_come_one_after_the_other(driver, memory):
    """In whatever streams: the digits of none are lost between two others'."""
    graph, streams = driver.graph(), [driver.stream() for _ in range(3)]
    node = None
    for value in (1, 2):
        node = driver.kernel(graph, [node] if node else [], "digit", memory.at(0), value)
    executable = driver.executable(graph)
    for stream in streams:
        driver.call("cuGraphLaunch", executable, stream)
    for stream in streams:
        driver.call("cuStreamSynchronize", stream)
    assert memory.words[0] == 121212


def test_a_launch_has_the_parameters_of_its_call(driver, memory):
    graph, stream = driver.graph(), driver.stream()
    node = driver.kernel(graph, [], "digit", memory.at(0), 1)
    executable = driver.executable(graph)
    for value in range(2, 9):
        driver.call("cuGraphLaunch", executable, stream)
        launch = driver.launch_of("digit", memory.at(0), value)
        driver.call(driver.v2("cuGraphExecKernelNodeSetParams"), executable, c_void_p(node), byref(launch))
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[0] == 1234567


def test_copies_and_fills_of_an_executable_change(driver, memory):
    graph = driver.graph()
    fill = driver.fill(graph, [], memory.at(0), 1, 1)
    copy = driver.copy(graph, [fill], memory.at(1), memory.at(0), 4)
    executable = driver.executable(graph)
    context, value = driver.context(), FillNode(memory.at(0).value, 0, 6, 4, 1, 1)
    driver.call("cuGraphExecMemsetNodeSetParams", executable, c_void_p(fill), byref(value), context)
    moved = copy_of(memory.at(2), memory.at(0), 4)
    driver.call("cuGraphExecMemcpyNodeSetParams", executable, c_void_p(copy), byref(moved), context)
    driver.run(executable)
    assert memory.words[:3].tolist() == [6, 0, 6]
    moved.height = 2
    arguments = (executable, c_void_p(copy), byref(moved), context)
    assert driver.result("cuGraphExecMemcpyNodeSetParams", *arguments) == INVALID_VALUE


def test_host_functions_of_an_executable_change(driver, memory):
    calls, prototype = [], ctypes.CFUNCTYPE(None, c_void_p)
    functions = [prototype(lambda data, number=number: calls.append(number)) for number in range(2)]
    graph, node = driver.graph(), c_void_p()
    driver.call("cuGraphAddHostNode", byref(node), graph, None, c_size_t(0), byref(host_of(functions[0])))
    executable = driver.executable(graph)
    driver.run(executable)
    driver.call("cuGraphExecHostNodeSetParams", executable, node, byref(host_of(functions[1])))
    driver.run(executable)
    driver.run(executable)
    assert calls == [0, 1, 1]


def test_nodes_are_switched_off_and_on(driver, memory):
    driver.needs(11, 6)
    graph, enabled = driver.graph(), c_uint(9)
    a = driver.kernel(graph, [], "digit", memory.at(0), 1)
    b = driver.kernel(graph, [a], "digit", memory.at(0), 2)
    driver.kernel(graph, [b], "digit", memory.at(0), 3)
    executable = driver.executable(graph)
    driver.call("cuGraphNodeSetEnabled", executable, c_void_p(b), 0)
    driver.call("cuGraphNodeGetEnabled", executable, c_void_p(b), byref(enabled))
    assert enabled.value == 0
    driver.run(executable)
    driver.call("cuGraphNodeSetEnabled", executable, c_void_p(b), 1)
    driver.run(executable)
    assert memory.words[0] == 13123


def test_events_are_recorded_and_waited_for_by_nodes(driver, memory):
    driver.needs(11, 1)
    graph, event, node, stream = driver.graph(), driver.event(), c_void_p(), driver.stream()
    a = driver.kernel(graph, [], "digit", memory.at(0), 1)
    driver.call("cuGraphAddEventRecordNode", byref(node), graph, array(a), c_size_t(1), event)
    executable = driver.executable(graph)
    driver.call("cuGraphLaunch", executable, stream)
    driver.call("cuEventSynchronize", event)
    assert memory.words[0] == 1
    waiting, wait = driver.graph(), c_void_p()
    driver.call("cuGraphAddEventWaitNode", byref(wait), waiting, None, c_size_t(0), event)
    driver.kernel(waiting, [wait.value], "digit", memory.at(0), 2)
    found = c_void_p()
    driver.call("cuGraphEventWaitNodeGetEvent", wait, byref(found))
    assert found.value == event.value
    for each in (executable, driver.executable(waiting)):
        driver.call("cuGraphLaunch", each, driver.stream())
    driver.call("cuCtxSynchronize")
    assert memory.words[0] == 112


def test_an_executable_becomes_like_another_graph(driver, memory):
    def chain(*values, of="digit", edges=True):
        graph, node = driver.graph(), None
        for value in values:
            node = driver.kernel(graph, [node] if node and edges else [], of, memory.at(0), value)
        return graph

    executable = driver.executable(chain(1, 2))
    assert driver.update(executable, chain(3, 4)) == (0, 0)
    driver.run(executable)
    assert memory.words[0] == 34
    backwards = driver.graph()  # the nodes are paired by what depends on what
    second, first = (driver.kernel(backwards, [], "digit", memory.at(0), value) for value in (4, 3))
    driver.call("cuGraphAddDependencies", backwards, array(first), array(second), c_size_t(1))
    assert driver.update(executable, backwards) == (0, 0)
    assert driver.update(executable, chain(3, 4, 5)) == (UPDATE_FAILURE, TOPOLOGY_CHANGED)
    assert driver.update(executable, chain(3, 4, edges=False)) == (UPDATE_FAILURE, TOPOLOGY_CHANGED)
    other, made = driver.graph(), c_void_p()
    node = driver.kernel(other, [], "digit", memory.at(0), 5)
    driver.call("cuGraphAddEmptyNode", byref(made), other, array(node), c_size_t(1))
    assert driver.update(executable, other) == (UPDATE_FAILURE, NODE_TYPE_CHANGED)
    driver.run(executable)  # as it was
    assert memory.words[0] == 3434


def test_a_destroyed_executable_ends_its_launches(driver, memory):
    stream, graph, open_now, made = driver.stream(), driver.graph(), threading.Event(), c_void_p()
    wait = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: open_now.wait(60) and None)
    driver.call("cuGraphAddHostNode", byref(made), graph, None, c_size_t(0), byref(host_of(wait)))
    driver.kernel(graph, [made.value], "digit", memory.at(0), 7)
    executable = driver.executable(graph)
    driver.call("cuGraphLaunch", executable, stream)
    driver.destroy(executable)
    driver.destroy(graph)
    assert memory.words[0] == 0
    open_now.set()
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[0] == 7


class Objects:
    """User objects: how many have ended."""

    def __init__(self, driver):
        self.driver, self.ended = driver, threading.Semaphore(0)
        self.function = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: self.ended.release())

    def given_to(self, graph):
        made, move = c_void_p(), 1
        self.driver.call("cuUserObjectCreate", byref(made), None, self.function, 1, 1)
        self.driver.call("cuGraphRetainUserObject", graph, made, 1, move)

    def has_ended(self):
        """Once; the driver takes its time."""
        return self.ended.acquire(timeout=60)

    def is_there(self):
        return not self.ended.acquire(blocking=False)


def test_a_user_object_ends_with_the_last_that_has_it(driver, memory):
    driver.needs(11, 3)
    graph, objects = driver.graph(), Objects(driver)
    driver.kernel(graph, [], "store", memory.at(0), 1)
    objects.given_to(graph)
    clone = driver.made("cuGraphClone", "cuGraphDestroy", graph)
    executable = driver.executable(clone)
    driver.destroy(graph)
    assert objects.is_there()
    driver.destroy(clone)
    assert objects.is_there()
    driver.destroy(executable)
    assert objects.has_ended() and objects.is_there()


def test_a_user_object_ends_after_the_last_launch(driver, memory):
    driver.needs(11, 3)
    stream, graph, objects = driver.stream(), driver.graph(), Objects(driver)
    open_now, made = threading.Event(), c_void_p()
    wait = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: open_now.wait(60) and None)
    driver.call("cuGraphAddHostNode", byref(made), graph, None, c_size_t(0), byref(host_of(wait)))
    objects.given_to(graph)
    executable = driver.executable(graph)
    driver.destroy(graph)
    for _ in range(2):
        driver.call("cuGraphLaunch", executable, stream)
    driver.destroy(executable)
    assert objects.is_there()
    open_now.set()
    assert objects.has_ended()
    driver.call("cuStreamSynchronize", stream)


def test_a_child_graph_keeps_the_user_objects_of_what_it_copies(driver, memory):
    driver.needs(11, 3)
    child, graph, objects, node = driver.graph(), driver.graph(), Objects(driver), c_void_p()
    driver.kernel(child, [], "store", memory.at(0), 1)
    objects.given_to(child)
    driver.call("cuGraphAddChildGraphNode", byref(node), graph, None, c_size_t(0), child)
    driver.destroy(child)
    assert objects.is_there()
    driver.destroy(graph)
    assert objects.has_ended()
