"""The driver's graphs, called by ctypes: what the tests of captures, graphs and executables have in common."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_ulonglong, c_void_p

import pytest

import ftcuda

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY, WAIT, RECORD = range(8)
UPDATE_FAILURE, TOPOLOGY_CHANGED, NODE_TYPE_CHANGED = 910, 2, 3
INVALID_VALUE, ILLEGAL_STATE, INVALID_HANDLE, NOT_FOUND = 1, 401, 400, 500
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


def memory_of_the_device(driver):
    pointer = c_void_p()
    driver.call("cuMemAlloc_v2", byref(pointer), c_size_t(64))
    return pointer
