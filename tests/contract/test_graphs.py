"""CUDA graphs: the simulated driver and a GPU behave alike. Calls go to the driver itself; values in memory are compared."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_ulonglong, c_void_p
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from tests.conftest import compile_code

pytestmark = pytest.mark.thread_unsafe(reason="a call of another thread on the same device could end a capture")

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY, WAIT, RECORD = range(8)
INVALID_VALUE, ILLEGAL_STATE, INVALID_HANDLE = 1, 401, 400
UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED_EVENT, WRONG_THREAD = range(
    900, 909
)

SOURCE = r"""
extern "C" __global__ void store(int* place, int value) { *place = value; }
extern "C" __global__ void digit(int* place, int value) { *place = 10 * *place + value; }
extern "C" __global__ void add(int* to, const int* a, const int* b) { *to = *a + *b; }
"""


class Driver:
    """The driver's functions by their exported names. A call that fails raises an AssertionError, `result` returns."""

    def __init__(self, device, kernels):
        device.set_current()
        self.library = ctypes.CDLL(ftcuda.driver_info().path)
        self.version = tuple(map(int, ftcuda.driver_info().version.split(".")))
        self.kernels = {name: c_void_p(int(kernel.handle)) for name, kernel in kernels.items()}
        self.undo = []

    def result(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def call(self, name, *arguments):
        assert self.result(name, *arguments) == 0, name

    def needs(self, *version):
        if self.version < version:
            pytest.skip(reason=f"drivers before {'.'.join(map(str, version))} have none of it")

    def made(self, name, destroy, *arguments):
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        self.undo.append((destroy, handle))
        return handle

    def stream(self, flags=1):
        return self.made("cuStreamCreate", "cuStreamDestroy_v2", flags)

    def event(self):
        return self.made("cuEventCreate", "cuEventDestroy_v2", 0)

    def graph(self):
        return self.made("cuGraphCreate", "cuGraphDestroy", 0)

    def forget(self, handle):
        self.undo = [each for each in self.undo if each[1] is not handle]

    def destroy(self, handle):
        (name,) = [name for name, each in self.undo if each is handle]
        self.forget(handle)
        self.call(name, handle)

    def close(self):
        while self.undo:
            name, handle = self.undo.pop()
            self.call(name, handle)

    # ---- Captures --------------------------------------------------------------------------------------------------

    def launch(self, stream, kernel, *arguments):
        self.call("cuLaunchKernel", self.kernels[kernel], 1, 1, 1, 1, 1, 1, 0, stream, packed(*arguments), None)

    def begin(self, stream, mode=RELAXED):
        self.call("cuStreamBeginCapture_v2", stream, mode)

    def end(self, stream):
        graph = c_void_p()
        self.call("cuStreamEndCapture", stream, byref(graph))
        self.undo.append(("cuGraphDestroy", graph))
        return graph

    def fails_to_end(self, stream):
        graph = c_void_p(1)
        result = self.result("cuStreamEndCapture", stream, byref(graph))
        assert result != 0 and not graph.value
        return result

    def record(self, stream, flags=0):
        event = self.event()
        self.call("cuEventRecordWithFlags", event, stream, flags)
        return event

    def wait(self, stream, event, flags=0):
        self.call("cuStreamWaitEvent", stream, event, flags)

    def status(self, stream):
        status = c_int(-1)
        self.call("cuStreamIsCapturing", stream, byref(status))
        return status.value

    def captured(self, stream):
        """The graph that is captured, and what the next node will depend on."""
        self.needs(11, 3)
        status, number, graph = c_int(), c_ulonglong(), c_void_p()
        nodes, count = ctypes.POINTER(c_void_p)(), c_size_t()
        self.call(
            "cuStreamGetCaptureInfo_v2", stream, byref(status), byref(number), byref(graph), byref(nodes), byref(count)
        )
        assert status.value == 1
        return graph, nodes[: count.value]

    # ---- Nodes -----------------------------------------------------------------------------------------------------

    def several(self, name, handle):
        count = c_size_t()
        self.call(name, handle, None, byref(count))
        found = (c_void_p * (count.value + 1))()
        count.value += 1
        self.call(name, handle, found, byref(count))
        assert found[count.value] is None  # what there is no node for is filled up
        return found[: count.value]

    def nodes(self, graph):
        return self.several("cuGraphGetNodes", graph)

    def type(self, node):
        kind = c_int(-1)
        self.call("cuGraphNodeGetType", c_void_p(node), byref(kind))
        return kind.value

    def edges(self, graph):
        """Pairs of node handles."""
        count = c_size_t()
        self.call("cuGraphGetEdges", graph, None, None, byref(count))
        begins, ends = (c_void_p * (count.value or 1))(), (c_void_p * (count.value or 1))()
        self.call("cuGraphGetEdges", graph, begins, ends, byref(count))
        return set(zip(begins[: count.value], ends[: count.value], strict=True))

    def shape(self, graph):
        """The types of the nodes in the order in which they were added, and the edges by their places in it."""
        nodes = self.nodes(graph)
        return [self.type(node) for node in nodes], {(nodes.index(a), nodes.index(b)) for a, b in self.edges(graph)}


def packed(*arguments):
    """The array that kernel launches take: ints are 4 bytes, addresses are c_void_p."""
    values = [argument if isinstance(argument, c_void_p) else c_int(argument) for argument in arguments]
    array = (c_void_p * len(values))(*map(ctypes.addressof, values))
    array.kept = values
    return array


@pytest.fixture(scope="module")
def kernels(device):
    code = compile_code(SOURCE)
    return {name: code.get_kernel(name) for name in ("store", "digit", "add")}


@pytest.fixture
def driver(device, kernels):
    driver = Driver(device, kernels)
    yield driver
    driver.close()


@pytest.fixture
def memory(pinned):
    """Pinned words: what the device writes, the host reads after it waited."""
    buffer, words = pinned(np.zeros(1024, np.int32))
    address = int(buffer.handle)
    memory = SimpleNamespace(words=words, at=lambda index: c_void_p(address + 4 * index))
    yield memory
    del memory.words  # the fixture's value lives longer than the test


# ---- What a capture records -------------------------------------------------------------------------------------------


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
    assert driver.result("cuEventRecordWithFlags", event, stream, external) == INVALID_VALUE  # outside of a capture
    driver.begin(stream)
    driver.launch(stream, "store", memory.at(0), 1)
    driver.call("cuEventRecordWithFlags", event, stream, external)
    driver.wait(stream, event, external)
    assert driver.result("cuEventQuery", event) == 0  # it is no event of the capture's
    graph = driver.end(stream)
    assert driver.shape(graph) == ([KERNEL, RECORD, WAIT], {(0, 1), (1, 2)})


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
    driver.begin(first)
    assert driver.result("cuStreamBeginCapture_v2", first, RELAXED) == INVALID_VALUE
    driver.wait(second, driver.record(first))
    assert driver.result("cuStreamEndCapture", second, byref(c_void_p())) == UNMATCHED
    driver.result("cuStreamEndCapture", first, byref(c_void_p()))


def test_an_event_of_a_capture_is_no_other_event(driver, memory):
    stream, other = driver.stream(), driver.stream()
    driver.begin(stream)
    event = driver.record(stream)
    driver.end(stream)
    assert driver.result("cuEventQuery", event) == driver.result("cuEventSynchronize", event) == CAPTURED_EVENT
    driver.call("cuEventRecord", event, other)  # from here on it is
    driver.call("cuEventSynchronize", event)
