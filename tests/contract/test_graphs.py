"""CUDA graphs: the simulated driver and a GPU behave alike. Calls go to the driver itself; values in memory are compared."""

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from tests.conftest import compile_code, simulated_only

pytestmark = pytest.mark.thread_unsafe(reason="a call of another thread on the same device could end a capture")

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY, WAIT, RECORD = range(8)
UPDATE_FAILURE, TOPOLOGY_CHANGED, NODE_TYPE_CHANGED = 910, 2, 3
INVALID_VALUE, ILLEGAL_STATE, INVALID_HANDLE = 1, 401, 400
UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED_EVENT, WRONG_THREAD = range(
    900, 909
)

SOURCE = r"""
extern "C" __global__ void store(int* place, int value) { *place = value; }
extern "C" __global__ void digit(int* place, int value) { *place = 10 * *place + value; }
extern "C" __global__ void maybe(int* place, int value) { if (value != 0) *place = value; }
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
        if count.value == 0:
            return set()
        begins, ends = (c_void_p * count.value)(), (c_void_p * count.value)()
        self.call("cuGraphGetEdges", graph, begins, ends, byref(count))
        return set(zip(begins[: count.value], ends[: count.value], strict=True))

    def shape(self, graph):
        """The types of the nodes in the order in which they were added, and the edges by their places in it."""
        nodes = self.nodes(graph)
        return [self.type(node) for node in nodes], {(nodes.index(a), nodes.index(b)) for a, b in self.edges(graph)}

    # ---- Graphs that are built ---------------------------------------------------------------------------------------

    def context(self):
        context = c_void_p()
        self.call("cuCtxGetCurrent", byref(context))
        return context

    def v2(self, name):
        """Since 12.0 kernels' nodes have longer parameters."""
        return name + "_v2" if self.version >= (12, 0) else name

    def KernelNode(self, *values):
        return (LongKernelNode if self.version >= (12, 0) else KernelNode)(*values)

    def launch_of(self, kernel, *arguments):
        array = packed(*arguments)
        ones = (c_uint * 3)(1, 1, 1)
        node = self.KernelNode(self.kernels[kernel].value, ones, ones, 0, ctypes.addressof(array))
        node.kept = array
        return node

    def added(self, name, graph, before, *arguments):
        made = c_void_p()
        self.call(name, byref(made), graph, array(*before), c_size_t(len(before)), *arguments)
        return made.value

    def kernel(self, graph, before, kernel, *arguments):
        return self.added(self.v2("cuGraphAddKernelNode"), graph, before, byref(self.launch_of(kernel, *arguments)))

    def copy(self, graph, before, to, source, size):
        return self.added("cuGraphAddMemcpyNode", graph, before, byref(copy_of(to, source, size)), self.context())

    def fill(self, graph, before, to, value, count):
        return self.added(
            "cuGraphAddMemsetNode", graph, before, byref(FillNode(to.value, 0, value, 4, count, 1)), self.context()
        )

    def instantiate(self, made, graph):
        if self.version >= (11, 4):
            return self.result("cuGraphInstantiateWithFlags", byref(made), graph, c_ulonglong(0))
        return self.result("cuGraphInstantiate_v2", byref(made), graph, None, None, c_size_t(0))

    def executable(self, graph):
        made = c_void_p()
        assert self.instantiate(made, graph) == 0
        self.undo.append(("cuGraphExecDestroy", made))
        return made

    def run(self, executable):
        stream = c_void_p(2)
        self.call("cuGraphLaunch", executable, stream)
        self.call("cuStreamSynchronize", stream)

    def update(self, executable, graph):
        if self.version < (12, 0):
            node, reason = c_void_p(), c_int(-1)
            return self.result("cuGraphExecUpdate", executable, graph, byref(node), byref(reason)), reason.value
        report = (c_void_p * 3)()  # the reason, padded; two nodes
        return self.result("cuGraphExecUpdate_v2", executable, graph, report), c_int.from_buffer(report).value


class KernelNode(ctypes.Structure):
    _fields_ = (
        ("func", c_void_p), ("grid", c_uint * 3), ("block", c_uint * 3), ("shared", c_uint),
        ("parameters", c_void_p), ("extra", c_void_p),
    )  # fmt: skip


class LongKernelNode(ctypes.Structure):
    _fields_ = (*KernelNode._fields_, ("kern", c_void_p), ("context", c_void_p))


def side(name):
    """Half of a CUDA_MEMCPY3D."""
    return (
        *((f"{name}_{each}", c_size_t) for each in ("x", "y", "z", "level")), (f"{name}_type", c_int),
        *((f"{name}_{each}", c_void_p) for each in ("host", "device", "array", "reserved")),
        *((f"{name}_{each}", c_size_t) for each in ("pitch", "height")),
    )  # fmt: skip


class CopyNode(ctypes.Structure):
    _fields_ = (*side("source"), *side("destination"), *((each, c_size_t) for each in ("width", "height", "depth")))


class FillNode(ctypes.Structure):
    _fields_ = (
        ("destination", c_void_p), ("pitch", c_size_t), ("value", c_uint), ("size", c_uint),
        ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


class HostNode(ctypes.Structure):
    _fields_ = (("function", c_void_p), ("data", c_void_p))


def copy_of(to, source, size):
    """One row, wherever the memory is."""
    unified = 4
    node = CopyNode(source_type=unified, destination_type=unified, width=size, height=1, depth=1)
    node.source_device, node.destination_device = source.value, to.value
    return node


def host_of(function):
    return HostNode(ctypes.cast(function, c_void_p), None)


def array(*nodes):
    return (c_void_p * (len(nodes) or 1))(*nodes)


def packed(*arguments):
    """The array that kernel launches take: ints are 4 bytes, addresses are c_void_p."""
    values = [argument if isinstance(argument, c_void_p) else c_int(argument) for argument in arguments]
    array = (c_void_p * len(values))(*map(ctypes.addressof, values))
    array.kept = values
    return array


@pytest.fixture(scope="module")
def kernels(device):
    code = compile_code(SOURCE)
    return {name: code.get_kernel(name) for name in ("store", "digit", "maybe", "add")}


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


# ---- Graphs that are built ---------------------------------------------------------------------------------------------


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
    assert driver.result("cuGraphNodeFindInClone", byref(twin), c_void_p(b), graph) == INVALID_VALUE
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


# ---- Executables ------------------------------------------------------------------------------------------------------


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
    pointer = memory_of_the_device(driver)
    arguments = (executable, c_void_p(copy), byref(copy_of(memory.at(2), pointer, 4)), context)
    assert driver.result("cuGraphExecMemcpyNodeSetParams", *arguments) == INVALID_VALUE  # of another kind of memory
    driver.call("cuMemFree_v2", pointer)


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


# ---- What only the simulated driver says ------------------------------------------------------------------------------


@pytest.fixture
def violations():
    """What was reported, which then is no failure of the test."""
    from ftcuda.testing import simulation

    def take():
        found = simulation.violations()
        simulation.clear_violations()
        return found

    return take


def branches(driver, memory, ordered):
    """Two kernels that write the same word, one after the other or beside each other."""
    graph = driver.graph()
    first = driver.kernel(graph, [], "store", memory.at(0), 1)
    left = driver.kernel(graph, [first], "store", memory.at(1), 2)
    driver.kernel(graph, [left if ordered else first], "store", memory.at(1), 3)
    return driver.executable(graph)


@simulated_only
@pytest.mark.parametrize("ordered", [True, False])
def test_a_missing_edge_is_a_race(driver, memory, violations, ordered):
    from ftcuda.testing import simulation

    executable = branches(driver, memory, ordered)
    with simulation.watched_races():
        for _ in range(2):  # the launches come one after the other, in whatever streams
            driver.call("cuGraphLaunch", executable, driver.stream())
        driver.call("cuCtxSynchronize")
    found = violations()
    assert all("no order between streams: kernel store" in report for report in found)
    assert bool(found) != ordered


@simulated_only
def test_branches_run_beside_each_other(driver, memory):
    """Each waits until the other has begun: in one queue they would wait for ever."""
    met, prototype = threading.Barrier(2), ctypes.CFUNCTYPE(None, c_void_p)
    function = prototype(lambda data: met.wait(60) and None)
    graph, node = driver.graph(), c_void_p()
    root = driver.kernel(graph, [], "store", memory.at(0), 1)
    for _ in range(2):
        driver.call("cuGraphAddHostNode", byref(node), graph, array(root), c_size_t(1), byref(host_of(function)))
    driver.run(driver.executable(graph))
    assert not met.broken


def meet(driver, entry, held, other):
    """`held` is inside `entry` while this thread calls `other`."""
    from ftcuda.testing import faults

    context = driver.context()

    def in_a_thread():
        driver.call("cuCtxSetCurrent", context)
        held()

    with faults.holding(entry) as fault:
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        fault.wait()
        other()
        fault.release()
        thread.join()


@simulated_only
def test_two_threads_inside_one_graph_are_a_violation(driver, memory, violations):
    graph, child, node, inner = driver.graph(), driver.graph(), c_void_p(), c_void_p()
    driver.call("cuGraphAddChildGraphNode", byref(node), graph, None, c_size_t(0), child)
    driver.call("cuGraphChildGraphNodeGetGraph", node, byref(inner))
    other = driver.graph()
    for handle, others, expected in (
        (graph, graph, True),
        (graph, inner, True),
        (inner, graph, True),
        (graph, other, False),
    ):
        meet(driver, "cuGraphGetNodes", lambda h=handle: driver.nodes(h), lambda o=others: driver.edges(o))
        found = violations()
        assert set(found) == ({"two threads inside one graph at once"} if expected else set())
        driver.nodes(handle)
        driver.edges(others)
        assert violations() == []  # one after the other
    made = c_void_p()
    meet(driver, "cuGraphGetNodes", lambda: driver.nodes(graph), lambda: driver.instantiate(made, graph))
    assert violations() == ["two threads inside one graph at once"]
    driver.call("cuGraphExecDestroy", made)


@simulated_only
def test_two_threads_inside_one_executable_are_a_violation(driver, memory, violations):
    graph = driver.graph()
    node = driver.kernel(graph, [], "store", memory.at(0), 1)
    first, second = driver.executable(graph), driver.executable(graph)
    streams = [driver.stream(), driver.stream()]
    for others, expected in ((first, True), (second, False)):
        meet(driver, "cuGraphLaunch", lambda: driver.result("cuGraphLaunch", first, streams[0]),
             lambda each=others: driver.result("cuGraphUpload", each, streams[1]))  # fmt: skip
        assert violations() == (["two threads inside one executable graph at once"] if expected else [])
    # A setter names the executable and the graph that it was made of.
    launch = driver.launch_of("store", memory.at(0), 2)
    change = (driver.v2("cuGraphExecKernelNodeSetParams"), second, c_void_p(node), byref(launch))
    meet(
        driver, "cuGraphLaunch", lambda: driver.result("cuGraphLaunch", first, streams[0]), lambda: driver.call(*change)
    )
    assert violations() == []
    meet(driver, change[0], lambda: driver.call(*change), lambda: driver.result("cuGraphLaunch", second, streams[1]))
    assert violations() == ["two threads inside one executable graph at once"]
    driver.call("cuCtxSynchronize")


@simulated_only
def test_a_launch_of_a_destroyed_executable_is_a_violation(driver, memory, violations):
    graph, stream = driver.graph(), driver.stream()
    executable = driver.executable(graph)
    driver.run(executable)
    driver.destroy(executable)
    assert violations() == []
    assert driver.result("cuGraphLaunch", executable, stream) == INVALID_VALUE
    assert violations() == ["stale or foreign executable graph handle"]
    assert driver.result("cuGraphExecDestroy", executable) == INVALID_VALUE
    assert violations() == ["executable graph destroyed that does not exist (twice, or foreign)"]


def memory_of_the_device(driver):
    pointer = c_void_p()
    driver.call("cuMemAlloc_v2", byref(pointer), c_size_t(64))
    return pointer


@simulated_only
def test_memory_freed_under_a_launch_is_a_violation(driver, memory, violations):
    from ftcuda.testing import simulation

    pointer, other, graph, stream = (
        memory_of_the_device(driver),
        memory_of_the_device(driver),
        driver.graph(),
        driver.stream(),
    )
    driver.kernel(graph, [], "maybe", pointer, 0)
    executable = driver.executable(graph)
    with simulation.held_clock():
        driver.call("cuGraphLaunch", executable, stream)
        driver.call("cuMemFree_v2", other)
        assert violations() == []  # no launch names that
        driver.call("cuMemFree_v2", pointer)
        assert violations() == ["memory freed before the last work that uses it was done"]
    driver.call("cuStreamSynchronize", stream)


@simulated_only
def test_a_launch_with_memory_that_was_freed_is_a_violation(driver, memory, violations):
    """Also when somebody else has been given it since: nothing else would notice."""
    pointer, graph = memory_of_the_device(driver), driver.graph()
    node = driver.kernel(graph, [], "maybe", pointer, 0)
    executable = driver.executable(graph)
    driver.run(executable)
    driver.call("cuMemFree_v2", pointer)
    assert violations() == []
    driver.run(executable)
    assert violations() == ["graph launched with memory that was freed since"]
    again = memory_of_the_device(driver)
    assert again.value == pointer.value
    driver.run(executable)
    assert violations() == ["graph launched with memory that was freed since"]
    launch = driver.launch_of("maybe", again, 0)
    driver.call(driver.v2("cuGraphExecKernelNodeSetParams"), executable, c_void_p(node), byref(launch))
    driver.run(executable)
    assert violations() == []
    driver.call("cuMemFree_v2", again)
