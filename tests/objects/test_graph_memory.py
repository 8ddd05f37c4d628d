"""Memory that a graph allocates: how long it lives, who frees it, and what is refused."""

import gc

import numpy as np
import pytest

import ftcuda
from ftcuda import (
    CachingMemoryResource,
    ClosedError,
    DeviceMemoryResource,
    GraphMemoryResource,
    NotSupportedError,
    PinnedMemoryResource,
    launch,
)
from ftcuda.graph import GraphBuilder, GraphCompleteOptions, Parameter
from ftcuda.testing import faults, together
from tests.conftest import simulated_only
from tests.objects.graphs import ONE, assert_goes, meet, needs_12, needs_definitions, needs_graphs

pytestmark = [
    needs_graphs,
    pytest.mark.thread_unsafe(reason="reads how much memory all graphs of the device have"),
]

LEAVES = GraphCompleteOptions(auto_free_on_launch=True)


@pytest.fixture
def resource(device):
    if not device.features.memory_pools:
        pytest.skip(reason="the device has no memory pools")
    return GraphMemoryResource(device)


@pytest.fixture
def words(pinned):
    made = [*pinned(np.zeros(64, np.int32))]
    yield made
    made.clear()  # the fixture's value lives longer than the test


def allocated():
    from ftcuda.testing import simulation

    return simulation.live()["device_allocation"]


def capture(builder, resource, code, words, value=7):
    """Writes the value to memory of the graph's, and copies it to the host's. The memory is left to the caller."""
    memory = resource.allocate(256, stream=builder)
    launch(builder, ONE, code.get_kernel("append"), memory.fill(0, stream=builder) or memory, value)
    words[0].copy_from(memory, stream=builder)
    return memory


def test_a_graph_allocates_and_frees_in_each_launch(make_builder, resource, code, words, stream):
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    address = memory.handle
    assert memory.size == 256 and memory.memory_resource is resource and address
    memory.close(stream=builder)
    assert memory.is_closed and memory.handle == 0
    graph = builder.end_building().complete()
    for _ in range(3):
        words[1][:] = 0
        graph.launch(stream)
        stream.sync()
        assert words[1][:2].tolist() == [1, 7]
    graph.close()


def test_the_end_of_a_with_statement_frees_in_the_graph(make_builder, resource, code, words, stream):
    """Without a stream, where it was allocated. Mutant: graph-memory-is-freed-where-a-stream-is-named."""
    builder = make_builder().begin_building()
    with capture(builder, resource, code, words):
        pass
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]


def test_deallocate_frees_in_the_graph(make_builder, resource, code, words, stream):
    builder, other = make_builder().begin_building(), make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    address = memory.handle
    with pytest.raises(RuntimeError, match="another graph"):
        resource.deallocate(address, 256, stream=other)
    with pytest.raises(RuntimeError, match="builder"):
        resource.deallocate(address, 256, stream=stream)
    resource.deallocate(address, 256, stream=builder)
    assert memory.is_closed
    with pytest.raises(RuntimeError, match="another graph"):
        resource.deallocate(address, 256, stream=builder)
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]


def test_memory_may_be_freed_in_another_branch(make_builder, resource, code, words, stream):
    builder = make_builder().begin_building()
    memory = resource.allocate(256, stream=builder)
    left, right = builder.split(2)
    memory.fill(0, stream=right)
    both = left.join(left, right)
    launch(both, ONE, code.get_kernel("append"), memory, 3)
    words[0].copy_from(memory, stream=both)
    memory.close(stream=both)
    graph = both.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 3]


def test_memory_of_a_part_is_freed_where_that_was_joined_to(make_builder, resource, code, words, stream):
    """By a close without a stream, also if that was joined to another one."""
    outer = make_builder().begin_building()
    outer, middle = outer.split(2)
    middle, inner = middle.split(2)
    memory = capture(inner, resource, code, words)
    GraphBuilder.join(middle, inner)
    builder = GraphBuilder.join(outer, middle)
    memory.close()
    assert memory.is_closed
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]
    graph.close()


def test_a_lost_graph_takes_its_memory_along(make_builder, resource, code, words):
    """The end of `with` lets the exception pass that was there before."""
    builder = make_builder().begin_building()
    builder, part = builder.split(2)
    with pytest.raises(KeyError), capture(builder, resource, code, words) as memory:
        part.close()
        raise KeyError
    assert memory.is_closed
    with pytest.raises(RuntimeError, match="lost"):
        builder.end_building()


@needs_definitions
def test_a_definition_does_not_free_what_a_buffer_frees(make_builder, resource, code, words, stream):
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    definition = builder.end_building().graph_definition
    with pytest.raises(RuntimeError, match="a buffer has that memory"):
        definition.deallocate(memory.handle)
    graph = definition.instantiate()
    graph.launch(stream)
    memory.copy_to(words[0], stream=stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]
    memory.close()
    graph.close()


@needs_12
def test_a_graph_is_updated_neither_to_other_memory_nor_from_it(make_builder, resource, code, words, stream):
    """Which buffers are there after a launch is known of the graph that captured them."""
    with_memory = make_builder().begin_building()
    capture(with_memory, resource, code, words).close(stream=with_memory)
    without = make_builder().begin_building()
    launch(without, ONE, code.get_kernel("append"), words[0], 8)
    graphs = [each.end_building().complete() for each in (with_memory, without)]
    for graph, source in zip(graphs, (without, with_memory), strict=True):
        with pytest.raises(NotSupportedError, match="neither part of another one nor updated"):
            graph.update(source)
    graphs[0].update(with_memory)  # which it was made of
    graphs[0].launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]
    for each in graphs:
        each.close()


@simulated_only
def test_memory_is_not_there_after_a_launch_that_failed(make_builder, resource, code, words, stream):
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    graph = builder.end_building().complete(LEAVES)
    with faults.failing("cuGraphLaunch", 999), pytest.raises(ftcuda.CUDAError):
        graph.launch(stream)
    with pytest.raises(RuntimeError, match="launch the graph before"):
        memory.fill(1, stream=stream)
    memory.close()
    graph.close()


def test_what_a_graph_leaves_is_the_programs_after_a_launch(make_builder, resource, code, words, stream):
    """It is freed with the buffer, once the graph is gone too. Mutant: graph-memory-outlives-everybody."""
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    graph = builder.end_building().complete(LEAVES)
    for _ in range(2):
        graph.launch(stream)
        launch(stream, ONE, code.get_kernel("append"), memory, 8)
        words[0].copy_from(memory, stream=stream)
        stream.sync()
        assert words[1][:3].tolist() == [2, 7, 8]
    graph.close()
    builder.close()
    memory.copy_to(words[0], stream=stream)  # which still holds it
    memory.close(stream=stream)
    stream.sync()
    assert words[1][:3].tolist() == [2, 7, 8]


@simulated_only
def test_memory_that_is_left_goes_when_both_are_gone(make_builder, resource, code, words, stream, device):
    """Whichever is last, and not before."""
    for closes_first in (True, False):
        before = allocated()
        builder = make_builder().begin_building()
        memory = capture(builder, resource, code, words)
        graph = builder.end_building().complete(LEAVES)
        graph.launch(stream)
        assert allocated() == before + 1
        if closes_first:
            memory.close()
            graph.launch(stream)  # which needs it
            stream.sync()
            assert allocated() == before + 1 and words[1][:2].tolist() == [1, 7]
        graph.close()
        builder.close()
        if not closes_first:
            stream.sync()
            device.sync()
            assert allocated() == before + 1
            memory.close()
        device.sync()
        ftcuda.memory.wait_for_deallocations()
        device.sync()
        assert allocated() == before


@simulated_only
def test_memory_that_nothing_else_captured_goes_too(make_builder, resource, stream, device):
    """The graph has it, though no node uses it that ftcuda knows. Mutant: graph-memory-goes-with-its-buffer."""
    before = allocated()
    builder = make_builder().begin_building()
    memory = resource.allocate(64, stream=builder)
    graph = builder.end_building().complete(LEAVES)
    memory.close()
    for _ in range(2):
        graph.launch(stream)
    assert allocated() == before + 1
    graph.close()
    builder.close()
    assert_goes(lambda: allocated() == before, device)


def test_a_graph_that_leaves_memory_is_launched_once(make_builder, resource, code, words, stream):
    """Mutant: unfreed-memory-is-an-invalid-value."""
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    graph = builder.end_building().complete()
    graph.launch(stream)
    with pytest.raises(RuntimeError, match="auto_free_on_launch"):
        graph.launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]
    memory.close()


def test_a_buffer_that_is_collected_is_left_to_the_graph(make_builder, resource, code, words, stream):
    """Collectors add no nodes: the graph stays as it was written."""
    builder = make_builder().begin_building()
    capture(builder, resource, code, words)
    gc.collect()
    launch(builder, ONE, code.get_kernel("append"), words[0], 9)
    graph = builder.end_building().complete(LEAVES)
    graph.launch(stream)
    stream.sync()
    assert words[1][:3].tolist() == [2, 7, 9]
    graph.launch(stream)
    stream.sync()
    graph.close()


def test_memory_is_used_after_a_launch_and_not_before(make_builder, resource, code, words, stream):
    """The driver would fault. Mutant: memory-is-used-before-its-graph."""
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    graph = builder.end_building().complete(LEAVES)
    for use in (
        lambda: memory.fill(1, stream=stream),
        lambda: launch(stream, ONE, code.get_kernel("append"), memory, 1),
        lambda: memory.copy_to(words[0], stream=stream),
    ):
        with pytest.raises(RuntimeError, match="launch the graph before"):
            use()
    graph.launch(stream)
    memory.fill(1, stream=stream)
    memory.copy_to(words[0], stream=stream)
    stream.sync()
    assert (words[1] == 0x01010101).all()
    memory.close()


def test_another_graph_may_use_it(make_builder, resource, code, words, stream):
    first, second = make_builder().begin_building(), make_builder().begin_building()
    memory = capture(first, resource, code, words)
    allocating = first.end_building().complete(LEAVES)
    launch(second, ONE, code.get_kernel("append"), memory, 5)
    words[0].copy_from(memory, stream=second)
    with pytest.raises(RuntimeError, match="another graph"):
        memory.close(stream=second)
    assert not memory.is_closed
    using = second.end_building().complete()
    for _ in range(2):
        allocating.launch(stream)
        using.launch(stream)
        stream.sync()
        assert words[1][:3].tolist() == [2, 7, 5]
    memory.close()


def test_streams_that_are_no_builders_are_refused(make_builder, resource, stream):
    builder = make_builder()
    for other in (stream, ftcuda.LEGACY_DEFAULT_STREAM):
        with pytest.raises(RuntimeError, match="graph builder"):
            resource.allocate(64, stream=other)
    with pytest.raises(TypeError):
        resource.allocate(64)
    with pytest.raises(RuntimeError, match="begin_building"):
        resource.allocate(64, stream=builder)
    builder.begin_building().end_building()
    with pytest.raises(RuntimeError, match="begin_building"):
        resource.allocate(64, stream=builder)
    builder.close()
    with pytest.raises(ClosedError):
        resource.allocate(64, stream=builder)


def test_pools_allocate_nothing_in_a_builder(make_builder, resource, device, stream):
    """What they gave would be the graph's. Mutant: pools-allocate-in-graphs."""
    builder = make_builder().begin_building()
    pools = [DeviceMemoryResource(device), CachingMemoryResource(DeviceMemoryResource(device))]
    if device.features.host_pools:
        pools.append(PinnedMemoryResource())
    for pool in pools:
        with pytest.raises(RuntimeError, match="GraphMemoryResource"):
            pool.allocate(64, stream=builder)
        pool.allocate(64, stream=stream).close()
    with pytest.raises(RuntimeError, match="GraphMemoryResource"):
        device.allocate(64, stream=builder)
    builder.end_building()
    with pytest.raises(NotSupportedError):
        CachingMemoryResource(resource)


def test_what_the_driver_has_not_for_such_graphs(make_builder, resource, code, words):
    """Mutant: graphs-with-memory-are-embedded."""
    builder, outer = make_builder().begin_building(), make_builder().begin_building()
    capture(builder, resource, code, words).close()
    builder.end_building()
    with pytest.raises(NotSupportedError, match="allocates memory"):
        outer.embed(builder)
    outer.end_building()
    with pytest.raises(NotSupportedError, match="max_concurrency=1"):
        builder.complete(GraphCompleteOptions(max_concurrency=2))
    first = builder.complete()
    with pytest.raises(NotSupportedError, match="close the graph that it made before"):
        builder.complete()
    first.close()
    builder.complete().close()


def test_bodies_allocate_nothing(make_builder, resource, device):
    if not device.features.conditional_graphs:
        pytest.skip(reason="conditional nodes need a driver of CUDA 12.3")
    builder = make_builder().begin_building()
    memory = resource.allocate(64, stream=builder)
    body = builder.if_then(builder.create_condition(default_value=1)).begin_building()
    with pytest.raises(NotSupportedError, match="body"):
        resource.allocate(64, stream=body)
    with pytest.raises(NotSupportedError, match="body"):
        memory.close(stream=body)
    memory.fill(0, stream=body)
    body.end_building()
    memory.close(stream=builder)
    builder.end_building().complete().close()


@needs_12
def test_parameters_beside_memory(make_builder, resource, code, words, stream):
    builder = make_builder().begin_building()
    memory = resource.allocate(256, stream=builder)
    memory.fill(0, stream=builder)
    launch(builder, ONE, code.get_kernel("append"), memory, Parameter("value", 1))
    words[0].copy_from(memory, stream=builder)
    memory.close(stream=builder)
    bound = builder.end_building().complete().bind()
    for value in (4, 5):
        bound.launch(stream, value=value)
        stream.sync()
        assert words[1][:2].tolist() == [1, value]


def test_two_threads_close_at_once(make_builder, resource, code, words, stream):
    """One of them frees it."""
    builder = make_builder().begin_building()
    memories = [capture(builder, resource, code, words) for _ in range(8)]

    def close(index):
        for memory in memories:
            memory.close(stream=builder if index % 2 else None)

    together(4, close)
    assert all(memory.is_closed for memory in memories)
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()


@simulated_only
def test_a_close_amid_another_one_does_nothing(make_builder, resource, code, words, stream):
    """Mutant: graph-memory-is-freed-twice."""
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    assert meet("cuMemFreeAsync", lambda: memory.close(stream=builder), memory.close) is None
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()


@simulated_only
def test_nothing_is_captured_behind_a_free(make_builder, resource, code, words, stream):
    """A thread that is about to free holds up the others. Mutant: graph-memory-closes-after-its-free."""
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    refused = meet(
        "cuMemFreeAsync",
        lambda: memory.close(stream=builder),
        lambda: launch(builder, ONE, code.get_kernel("append"), memory, 1),
    )
    assert isinstance(refused, ClosedError)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]


def test_closing_again_and_late_does_nothing(make_builder, resource, code, words, stream):
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    memory.close(stream=builder)
    for again in (builder, None, stream):
        memory.close(stream=again)
    graph = builder.end_building().complete()
    memory.close()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert words[1][:2].tolist() == [1, 7]
    late = make_builder().begin_building()
    memory = capture(late, resource, code, words)
    late.end_building()
    with pytest.raises(RuntimeError, match="begin_building"):
        memory.close(stream=late)
    memory.close()


@simulated_only
def test_a_builder_that_is_closed_takes_its_memory_along(make_builder, resource, code, words, device):
    before = allocated()
    builder = make_builder().begin_building()
    memory = capture(builder, resource, code, words)
    builder.close()
    memory.close()
    builder = device.create_graph_builder().begin_building()
    memory = capture(builder, resource, code, words)
    memory.close()
    with pytest.warns(ResourceWarning, match="lost while it captured"):
        del builder
        gc.collect()
    device.sync()
    assert allocated() == before


def test_attributes(make_builder, resource, code, words, stream, device):
    attributes = resource.attributes
    resource.trim()
    used, reserved = attributes.used_mem_current, attributes.reserved_mem_current
    attributes.used_mem_high = attributes.reserved_mem_high = 0
    assert (attributes.used_mem_high, attributes.reserved_mem_high) == (used, reserved)
    builder = make_builder().begin_building()
    capture(builder, resource, code, words).close()
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert attributes.used_mem_current > used and attributes.reserved_mem_current > reserved
    assert attributes.used_mem_high >= attributes.used_mem_current
    graph.close()
    builder.close()
    device.sync()
    resource.trim()
    assert (attributes.used_mem_current, attributes.reserved_mem_current) == (used, reserved)
    for name in ("used_mem_current", "reserved_mem_current", "size"):
        with pytest.raises(AttributeError):
            setattr(attributes, name, 0)
    with pytest.raises(ValueError, match="0 alone"):
        attributes.used_mem_high = 1
    assert "Attributes" in repr(attributes)
    with pytest.raises(ValueError, match="must be 0"):
        resource.trim(1)


def test_the_resource_is_the_devices(resource, device, make_builder):
    assert (resource.device, resource.device_id) == (device, device.device_id)
    assert resource.is_device_accessible and not resource.is_host_accessible
    resource.close()
    assert not resource.is_closed
    builder = make_builder().begin_building()
    assert GraphMemoryResource(0).allocate(0, stream=builder).size == 0
    resource.allocate(8, stream=builder).close()
    builder.end_building()
    with pytest.raises(TypeError):
        GraphMemoryResource()
    with pytest.raises(TypeError, match="constant"):
        resource.__init__(0)


def test_threads_allocate_in_one_builder(make_builder, resource, code, words, stream):
    """Their nodes come one after the other, each with memory of its own."""
    builder = make_builder().begin_building()
    words[0].fill(0, stream=builder)

    def allocate(index):
        with resource.allocate(256, stream=builder) as memory:
            memory.fill(index, stream=builder)
            launch(builder, ONE, code.get_kernel("append"), words[0], index)

    together(8, allocate)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert words[1][0] == 8 and sorted(words[1][1:9].tolist()) == list(range(8))


FORKED = """
import os
from ftcuda import Device, ForkedProcessError, GraphMemoryResource
resource = GraphMemoryResource(Device(0))
builder = Device(0).create_graph_builder().begin_building()
memory = resource.allocate(64, stream=builder)
child = os.fork()
if child == 0:
    refused = 0
    for call in (
        lambda: resource.allocate(64, stream=builder), lambda: memory.close(stream=builder), lambda: memory.close(),
        lambda: resource.deallocate(memory.handle, 64, stream=builder), resource.trim,
        lambda: resource.attributes.used_mem_high, lambda: setattr(resource.attributes, "used_mem_high", 0),
    ):
        try:
            call()
        except ForkedProcessError:
            refused += 1
    os._exit(refused)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
builder.close()
"""


def test_a_forked_child_gets_an_error(resource, run_python):
    assert run_python(FORKED).split() == ["7"]
