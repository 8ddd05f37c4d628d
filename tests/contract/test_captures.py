"""What a capture records, and what it refuses: the simulated driver and a GPU behave alike."""

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_ulonglong, c_void_p

import pytest

from tests.contract.graphs import (
    CAPTURED_EVENT,
    EMPTY,
    HOST,
    ILLEGAL_STATE,
    IMPLICIT,
    INVALID_VALUE,
    INVALIDATED,
    ISOLATION,
    KERNEL,
    MEMCPY,
    MEMSET,
    MERGE,
    RECORD,
    RELAXED,
    THREAD_LOCAL,
    UNJOINED,
    UNMATCHED,
    UNSUPPORTED,
    WAIT,
    WRONG_THREAD,
    packed,
)

pytestmark = pytest.mark.thread_unsafe(reason="a call of another thread on the same device could end a capture")


def test_a_capture_is_a_chain(driver, memory):
    stream, function = driver.stream(), ctypes.CFUNCTYPE(None, c_void_p)(lambda data: None)
    driver.begin(stream)
    driver.launch(stream, "store", memory.at(0), 1)
    driver.call("cuMemcpyAsync", memory.at(1), memory.at(0), c_size_t(4), stream)
    driver.call("cuMemsetD32Async", memory.at(2), 7, c_size_t(3), stream)
    driver.call("cuLaunchHostFunc", stream, function, None)
    graph = driver.end(stream)
    assert driver.shape(graph) == ([KERNEL, MEMCPY, MEMSET, HOST], {(0, 1), (1, 2), (2, 3)})
    assert not memory.words.any()  # nothing has run
    nodes = driver.nodes(graph)
    assert driver.several("cuGraphGetRootNodes", graph) == nodes[:1]
    assert driver.several("cuGraphNodeGetDependencies", c_void_p(nodes[1])) == nodes[:1]
    assert driver.several("cuGraphNodeGetDependentNodes", c_void_p(nodes[1])) == nodes[2:3]


def test_streams_fork_and_join_by_events(driver, memory):
    first, second, third = driver.stream(), driver.stream(), driver.stream()
    driver.begin(first)
    driver.launch(first, "store", memory.at(0), 1)
    forked = driver.record(first)
    for stream in (second, third):
        driver.wait(stream, forked)
        assert driver.status(stream) == 1
    driver.launch(second, "store", memory.at(1), 2)
    driver.launch(third, "store", memory.at(2), 3)
    driver.launch(first, "store", memory.at(3), 4)
    for stream in (second, third):
        driver.wait(first, driver.record(stream))
    driver.launch(first, "store", memory.at(4), 5)
    graph = driver.end(first)
    assert driver.shape(graph) == ([KERNEL] * 5, {(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)})
    assert driver.status(second) == driver.status(third) == 0


def test_edges_have_data(driver, memory):
    """For each node that comes before what is captured next, all zeros: it is waited for as a whole."""
    driver.needs(12, 3)
    stream = driver.stream()
    driver.begin(stream)
    driver.launch(stream, "store", memory.at(0), 1)
    status, number, graph, nodes, edges, count = c_int(), c_ulonglong(), c_void_p(), c_void_p(), c_void_p(), c_size_t()
    found = map(byref, (status, number, graph, nodes, edges, count))
    driver.call("cuStreamGetCaptureInfo_v3", stream, *found)
    assert (status.value, count.value) == (1, 1)
    assert ctypes.string_at(edges.value, 8) == bytes(8)
    driver.end(stream)


def test_a_stream_that_was_joined_may_end(driver, memory):
    first, second = driver.stream(), driver.stream()
    driver.begin(first)
    driver.launch(first, "store", memory.at(0), 1)
    driver.wait(second, driver.record(first))
    driver.launch(second, "store", memory.at(1), 2)
    driver.wait(first, driver.record(second))
    driver.destroy(second)
    assert driver.status(first) == 1
    driver.launch(first, "add", memory.at(2), memory.at(0), memory.at(1))
    graph = driver.end(first)
    assert driver.shape(graph) == ([KERNEL] * 3, {(0, 1), (0, 2), (1, 2)})
    driver.run(driver.executable(graph))
    assert memory.words[2] == 3


def test_what_is_submitted_after_an_event_does_not_come_before_who_waits(driver, memory):
    first, second = driver.stream(), driver.stream()
    driver.begin(first)
    driver.launch(first, "store", memory.at(0), 1)
    event = driver.record(first)
    driver.launch(first, "store", memory.at(1), 2)
    driver.wait(second, event)
    driver.launch(second, "store", memory.at(2), 3)
    driver.wait(first, driver.record(second))
    assert driver.shape(driver.end(first)) == ([KERNEL] * 3, {(0, 1), (0, 2)})


def test_a_stream_that_captures_tells_what_comes_before_its_next_node(driver, memory):
    driver.needs(11, 3)
    stream = driver.stream()
    driver.begin(stream)
    graph, before = driver.captured(stream)
    assert before == []
    driver.launch(stream, "store", memory.at(0), 1)
    driver.launch(stream, "store", memory.at(0), 2)
    assert driver.captured(stream)[1] == driver.nodes(graph)[1:]
    assert driver.end(stream).value == graph.value


def test_what_comes_before_the_next_node_can_be_changed(driver, memory):
    driver.needs(11, 3)
    stream, add, replace = driver.stream(), 0, 1
    assert driver.result("cuStreamUpdateCaptureDependencies", stream, None, c_size_t(0), replace) == ILLEGAL_STATE
    driver.begin(stream)
    for value in (1, 2):
        driver.launch(stream, "store", memory.at(0), value)
    first = (c_void_p * 1)(driver.nodes(driver.captured(stream)[0])[0])
    driver.call("cuStreamUpdateCaptureDependencies", stream, None, c_size_t(0), replace)
    assert driver.captured(stream)[1] == []
    driver.launch(stream, "store", memory.at(0), 3)
    driver.call("cuStreamUpdateCaptureDependencies", stream, first, c_size_t(1), add)
    driver.launch(stream, "store", memory.at(0), 4)
    assert driver.result("cuStreamUpdateCaptureDependencies", stream, first, c_size_t(1), 2) == INVALID_VALUE
    graph = c_void_p()
    # The second node comes before nothing and is no end of the stream's.
    assert driver.result("cuStreamEndCapture", stream, byref(graph)) == 0
    driver.undo.append(("cuGraphDestroy", graph))
    assert driver.shape(graph) == ([KERNEL] * 4, {(0, 1), (0, 3), (2, 3)})


def test_events_of_others_are_nodes(driver, memory):
    driver.needs(11, 1)
    stream, external = driver.stream(), 1
    event = driver.event()
    assert driver.result("cuEventRecordWithFlags", event, stream, external) == ILLEGAL_STATE  # outside of a capture
    assert driver.result("cuStreamWaitEvent", stream, event, external) == ILLEGAL_STATE
    driver.begin(stream)
    driver.launch(stream, "store", memory.at(0), 1)
    driver.call("cuEventRecordWithFlags", event, stream, external)
    driver.wait(stream, event, external)
    assert driver.result("cuEventQuery", event) == 0  # it is no event of the capture's
    graph = driver.end(stream)
    assert driver.shape(graph) == ([KERNEL, RECORD, WAIT], {(0, 1), (1, 2)})


def test_a_capture_goes_into_a_graph(driver, memory):
    driver.needs(12, 3)
    graph, stream, made = driver.graph(), driver.stream(), c_void_p()
    driver.call("cuGraphAddEmptyNode", byref(made), graph, None, c_size_t(0))
    before = (c_void_p * 1)(made.value)
    driver.call("cuStreamBeginCaptureToGraph", stream, graph, before, None, c_size_t(1), RELAXED)
    driver.launch(stream, "store", memory.at(0), 1)
    same = c_void_p()
    driver.call("cuStreamEndCapture", stream, byref(same))
    assert same.value == graph.value and driver.shape(graph) == ([EMPTY, KERNEL], {(0, 1)})


# ---- What it refuses --------------------------------------------------------------------------------------------------


def test_a_stream_that_forked_must_join(driver, memory):
    first, second = driver.stream(), driver.stream()
    driver.begin(first)
    driver.launch(first, "store", memory.at(0), 1)
    driver.wait(second, driver.record(first))
    driver.launch(second, "store", memory.at(1), 1)
    assert driver.fails_to_end(first) == UNJOINED
    assert driver.status(first) == driver.status(second) == 0
    driver.launch(second, "store", memory.at(0), 5)  # a stream like any other
    driver.call("cuStreamSynchronize", second)
    assert memory.words[:2].tolist() == [5, 0]


def test_a_capture_that_failed_takes_nothing(driver, memory):
    stream = driver.stream()
    driver.begin(stream)
    assert driver.result("cuStreamSynchronize", stream) == UNSUPPORTED
    assert driver.status(stream) == 2
    arguments = (1, 1, 1, 1, 1, 1, 0, stream, packed(memory.at(0), 1), None)
    assert driver.result("cuLaunchKernel", driver.kernels["store"], *arguments) == INVALIDATED
    assert driver.result("cuMemsetD32Async", memory.at(0), 1, c_size_t(1), stream) == INVALIDATED
    assert driver.result("cuMemcpyAsync", memory.at(0), memory.at(1), c_size_t(4), stream) == INVALIDATED
    assert driver.result("cuEventRecord", driver.event(), stream) == INVALIDATED
    assert driver.fails_to_end(stream) == INVALIDATED
    assert driver.status(stream) == 0


def test_two_captures_do_not_become_one(driver, memory):
    first, second = driver.stream(), driver.stream()
    driver.begin(first)
    driver.begin(second)
    driver.launch(first, "store", memory.at(0), 1)
    event = driver.record(first)
    assert driver.result("cuStreamWaitEvent", second, event, 0) == MERGE
    assert driver.fails_to_end(second) == INVALIDATED
    driver.result("cuStreamEndCapture", first, byref(c_void_p()))


def test_a_capture_waits_for_nothing_outside(driver, memory):
    inside, outside = driver.stream(), driver.stream()
    event = driver.record(outside)
    driver.begin(inside)
    assert driver.result("cuStreamWaitEvent", inside, event, 0) == ISOLATION
    assert driver.fails_to_end(inside) == INVALIDATED


def test_the_legacy_stream_does_not_wait_for_a_capture(driver, memory):
    """Streams that block wait for it, and it for them."""
    blocking, legacy = driver.stream(0), c_void_p(1)
    driver.begin(blocking)
    arguments = (1, 1, 1, 1, 1, 1, 0, legacy, packed(memory.at(0), 1), None)
    assert driver.result("cuLaunchKernel", driver.kernels["store"], *arguments) == IMPLICIT
    assert driver.fails_to_end(blocking) == INVALIDATED
    other = driver.stream()  # this kind does not
    driver.begin(other)
    driver.launch(legacy, "store", memory.at(0), 1)
    driver.end(other)
    driver.call("cuStreamSynchronize", legacy)


def test_the_end_belongs_to_the_stream_in_which_it_began(driver, memory):
    first, second = driver.stream(), driver.stream()
    assert driver.result("cuStreamEndCapture", first, byref(c_void_p())) == ILLEGAL_STATE
    driver.begin(first)
    assert driver.result("cuStreamBeginCapture_v2", first, RELAXED) == ILLEGAL_STATE
    assert driver.status(first) == 1
    driver.wait(second, driver.record(first))
    assert driver.result("cuStreamEndCapture", second, byref(c_void_p())) == UNMATCHED
    assert driver.fails_to_end(first) == INVALIDATED


def test_the_end_belongs_to_the_thread_in_which_it_began(driver, memory):
    """Unless it is relaxed: the wrong thread ends it all the same, for nothing."""
    stream, found, context = driver.stream(), [], driver.context()

    def end():
        driver.call("cuCtxSetCurrent", context)
        found.append(driver.fails_to_end(stream))

    driver.begin(stream, THREAD_LOCAL)
    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert found == [WRONG_THREAD] and driver.status(stream) == 0
    assert driver.result("cuStreamEndCapture", stream, byref(c_void_p())) == ILLEGAL_STATE


def test_an_event_of_a_capture_is_no_other_event(driver, memory):
    stream, other = driver.stream(), driver.stream()
    driver.begin(stream)
    event = driver.record(stream)
    driver.end(stream)
    for name in ("cuEventQuery", "cuEventSynchronize"):
        assert driver.result(name, event) == INVALID_VALUE
    assert driver.result("cuStreamWaitEvent", other, event, 0) == INVALID_VALUE
    driver.begin(stream)
    assert driver.result("cuStreamWaitEvent", stream, event, 0) == INVALID_VALUE
    assert driver.fails_to_end(stream) == INVALIDATED
    driver.begin(stream)
    driver.call("cuEventRecord", event, stream)
    assert driver.result("cuEventQuery", event) == CAPTURED_EVENT
    assert driver.fails_to_end(stream) == INVALIDATED
    driver.call("cuEventRecord", event, other)  # from here on it is
    driver.call("cuEventSynchronize", event)


def test_an_event_that_was_never_recorded_comes_before_nothing(driver, memory):
    stream = driver.stream()
    driver.begin(stream)
    driver.wait(stream, driver.event())
    assert driver.shape(driver.end(stream)) == ([], set())


def test_a_launch_is_not_captured(driver, memory):
    graph, stream = driver.graph(), driver.stream()
    driver.kernel(graph, [], "digit", memory.at(0), 5)
    executable = driver.executable(graph)
    for name in ("cuGraphLaunch", "cuGraphUpload"):
        driver.begin(stream)
        assert driver.result(name, executable, stream) == UNSUPPORTED
        assert driver.fails_to_end(stream) == INVALIDATED


def test_a_capture_that_failed_takes_the_graph_that_it_went_into(driver, memory):
    driver.needs(12, 3)
    graph, stream = driver.graph(), driver.stream()
    driver.call("cuStreamBeginCaptureToGraph", stream, graph, None, None, c_size_t(0), RELAXED)
    driver.launch(stream, "store", memory.at(0), 1)
    assert driver.result("cuStreamSynchronize", stream) == UNSUPPORTED
    assert driver.fails_to_end(stream) == INVALIDATED
    driver.forget(graph)
