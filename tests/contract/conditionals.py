"""Conditional nodes, called by ctypes: what their tests have in common."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from tests.contract.graphs import array
from tests.kernels import compile_code

IF, WHILE, SWITCH = range(3)
CONDITIONAL = 13
ASSIGN_DEFAULT = 1
INVALID_CONTEXT, NOT_SUPPORTED, ILLEGAL_ADDRESS = 201, 801, 700

# The function is the driver's; the type of handles is built into newer compilers only.
DECLARATION = 'extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);'
SOURCE = (
    DECLARATION
    + r"""
extern "C" __global__ void set(unsigned long long handle, unsigned value) { cudaGraphSetConditional(handle, value); }
extern "C" __global__ void copy(unsigned long long handle, const unsigned* value) {
    cudaGraphSetConditional(handle, *value);
}
extern "C" __global__ void count_to(unsigned long long handle, int* count, int limit) {
    cudaGraphSetConditional(handle, ++*count < limit);
}
extern "C" __global__ void until(unsigned long long handle, const volatile int* stop) {
    cudaGraphSetConditional(handle, *stop == 0);
}
extern "C" __global__ void store(int* place, int value) { *place = value; }
extern "C" __global__ void plus(int* place, int value) { *place += value; }
extern "C" __global__ void digit(int* place, int value) { *place = 10 * *place + value; }
extern "C" __global__ void maybe(int* place, int value) { if (value != 0) *place = value; }
"""
)
KERNELS = ("set", "copy", "count_to", "until", "store", "plus", "digit", "maybe")


@pytest.fixture(scope="module")
def graph_kernels(device):
    code = compile_code(SOURCE)
    return {name: code.get_kernel(name) for name in KERNELS}


@pytest.fixture
def driver(driver):
    driver.needs(12, 4)
    return driver


class Conditional(ctypes.Structure):
    """CUgraphNodeParams of a conditional node."""

    _fields_ = (
        ("type", c_int), ("reserved", c_int * 3), ("handle", c_uint64), ("kind", c_int), ("size", c_uint),
        ("bodies", ctypes.POINTER(c_void_p)), ("context", c_void_p), ("rest", c_uint64 * 26),
    )  # fmt: skip


def handle_in(driver, graph, default=0, flags=ASSIGN_DEFAULT):
    """As kernels take it."""
    handle = c_uint64()
    driver.call(
        "cuGraphConditionalHandleCreate", byref(handle), graph, driver.context(), c_uint(default), c_uint(flags)
    )
    return c_void_p(handle.value)


def parameters(driver, handle, kind=IF, size=1):
    return Conditional(type=CONDITIONAL, handle=handle.value or 0, kind=kind, size=size, context=driver.context().value)


def result_of_node(driver, graph, handle, kind=IF, size=1):
    made, given = c_void_p(), parameters(driver, handle, kind, size)
    return driver.result("cuGraphAddNode", byref(made), graph, None, c_size_t(0), byref(given))


def node(driver, graph, before, handle, kind=IF, size=1):
    """The node and its bodies."""
    given = parameters(driver, handle, kind, size)
    made = driver.added("cuGraphAddNode", graph, before, byref(given))
    return made, [c_void_p(body) for body in given.bodies[:size]]


def capture_into(driver, stream, graph, *before):
    relaxed = 2
    driver.call("cuStreamBeginCaptureToGraph", stream, graph, array(*before), None, c_size_t(len(before)), relaxed)


def end_capture(driver, stream):
    graph = c_void_p()
    driver.call("cuStreamEndCapture", stream, byref(graph))
    return graph.value


def instantiation(driver, graph):
    """The call's result, the reason, and the node that it names."""
    made, report = c_void_p(), (c_uint64 * 4)()  # flags, a stream, a node, a reason that is padded
    result = driver.result("cuGraphInstantiateWithParams", byref(made), graph, report)
    if result == 0:
        driver.call("cuGraphExecDestroy", made)
    return result, c_int.from_buffer(report, 24).value, report[2]


def only(driver, memory, kind=IF, size=1, default=1, flags=ASSIGN_DEFAULT, value=1):
    """A graph of one conditional node, whose bodies add `value`, 10 times that and so on."""
    graph = driver.graph()
    handle = handle_in(driver, graph, default, flags)
    made, bodies = node(driver, graph, [], handle, kind, size)
    for place, body in enumerate(bodies):
        driver.kernel(body, [], "plus", memory.at(0), value * 10**place)
    return graph, handle, made, bodies
