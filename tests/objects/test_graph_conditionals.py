"""Conditional nodes of graphs: bodies that run as values say which kernels set."""

import numpy as np
import pytest

import ftcuda
from ftcuda import CUDAError, NotSupportedError, launch
from ftcuda.graph import GraphBuilder, GraphCondition
from ftcuda.testing import faults, settle
from tests.conftest import live_handles, simulated_only
from tests.kernels import compile_code
from tests.objects.graphs import DRIVER, ONE, assert_nothing_left, new_log, written

pytestmark = [
    pytest.mark.skipif(DRIVER < (12, 3), reason="conditional nodes need a driver of CUDA 12.3"),
    pytest.mark.skipif(ftcuda.nvrtc_version() < (12, 3), reason="NVRTC has conditions since 12.3"),
]
needs_else = pytest.mark.skipif(DRIVER < (12, 8), reason="else and switch need a driver of CUDA 12.8")

SOURCE = r"""
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);

extern "C" __global__ void decide(cudaGraphConditionalHandle handle, const int* value) {
    cudaGraphSetConditional(handle, *value);
}
extern "C" __global__ void count_down(cudaGraphConditionalHandle handle, int* value) {
    cudaGraphSetConditional(handle, --*value);
}
extern "C" __global__ void append(int* log, int value) { log[0] += 1; log[log[0]] = value; }
"""


@pytest.fixture(scope="module")
def kernels():
    code = compile_code(SOURCE)
    return {name: code.get_kernel(name) for name in ("decide", "count_down", "append")}


class Plan:
    """A builder, what it decides by, and what its bodies write."""

    def __init__(self, builder, kernels, pinned):
        self.builder, self.kernels = builder.begin_building(), kernels
        self.value, self.number = pinned(np.zeros(1, np.int32))
        self.log, self.view = new_log(pinned)

    def decide(self, condition):
        launch(self.builder, ONE, self.kernels["decide"], condition, self.value)

    def append(self, builder, value):
        launch(builder, ONE, self.kernels["append"], self.log, value)

    def fill(self, body, value):
        """Builds a body that writes `value`."""
        body.begin_building()
        self.append(body, value)
        body.end_building()

    def run(self, graph, stream, value):
        """What a launch writes if it decides by `value`."""
        stream.sync()
        self.number[0] = value
        self.view[0] = 0
        graph.launch(stream)
        stream.sync()
        return written(self.view)


@pytest.fixture
def make_plan(make_builder, kernels, pinned):
    return lambda: Plan(make_builder(), kernels, pinned)


def test_if_then(make_plan, stream):
    plan = make_plan()
    condition = plan.builder.create_condition()
    plan.decide(condition)
    body = plan.builder.if_then(condition)
    assert isinstance(body, GraphBuilder) and not body.is_join_required and not body.is_building
    plan.fill(body, 1)
    plan.append(plan.builder, 2)
    graph = plan.builder.end_building().complete()
    assert [plan.run(graph, stream, value) for value in (0, 1, 5, 0)] == [[2], [1, 2], [1, 2], [2]]
    graph.close()
    body.close()


@needs_else
def test_if_else(make_plan, stream):
    plan = make_plan()
    condition = plan.builder.create_condition()
    plan.decide(condition)
    bodies = plan.builder.if_else(condition)
    for number, body in enumerate(bodies):
        plan.fill(body, number)
    graph = plan.builder.end_building().complete()
    assert [plan.run(graph, stream, value) for value in (0, 1)] == [[1], [0]]
    graph.close()


@needs_else
def test_switch(make_plan, stream):
    plan = make_plan()
    condition = plan.builder.create_condition()
    plan.decide(condition)
    bodies = plan.builder.switch(condition, 3)
    assert len(bodies) == 3
    for number, body in enumerate(bodies):
        plan.fill(body, number)
    graph = plan.builder.end_building().complete()
    assert [plan.run(graph, stream, value) for value in (2, 0, 1, 3, 99)] == [[2], [0], [1], [], []]
    graph.close()


def test_while_loop(make_plan, stream):
    plan = make_plan()
    condition = plan.builder.create_condition(1)
    body = plan.builder.while_loop(condition)
    body.begin_building()
    plan.append(body, 7)
    launch(body, ONE, plan.kernels["count_down"], condition, plan.value)
    body.end_building()
    plan.append(plan.builder, 8)
    graph = plan.builder.end_building().complete()
    assert plan.run(graph, stream, 3) == [7, 7, 7, 8]
    assert plan.run(graph, stream, 1) == [7, 8]
    graph.close()


def test_default_values(make_plan, stream):
    """Each launch begins with them, whatever the one before set."""
    plan = make_plan()
    first, second = plan.builder.create_condition(default_value=1), plan.builder.create_condition(default_value=0)
    plan.fill(plan.builder.if_then(first), 1)
    plan.fill(plan.builder.if_then(second), 2)
    plan.decide(first)
    plan.decide(second)
    graph = plan.builder.end_building().complete()
    assert [plan.run(graph, stream, value) for value in (0, 1, 0)] == [[1], [1], [1]]
    graph.close()


def test_nested(make_plan, stream):
    plan = make_plan()
    outer = plan.builder.create_condition()
    plan.decide(outer)
    body = plan.builder.if_then(outer)
    body.begin_building()
    plan.append(body, 1)
    inner = body.create_condition(default_value=1)
    inner_body = body.if_then(inner)
    plan.fill(inner_body, 2)
    plan.append(body, 3)
    body.end_building()
    graph = plan.builder.end_building().complete()
    assert [plan.run(graph, stream, value) for value in (0, 1)] == [[], [1, 2, 3]]
    graph.close()


def test_parts_within_a_body(make_plan, pinned, stream, code):
    plan = make_plan()
    condition = plan.builder.create_condition(default_value=1)
    body = plan.builder.if_then(condition).begin_building()
    parts = body.split(3)
    buffers, views = zip(*(pinned(np.zeros(1, np.int32)) for _ in parts), strict=True)
    for part, buffer in zip(parts, buffers, strict=True):
        launch(part, ONE, code.get_kernel("increment"), buffer)
    GraphBuilder.join(*parts)
    plan.append(body, 5)
    body.end_building()
    graph = plan.builder.end_building().complete()
    assert plan.run(graph, stream, 0) == [5] and [int(view[0]) for view in views] == [1, 1, 1]
    graph.close()


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
def test_what_a_body_uses_lives_as_long_as_the_graph(make_plan, stream, kernels):
    plan = make_plan()
    resource = ftcuda.StatisticsMemoryResource(ftcuda.LegacyPinnedMemoryResource())
    buffer = resource.allocate(64)
    np.frombuffer(buffer, np.int32)[:] = 0
    condition = plan.builder.create_condition(default_value=1)
    body = plan.builder.if_then(condition).begin_building()
    launch(body, ONE, kernels["append"], buffer, 5)
    body.end_building().close()
    buffer.close()
    graph = plan.builder.end_building().complete()
    plan.builder.close()
    graph.launch(stream)
    stream.sync()
    assert resource.statistics.current_count == 1
    graph.close()
    assert_nothing_left(resource, stream.device)


@simulated_only
@needs_else
@pytest.mark.thread_unsafe(reason="counts what the driver has")
@pytest.mark.parametrize(("entry", "nth"), [("cuStreamCreateWithPriority", 1), ("cuStreamCreateWithPriority", 3), ("cuGraphAddNode", 1)])
def test_a_node_that_cannot_be_made(make_plan, entry, nth):
    """It leaves no body, and the builder goes on. Mutant: the streams of the bodies are left."""
    settle()  # what tests before left does not go meanwhile
    plan = make_plan()
    condition = plan.builder.create_condition()
    plan.decide(condition)
    before = live_handles()
    with faults.failing(entry, 2, nth=nth), pytest.raises(ftcuda.OutOfMemoryError):
        plan.builder.switch(condition, 3)
    assert live_handles() == before
    for body in plan.builder.switch(condition, 3):
        plan.fill(body, 1)
    plan.builder.end_building().complete().close()


def test_the_body_is_built_first(make_plan):
    plan = make_plan()
    body = plan.builder.if_then(plan.builder.create_condition(1)).begin_building()
    with pytest.raises(RuntimeError, match="still building"):
        plan.builder.end_building()
    assert plan.builder.is_building and body.is_building
    plan.append(body, 1)
    body.end_building()
    plan.builder.end_building().complete().close()


def test_a_body_that_is_closed_half_built(make_plan):
    plan = make_plan()
    body = plan.builder.if_then(plan.builder.create_condition(1)).begin_building()
    plan.append(body, 1)
    body.close()
    with pytest.raises(RuntimeError, match="was closed or lost half built"):
        plan.builder.end_building()
    plan.builder.close()


@pytest.mark.parametrize("end", [True, False])
def test_a_body_with_a_part_that_was_not_joined(make_plan, end):
    """Whoever closes what is around it leaves the driver no graph of which a body is gone."""
    plan = make_plan()
    body = plan.builder.if_then(plan.builder.create_condition(1)).begin_building()
    parts = body.split(2)
    plan.append(parts[1], 1)
    if end:
        with pytest.raises(RuntimeError, match="join the parts"):
            body.end_building()
    body.close()
    with pytest.raises(RuntimeError, match="closed or lost half built"):
        plan.append(plan.builder, 1)
    plan.builder.close()


@pytest.mark.thread_unsafe(reason="warnings are the process's")
def test_a_body_that_is_lost_half_built(make_plan):
    plan = make_plan()
    body = plan.builder.if_then(plan.builder.create_condition(1)).begin_building()
    with pytest.warns(ResourceWarning, match="lost while it captured"):
        del body
    with pytest.raises(RuntimeError, match="was closed or lost half built"):
        plan.builder.end_building()


def test_the_outer_builder_ends_before(make_plan, kernels):
    plan = make_plan()
    inner = plan.builder.if_then(plan.builder.create_condition(1)).begin_building()
    late = plan.builder.if_then(plan.builder.create_condition(1))
    plan.builder.close()
    assert not inner.is_building
    with pytest.raises(RuntimeError, match="after its begin_building"):
        late.begin_building()
    late.close()
    for refuse in (lambda: plan.append(inner, 1), inner.end_building):
        with pytest.raises(RuntimeError, match="after its begin_building"):
            refuse()
    with pytest.raises(RuntimeError, match="has begun before"):
        inner.begin_building()
    inner.close()


def test_a_body_without_work(make_plan, stream):
    """Is empty, also if nobody begins to build it."""
    plan = make_plan()
    plan.builder.if_then(plan.builder.create_condition(1)).close()
    plan.builder.if_then(plan.builder.create_condition(1)).begin_building().end_building()
    plan.append(plan.builder, 4)
    graph = plan.builder.end_building().complete()
    assert plan.run(graph, stream, 0) == [4]
    graph.close()


def test_a_body_is_no_graph_of_its_own(make_plan, tmp_path):
    plan = make_plan()
    body = plan.builder.if_then(plan.builder.create_condition(1))
    plan.fill(body, 1)
    for refuse in (body.complete, lambda: body.debug_dot_print(tmp_path / "graph.dot"), lambda: plan.builder.embed(body)):
        with pytest.raises(RuntimeError, match="the body of a node"):
            refuse()
    assert "body" in repr(body)
    plan.builder.end_building()


def test_what_the_driver_does_not_with_conditional_nodes(make_plan, device):
    """A second executable beside the first, copies in other graphs, callbacks in bodies."""
    plan = make_plan()
    body = plan.builder.if_then(plan.builder.create_condition(1)).begin_building()
    parts = body.split(2)
    for builder in parts:
        with pytest.raises(NotSupportedError, match="bodies of conditional nodes have none"):
            builder.callback(print)
    GraphBuilder.join(*parts).end_building()
    graph = plan.builder.end_building().complete()
    other = device.create_graph_builder().begin_building()
    for refused in (plan.builder.complete, lambda: other.embed(plan.builder)):
        with pytest.raises(CUDAError, match="NOT_SUPPORTED"):
            refused()
    other.end_building()
    graph.close()
    plan.builder.complete().close()
    other.close()


def test_a_condition_is_for_one_node_of_its_builder(make_plan):
    plan, other = make_plan(), make_plan()
    condition = plan.builder.create_condition()
    plan.fill(plan.builder.if_then(condition), 1)
    with pytest.raises(CUDAError):
        plan.builder.if_then(condition)
    with pytest.raises(CUDAError):
        other.builder.if_then(plan.builder.create_condition())


def test_no_graph_is_launched_with_a_condition_without_a_node(make_plan):
    plan = make_plan()
    outer, _ = plan.builder.create_condition(1), plan.builder.create_condition(1)
    plan.fill(plan.builder.if_then(outer), 1)
    plan.builder.end_building()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a condition without a conditional node"):
            plan.builder.complete()


def test_nor_with_one_in_a_body(make_plan):
    plan = make_plan()
    body = plan.builder.if_then(plan.builder.create_condition(1)).begin_building()
    body.create_condition(1)
    body.end_building()
    plan.builder.end_building()
    with pytest.raises(RuntimeError, match="a condition without a conditional node"):
        plan.builder.complete()


def test_conditions(make_plan):
    plan = make_plan()
    first, second = plan.builder.create_condition(), plan.builder.create_condition()
    assert first == first and first != second and hash(first) != hash(second) and first != first.handle
    assert first.handle != second.handle and f"{first.handle:#x}" in repr(first)
    with pytest.raises(TypeError, match="create_condition"):
        GraphCondition()
    for value, error in ((-1, ValueError), (2**32, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="default_value"):
            plan.builder.create_condition(value)
    for conditional in (plan.builder.if_then, plan.builder.while_loop, plan.builder.if_else):
        with pytest.raises(TypeError, match="condition must be a GraphCondition, not int"):
            conditional(first.handle)
    with pytest.raises(ValueError, match="count must be from 1"):
        plan.builder.switch(first, 0)
    for each in (first, second):
        plan.builder.if_then(each)
    plan.builder.end_building()


def test_threads_build_the_bodies(make_plan, stream):
    """Each thread its own body, at once, and one goes on with the outer builder: to the driver all of it is one graph."""
    plan = make_plan()
    count = 4
    bodies = [plan.builder.if_then(plan.builder.create_condition(1)) for _ in range(count)]

    def build(index):
        if index == count:
            for _ in range(10):
                plan.append(plan.builder, 100)
            return
        bodies[index].begin_building()
        for _ in range(5):
            plan.append(bodies[index], index)
        bodies[index].end_building()

    ftcuda.testing.together(count + 1, build)
    graph = plan.builder.end_building().complete()
    assert plan.run(graph, stream, 0) == [index for index in range(count) for _ in range(5)] + [100] * 10
    graph.close()


@pytest.mark.skipif(DRIVER >= (12, 8), reason="this driver has else and switch")
def test_an_older_driver_says_so(make_plan):
    plan = make_plan()
    condition = plan.builder.create_condition(1)
    for refused in (lambda: plan.builder.if_else(condition), lambda: plan.builder.switch(condition, 2)):
        with pytest.raises(NotSupportedError, match="12.8"):
            refused()
    plan.fill(plan.builder.if_then(condition), 1)
    plan.builder.end_building().complete().close()
