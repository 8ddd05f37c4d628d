"""What only the simulated driver says of graphs: missing edges, threads that meet, and memory that is gone."""

import ctypes
import threading
from ctypes import byref, c_size_t, c_uint, c_void_p

import pytest

from tests.conftest import simulated_only
from tests.contract.graphs import INVALID_VALUE, NOT_FOUND, array, host_of, memory_of_the_device
from tests.kernels import compile_code

pytestmark = pytest.mark.thread_unsafe(
    reason="waits for the whole device, and reads the violations of the whole process"
)


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
def test_what_destroys_a_copy_is_inside_what_was_copied(driver, memory, violations):
    """An H100 crashes then (driver 580), whatever is in the graph: of the second group it does so in seconds.

    Mutant: without add_sources() nobody notices.
    """
    graph, other, parent, clone, node = driver.graph(), c_void_p(), c_void_p(), c_void_p(), c_void_p()
    for made in (other, parent):
        driver.call("cuGraphCreate", byref(made), c_uint(0))
    driver.call("cuGraphClone", byref(clone), graph)
    driver.call("cuGraphAddChildGraphNode", byref(node), parent, None, c_size_t(0), graph)
    of_graph, of_parent, of_other, last = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    for made, of in ((of_graph, graph), (of_parent, parent), (of_other, other), (last, other)):
        assert driver.instantiate(made, of) == 0
    look = "cuGraphGetNodes"

    def held():
        driver.nodes(graph)

    for destroyed in (("cuGraphExecDestroy", of_other), ("cuGraphExecDestroy", of_parent)):
        meet(driver, look, held, lambda each=destroyed: driver.call(*each))
        assert violations() == []
    for destroyed in (
        ("cuGraphExecDestroy", of_graph),
        ("cuGraphDestroy", clone),
        ("cuGraphDestroy", parent),
    ):
        meet(driver, look, held, lambda each=destroyed: driver.call(*each))
        assert violations() == ["two threads inside one graph at once"]
    driver.call("cuGraphDestroy", other)
    meet(driver, look, held, lambda: driver.call("cuGraphExecDestroy", last))
    assert violations() == []


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
    driver.run(executable)
    assert violations() == ["graph launched with memory that was freed since"]
    third = memory_of_the_device(driver)
    assert third.value == again.value
    driver.run(executable)  # to tell it of the third would change nothing
    assert violations() == []
    driver.call("cuMemFree_v2", third)


@simulated_only
def test_a_launch_with_a_kernel_that_was_unloaded_is_a_violation(driver, memory, violations):
    module, graph = c_void_p(), driver.graph()
    image = compile_code('extern "C" __global__ void seven(int* place) { *place = 7; }').code
    driver.call("cuModuleLoadData", byref(module), image + b"\0")
    driver.kernels["seven"] = c_void_p()
    driver.call("cuModuleGetFunction", byref(driver.kernels["seven"]), module, b"seven")
    driver.kernel(graph, [], "seven", memory.at(0))
    executable = driver.executable(graph)
    driver.run(executable)
    driver.call("cuModuleUnload", module)
    assert memory.words[0] == 7 and violations() == []
    driver.run(executable)
    assert violations() == ["graph launched with a kernel whose module was unloaded since"]


def assert_the_seed_decides(driver, memory, executable):
    """Which of two writes of the second word comes last, 2 or 3."""
    from ftcuda.testing import Schedule, together

    streams, context = [driver.stream(), driver.stream()], driver.context()

    def last_of(seed):
        def launch(index):
            driver.call("cuCtxSetCurrent", context)
            if index == 0:
                driver.call("cuGraphLaunch", executable, streams[0])
            driver.call("cuStreamSynchronize", streams[index])

        together(2, launch, schedule=Schedule("random", 5, seed))
        return int(memory.words[1])

    last_of(0)  # starts the threads of the branches
    found = [last_of(seed) for seed in range(12)]
    assert set(found) == {2, 3}
    assert [last_of(seed) for seed in range(12)] == found


@simulated_only
def test_a_schedule_interleaves_branches(driver, memory):
    """Two branches write the same word: which comes last depends on the seed alone."""
    assert_the_seed_decides(driver, memory, branches(driver, memory, ordered=False))


@simulated_only
def test_drivers_before_12_3_have_no_conditions(driver, memory):
    graph, handle = driver.graph(), c_void_p()
    result = driver.result("cuGraphConditionalHandleCreate", byref(handle), graph, driver.context(), 0, 0)
    assert result == (0 if driver.version >= (12, 3) else NOT_FOUND)


@simulated_only
def test_an_event_of_a_running_capture_is_recorded_by_nobody_else(driver, violations):
    """A GPU's driver crashes then, or when the capture ends (H200, driver 580), whoever waits for the event."""
    capturing, joined, other = driver.stream(), driver.stream(), driver.stream()
    driver.begin(capturing)
    event = driver.record(capturing)
    driver.wait(joined, event)
    for of_capture in (capturing, joined):
        driver.call("cuEventRecord", event, of_capture)
    assert violations() == []
    driver.call("cuEventRecord", event, other)
    assert violations() == ["event recorded that is part of a capture"]
    driver.call("cuEventRecord", event, joined)
    driver.wait(capturing, event)
    driver.end(capturing)
    driver.call("cuEventRecord", event, other)
    assert violations() == []


@simulated_only
def test_a_handle_is_of_one_kind(driver):
    """Also where more is alive than there were values for each kind once: 262,143."""
    graph, node, executable = driver.graph(), c_void_p(), driver.executable(driver.graph())
    add, seen = driver.library.cuGraphAddEmptyNode, set()
    for _ in range(262_160):
        assert add(byref(node), graph, None, c_size_t(0)) == 0
        seen.add(node.value)
    assert len(seen) == 262_160 and executable.value not in seen
    driver.run(executable)


@simulated_only
def test_a_graph_launched_with_an_event_that_is_gone_is_a_violation(driver, violations):
    """A launch on a GPU hangs for ever, if it does not crash."""
    graph, node, event = driver.graph(), c_void_p(), driver.event()
    driver.call("cuGraphAddEventRecordNode", byref(node), graph, None, c_size_t(0), event)
    driver.call("cuGraphAddEventWaitNode", byref(node), graph, array(node.value), c_size_t(1), event)
    executable = driver.executable(graph)
    driver.run(executable)
    assert violations() == []
    driver.destroy(event)
    driver.run(executable)
    assert violations() == ["graph launched with an event that was destroyed since"] * 2
