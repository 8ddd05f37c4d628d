"""Objects of every kind in the promise table, each with what must be true of it for whoever gets it.

For hazards in which one thread makes an object and another one uses it and drops it. A kind is a function that makes an
object of a section of docs/promise.toml; `KINDS` has at least one for each, which tests/layout/test_hazards.py sees to.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import ftcuda
from ftcuda import Buffer, LaunchConfig, StridedMemoryView, launch
from ftcuda.graph import GraphBuilder, GraphDefinition, GraphNode, Parameter
from stress.ledger import BYTES, TURNS, Ledger, Lender, Owner


@dataclass
class Handed:
    """An object on its way to another thread, to which nobody else refers."""

    thing: object
    look: Callable[[object], None]  # uses it, and raises unless its answers are right


type Kind = Callable[[Ledger], Handed | None]  # None: this device has none

KINDS: dict[str, list[Kind]] = {}


def kind(section: str) -> Callable[[Kind], Kind]:
    """Registers a function that makes an object of a section of the promise table."""

    def register(function: Kind) -> Kind:
        KINDS.setdefault(section, []).append(function)
        return function

    return register


class AllocatedByOthers(Owner):
    """Memory as the allocator of another library returns it."""

    @property
    def ptr(self) -> int:
        return self.memory.handle


class ArrayOfOthers:
    """An array of another library, in the memory of an owner."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": (BYTES // 4,), "typestr": "<i4", "data": (owner.memory.handle, False),
            "version": 3, "stream": None,
        }  # fmt: skip


def expect(seen: object, wanted: object, what: str) -> None:
    """Raises unless both are equal."""
    if seen != wanted:
        raise AssertionError(f"{what}: {seen} instead of {wanted}")


# ---- Devices, streams, events ----------------------------------------------------------------------------------------


@kind("Device")
def a_device(ledger: Ledger) -> Handed:
    def look(device):
        expect((device.device_id, device), (0, ledger.env.device), "a device")

    return Handed(ftcuda.Device(0), look)


def used_stream(ledger: Ledger, stream: ftcuda.Stream) -> Handed:
    """A stream with work in it."""
    value, (word, array) = ledger.number(), ledger.word()
    ledger.write_late(word, value, stream)

    def look(stream):
        ledger.write_late(word, value + 1, stream)
        stream.sync()
        expect(int(array[0]), value + 1, "work in a stream that another thread made")

    return Handed(stream, look)


@kind("Stream")
def a_stream(ledger: Ledger) -> Handed:
    return used_stream(ledger, ledger.env.device.create_stream())


@kind("Stream")
def a_wrapped_stream(ledger: Ledger) -> Handed:
    """Whose owner destroys it when nothing that was used in it is left."""
    return used_stream(ledger, ftcuda.Stream.from_handle(ledger.lent_stream.handle))


@kind("Stream")
def the_legacy_default_stream(ledger: Ledger) -> Handed:
    return used_stream(ledger, ftcuda.LEGACY_DEFAULT_STREAM)


@kind("Stream")
def the_default_stream_of_each_thread(ledger: Ledger) -> Handed:
    """Another stream for who gets it, so that the work of both must not be on the same word."""
    value, (word, array) = ledger.number(), ledger.word()

    def look(stream):
        ledger.write_late(word, value, stream)
        event = stream.record()
        if event.is_done:
            expect(int(array[0]), value, "an event that is done, of a default stream")
        stream.sync()
        expect(int(array[0]), value, "work in a thread's default stream")

    return Handed(ftcuda.PER_THREAD_DEFAULT_STREAM, look)


@kind("Event")
def an_event(ledger: Ledger) -> Handed:
    value, (word, array) = ledger.number(), ledger.word()
    with ledger.stream.exclusive():
        ledger.write_late(word, value, ledger.stream)
        event = ledger.stream.record()

    def look(event):
        if event.is_done:
            expect(int(array[0]), value, "an event said to be done")
        event.sync()
        expect((event.is_done, int(array[0])), (True, value), "an event that was waited for")

    return Handed(event, look)


# ---- Graphs ----------------------------------------------------------------------------------------------------------


def built(ledger: Ledger) -> "tuple[GraphBuilder, int, np.ndarray]":
    """A builder whose graph writes a value, late; the value, and where it stands then."""
    value, (word, array) = ledger.number(), ledger.word()
    builder = ledger.env.device.create_graph_builder().begin_building()
    ledger.write_late(word, value, builder)
    return builder.end_building(), value, array


@kind("GraphBuilder")
def a_graph_builder(ledger: Ledger) -> Handed:
    builder, value, array = built(ledger)

    def look(builder):
        graph = builder.complete()
        graph.launch(ledger.stream)
        ledger.stream.sync()
        expect(int(array[0]), value, "a graph that another thread built")

    return Handed(builder, look)


@kind("Graph")
def a_graph(ledger: Ledger) -> Handed:
    builder, value, array = built(ledger)

    def look(graph):
        graph.launch(ledger.stream)
        ledger.stream.sync()
        expect(int(array[0]), value, "a graph that another thread completed")

    return Handed(builder.complete(), look)


@kind("BoundGraph")
def a_bound_graph(ledger: Ledger) -> Handed:
    value, (word, array) = ledger.number(), ledger.word()
    builder = ledger.env.device.create_graph_builder().begin_building()
    launch(builder, ledger.env.one, ledger.env.late, word, Parameter("value", 0), 100)

    def look(bound):
        bound.launch(ledger.stream, value=value)
        ledger.stream.sync()
        expect(int(array[0]), value, "a graph that another thread bound")

    return Handed(builder.end_building().complete().bind(), look)


@kind("GraphBuilder")
def a_graph_builder_in_the_middle(ledger: Ledger) -> Handed:
    """Which captures, and whose graph calls a function back."""
    value, (word, array) = ledger.number(), ledger.word()
    builder = ledger.stream.create_graph_builder().begin_building()
    seen: list[int] = []
    ledger.write_late(word, value, builder)

    def look(builder):
        builder.callback(lambda: seen.append(int(array[0])))
        graph = builder.end_building().complete()
        graph.launch(ledger.stream)
        ledger.stream.sync()
        expect(seen, [value], "what a graph called back with, that another thread began")

    return Handed(builder, look)


@kind("GraphDefinition")
def a_definition(ledger: Ledger) -> Handed:
    value, (word, array) = ledger.number(), ledger.word()
    definition = GraphDefinition(device=ledger.env.device)
    definition.launch(ledger.env.one, ledger.env.late, word, value, TURNS)
    return Handed(definition, lambda definition: run(ledger, definition, array, value))


def run(ledger: Ledger, definition: GraphDefinition, array: np.ndarray, value: int) -> None:
    graph = definition.instantiate()
    graph.launch(ledger.stream)
    ledger.stream.sync()
    expect(int(array[0]), value, "what a graph does whose node another thread added")


def behind(section: str, add: Callable[[GraphDefinition, Ledger], GraphNode]) -> None:
    """Registers a kind of node, behind which another thread adds what writes a value, unless it is in a body."""

    @kind(section)
    def a_node(ledger: Ledger) -> Handed:
        value, (word, array) = ledger.number(), ledger.word()
        node = add(GraphDefinition(device=ledger.env.device), ledger)

        def look(node):
            node.launch(ledger.env.one, ledger.env.late, word, value, TURNS)
            run(ledger, node.graph, array, value)

        return Handed(node, look)


def conditional(definition: GraphDefinition, verb: str, *more: object) -> GraphNode:
    return getattr(definition, verb)(definition.create_condition(0), *more)


def launched(definition: GraphDefinition, ledger: Ledger) -> GraphNode:
    return definition.launch(ledger.env.one, ledger.env.kernel, ledger.env.counter)


def allocated(definition: GraphDefinition, ledger: Ledger) -> GraphNode:
    """Of memory that each launch frees, before what another thread adds or beside it."""
    node = definition.allocate(64)
    node.deallocate(node.dptr)
    return node


behind("GraphNode", lambda definition, ledger: definition.empty())
behind("KernelNode", launched)
behind("MemsetNode", lambda definition, ledger: definition.memset(ledger.word()[0], 1, 4))
behind("MemcpyNode", lambda definition, ledger: definition.memcpy(ledger.word()[0], ledger.word()[0], 4))
behind("AllocNode", allocated)
behind("FreeNode", lambda definition, ledger: ledger.env.new_free_node())
behind("EventRecordNode", lambda definition, ledger: definition.record(ledger.env.device.create_event()))
behind("EventWaitNode", lambda definition, ledger: definition.wait(ledger.env.device.create_event()))
behind("HostCallbackNode", lambda definition, ledger: definition.callback(ledger.env.nothing))
behind("ChildGraphNode", lambda definition, ledger: definition.embed(ledger.env.other_definition))
behind("ConditionalNode", lambda definition, ledger: conditional(definition, "switch", 2))
behind("IfNode", lambda definition, ledger: conditional(definition, "if_then"))
behind("IfElseNode", lambda definition, ledger: conditional(definition, "if_else"))
behind("WhileNode", lambda definition, ledger: conditional(definition, "while_loop"))


def executable(section: str, add: Callable[[GraphDefinition, Ledger], GraphNode], update: Callable) -> None:
    """Registers a kind of executable node, which another thread changes before the graph writes a value."""

    @kind(section)
    def a_node(ledger: Ledger) -> Handed:
        value, (word, array) = ledger.number(), ledger.word()
        definition = GraphDefinition(device=ledger.env.device)
        node = add(definition, ledger)
        node.launch(ledger.env.one, ledger.env.late, word, value, TURNS)
        graph = definition.instantiate()

        def look(node):
            update(node, ledger)
            graph.launch(ledger.stream)
            ledger.stream.sync()
            expect(int(array[0]), value, "what a graph does whose node another thread changed")

        return Handed(graph[node], look)


executable("ExecutableKernelNode", launched, lambda node, ledger: node.update(
    config=ledger.env.one, kernel=ledger.env.kernel, args=(ledger.word()[0],)
))  # fmt: skip
executable("ExecutableMemsetNode", lambda definition, ledger: definition.memset(ledger.word()[0], 1, 4),
           lambda node, ledger: node.update(dst=ledger.word()[0], value=2, width=4))
executable("ExecutableMemcpyNode", lambda definition, ledger: definition.memcpy(ledger.word()[0], ledger.word()[0], 4),
           lambda node, ledger: node.update(dst=ledger.word()[0], src=ledger.word()[0], size=4))
executable("ExecutableChildGraphNode", lambda definition, ledger: definition.embed(ledger.env.other_definition),
           lambda node, ledger: node.update(ledger.env.other_definition))
executable("ExecutableEventRecordNode", lambda definition, ledger: definition.record(ledger.env.event),
           lambda node, ledger: node.update(ledger.env.device.create_event()))
executable("ExecutableEventWaitNode", lambda definition, ledger: definition.wait(ledger.env.event),
           lambda node, ledger: node.update(ledger.env.device.create_event()))
executable("ExecutableHostCallbackNode", lambda definition, ledger: definition.callback(ledger.env.nothing),
           lambda node, ledger: node.update(ledger.env.nothing))


@kind("GraphScratch")
def scratch_of_a_builder(ledger: Ledger) -> Handed:
    value, (word, array) = ledger.number(), ledger.word()
    builder = ledger.env.device.create_graph_builder().begin_building()

    def look(scratch):
        launch(builder, ledger.env.one, ledger.env.late, scratch, value, 100)
        launch(builder, ledger.env.one, ledger.env.tally, word, scratch, -value)
        graph = builder.end_building().complete()
        graph.launch(ledger.stream)
        ledger.stream.sync()
        expect(int(array[0]), 1, "scratch memory that another thread made")

    return Handed(builder.scratch(4), look)


@kind("GraphCondition")
def a_condition(ledger: Ledger) -> Handed | None:
    if not ledger.env.has_conditionals:
        return None
    value, (word, array) = ledger.number(), ledger.word()
    builder = ledger.env.device.create_graph_builder().begin_building()

    def look(condition):
        body = builder.if_then(condition).begin_building()
        ledger.write_late(word, value, body)
        body.end_building()
        graph = builder.end_building().complete()
        graph.launch(ledger.stream)
        ledger.stream.sync()
        expect(int(array[0]), value, "a body of a condition that another thread made")

    return Handed(builder.create_condition(1), look)


# ---- Buffers and what is exported of them ----------------------------------------------------------------------------


def filled(ledger: Ledger, buffer: Buffer) -> Handed:
    """A buffer that the device fills."""
    value = ledger.number()
    buffer.fill(value.to_bytes(4, "little"), stream=ledger.stream)
    return Handed(buffer, lambda buffer: expect(ledger.contents(buffer), {value}, "a buffer's contents"))


@kind("Buffer")
def a_cached_buffer(ledger: Ledger) -> Handed:
    return filled(ledger, ledger.env.resource.allocate(BYTES, stream=ledger.stream))


@kind("Buffer")
def a_buffer_of_a_pool(ledger: Ledger) -> Handed:
    return filled(ledger, ledger.env.pool.allocate(BYTES, stream=ledger.stream))


@kind("Buffer")
def a_buffer_of_plain_memory(ledger: Ledger) -> Handed:
    return filled(ledger, ledger.env.plain.allocate(BYTES))


@kind("Buffer")
def a_pinned_buffer(ledger: Ledger) -> Handed:
    return filled(ledger, ledger.pinned.allocate(BYTES))


@kind("Buffer")
def a_buffer_with_an_owner(ledger: Ledger) -> Handed:
    value = ledger.number()
    owner = Owner(ledger, value)
    buffer = Buffer.from_handle(owner.memory.handle, BYTES, owner=owner)

    def look(buffer):
        expect(type(buffer.owner), Owner, "a buffer's owner")
        ledger.write_late(buffer, value, ledger.stream)  # and is not waited for

    return Handed(buffer, look)


@kind("Buffer")
def a_buffer_of_a_resource_in_python(ledger: Ledger) -> Handed:
    buffer = Lender(ledger).allocate(BYTES, stream=ledger.stream)

    def look(buffer):
        value, *_ = buffer.memory_resource.lent[buffer.handle]
        ledger.write_late(buffer, value, ledger.stream)  # and is not waited for

    return Handed(buffer, look)


def written(ledger: Ledger) -> "tuple[int, Buffer]":
    """A value, and a pinned buffer that the host has filled with it."""
    value, (buffer, array) = ledger.number(), ledger.word()
    array[:] = value
    return value, buffer


def seen_by_numpy(value: int, thing: object) -> Handed:
    """What numpy reads, of an object that has the buffer protocol or DLPack."""

    def look(thing):
        array = np.asarray(thing) if isinstance(thing, np.ndarray | memoryview) else np.from_dlpack(thing)
        expect(set(array.view(np.int32).ravel().tolist()), {value}, "what numpy sees")

    return Handed(thing, look)


@kind("Buffer")
def an_array_by_dlpack(ledger: Ledger) -> Handed:
    value, buffer = written(ledger)
    return seen_by_numpy(value, np.from_dlpack(buffer))


@kind("Buffer")
def a_buffer_for_dlpack(ledger: Ledger) -> Handed:
    return seen_by_numpy(*written(ledger))


@kind("Buffer")
def an_array_by_the_buffer_protocol(ledger: Ledger) -> Handed:
    value, buffer = written(ledger)
    return seen_by_numpy(value, np.frombuffer(buffer, np.uint8))


@kind("Buffer")
def a_memoryview(ledger: Ledger) -> Handed:
    value, buffer = written(ledger)
    return seen_by_numpy(value, memoryview(buffer))


@kind("Buffer")
def a_capsule(ledger: Ledger) -> Handed:
    """An export that nobody consumes."""
    _, buffer = written(ledger)

    def look(capsule):
        expect(type(capsule).__name__, "PyCapsule", "an export")

    return Handed(buffer.__dlpack__(stream=-1), look)


@kind("HostDeviceBuffer")
def a_host_device_buffer(ledger: Ledger) -> Handed:
    both, value = ftcuda.HostDeviceBuffer(BYTES, stream=ledger.stream), ledger.number()
    np.frombuffer(both.host_buffer, np.int32)[:] = value
    both.to_device(stream=ledger.stream)

    def look(both):
        host = np.frombuffer(both.host_buffer, np.int32)
        ledger.stream.sync()
        host[:] = 0
        both.to_host(stream=ledger.stream)
        ledger.stream.sync()
        expect(set(host.tolist()), {value}, "what came back from the device")

    return Handed(both, look)


# ---- Memory resources ------------------------------------------------------------------------------------------------


def dropped_before_its_buffer(ledger: Ledger, resource: object) -> Handed:
    """A resource that only its buffer refers to, from the time that it is used."""
    buffer = resource.allocate(BYTES, stream=ledger.stream)
    inner = filled(ledger, buffer)
    pair = [resource, buffer]
    del resource, buffer
    inner.thing = None

    def look(pair):
        expect(pair[1].memory_resource is pair[0], True, "a buffer knows its resource")
        del pair[0]
        inner.look(pair[0])
        expect(type(pair[0].memory_resource.device), ftcuda.Device, "the device of a resource")

    return Handed(pair, look)


@kind("MemoryResource")
def plain_memory(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.SynchronousMemoryResource(ledger.env.device))


@kind("MemoryResource")
def pinned_memory(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.LegacyPinnedMemoryResource())


@kind("MemoryResource")
def a_pool(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ledger.env.own_pool())


@kind("CachingMemoryResource")
def a_cache(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.CachingMemoryResource(ledger.env.own_pool()))


@kind("CachingMemoryResource")
def a_cache_of_pinned_memory(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.CachingMemoryResource(ftcuda.LegacyPinnedMemoryResource()))


@kind("StagingPool")
def staging(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.StagingPool(ledger.env.device, 4096))


@kind("StatisticsMemoryResource")
def statistics(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.StatisticsMemoryResource(ftcuda.SynchronousMemoryResource()))


@kind("LimitingMemoryResource")
def a_limit(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.LimitingMemoryResource(ftcuda.SynchronousMemoryResource(), BYTES))


@kind("TrackingMemoryResource")
def a_tracker(ledger: Ledger) -> Handed:
    return dropped_before_its_buffer(ledger, ftcuda.TrackingMemoryResource(ftcuda.SynchronousMemoryResource()))


@kind("GraphMemoryResource")
def memory_of_a_graph(ledger: Ledger) -> Handed | None:
    """Which another thread looks at after a launch, when nobody else has the graph."""
    if not ledger.env.has_graph_memory:
        return None
    value, (word, array) = ledger.number(), ledger.word()
    resource = ftcuda.GraphMemoryResource(ledger.env.device)
    builder = ledger.env.device.create_graph_builder().begin_building()
    buffer = resource.allocate(BYTES, stream=builder)
    ledger.write_late(buffer, value, builder)
    builder.end_building().complete().launch(ledger.stream)
    del builder

    def look(pair):
        pair[0].copy_to(word, stream=ledger.stream)
        ledger.stream.sync()
        expect(int(array[0]), value, "memory of a graph")
        expect(pair[1].attributes.used_mem_current > 0, True, "memory that graphs use")

    return Handed([buffer, resource], look)


@kind("ExternalMemoryResource")
def an_allocator_of_others(ledger: Ledger) -> Handed:
    """Its memory notes, as an owner does, when it is let go of."""
    value = ledger.number()

    resource = ftcuda.ExternalMemoryResource(
        lambda size, stream: AllocatedByOthers(ledger, value), device_id=-1, is_host_accessible=True
    )
    buffer = resource.allocate(BYTES, stream=ledger.stream)
    del resource

    def look(buffer):
        expect(type(buffer.memory_resource), ftcuda.ExternalMemoryResource, "a buffer's resource")
        ledger.write_late(buffer, value, ledger.stream)  # and is not waited for

    return Handed(buffer, look)


# ---- Batchers --------------------------------------------------------------------------------------------------------


@kind("Batcher")
def a_batcher(ledger: Ledger) -> Handed:
    row = np.full(4, ledger.number(), np.int32)

    def look(batcher):
        expect(batcher(row).tolist(), row.tolist(), "an answer")

    return Handed(ledger.env.new_batcher(), look)


@kind("BatchFuture")
def a_request(ledger: Ledger) -> Handed:
    """Whose batcher nobody else has."""
    row = np.full(4, ledger.number(), np.int32)

    def look(future):
        expect(future.result().tolist(), row.tolist(), "the answer of a request")

    return Handed(ledger.env.new_batcher().submit(row), look)


# ---- Views -----------------------------------------------------------------------------------------------------------


@kind("StridedMemoryView")
def a_view_of_a_buffer(ledger: Ledger) -> Handed:
    value, buffer = written(ledger)
    return seen_by_numpy(value, StridedMemoryView.from_buffer(buffer, (BYTES // 4,), dtype="i4"))


@kind("StridedMemoryView")
def a_view_by_dlpack(ledger: Ledger) -> Handed:
    value, buffer = written(ledger)
    return seen_by_numpy(value, StridedMemoryView.from_dlpack(buffer, ledger.stream))


@kind("StridedMemoryView")
def a_view_by_the_interface(ledger: Ledger) -> Handed:
    value, buffer = written(ledger)
    view = StridedMemoryView.from_cuda_array_interface(buffer, ledger.stream)

    def look(view):
        expect(ledger.contents(view.exporting_obj), {value}, "the buffer behind a view")
        expect(view.ptr, view.exporting_obj.handle, "a view's address")

    return Handed(view, look)


@kind("StridedMemoryView")
def a_view_of_a_view(ledger: Ledger) -> Handed:
    value, buffer = written(ledger)
    return seen_by_numpy(value, StridedMemoryView.from_any_interface(buffer, ledger.stream).view(dtype="u1"))


@kind("StridedMemoryView")
def a_view_of_an_array(ledger: Ledger) -> Handed:
    value = ledger.number()
    return seen_by_numpy(value, StridedMemoryView.from_array_interface(np.full(BYTES // 4, value, np.int32)))


@kind("TensorMapDescriptor")
def a_tensor_map(ledger: Ledger) -> Handed | None:
    env = ledger.env
    if not env.device.features.tensor_maps:
        return None
    value, buffer = ledger.number(), env.resource.allocate(1024, stream=ledger.stream)
    buffer.fill(value.to_bytes(4, "little"), stream=ledger.stream)
    made = StridedMemoryView.from_buffer(buffer, (256,), dtype="i4").as_tensor_map((16,))
    wanted = bytes(made)

    def look(made):
        expect(bytes(made), wanted, "a tensor map")
        host = ledger.pinned.allocate(1024)
        made.view.exporting_obj.copy_to(host, stream=ledger.stream)
        ledger.stream.record().sync()
        expect(set(np.frombuffer(host, np.int32).tolist()), {value}, "the memory behind a tensor map")

    return Handed(made, look)


# ---- Code and launches -----------------------------------------------------------------------------------------------


@kind("Program")
def a_program(ledger: Ledger) -> Handed:
    number = ledger.number()
    program = ftcuda.Program(f'extern "C" __global__ void named_{number}() {{}}', "c++")

    def look(program):
        expect(f"named_{number}".encode() in program.compile("ptx").code, True, "a program's own kernel is in its code")

    return Handed(program, look)


@kind("Linker")
def a_linker(ledger: Ledger) -> Handed | None:
    try:
        ftcuda.Linker.which_backend()
    except ftcuda.LinkerError:  # there is no nvJitLink of CUDA 11
        return None
    number = ledger.number()
    ptx = f".version 7.0\n.target sm_80\n.visible .entry named_{number}() {{ ret; }}".encode()
    linker = ftcuda.Linker(ftcuda.ObjectCode.from_ptx(ptx), options={"arch": "sm_80"})

    def look(linker):
        expect(linker.link("cubin").kernel_names, [f"named_{number}"], "the kernels of what was linked")

    return Handed(linker, look)


def counted(ledger: Ledger, launch_it: Callable[[Buffer], None]) -> None:
    """Raises unless the launch counts one in the buffer it is given."""
    word, array = ledger.word()
    launch_it(word)
    ledger.stream.record().sync()
    expect(int(array[0]), 1, "a count after one launch")


@kind("ObjectCode")
def code(ledger: Ledger) -> Handed:
    def look(code):
        kernel = code.get_kernel("increment")
        counted(ledger, lambda word: launch(ledger.stream, ledger.env.one, kernel, word))

    return Handed(ledger.env.new_code(), look)


@kind("ObjectCode")
def a_variable_of_code(ledger: Ledger) -> Handed:
    """A buffer whose owner is the code; its memory goes with the code."""
    variable = ledger.env.new_code().get_global("variable")

    def look(variable):
        host, array = ledger.word()
        part = Buffer.from_handle(host.handle, variable.size, owner=host)
        variable.copy_to(part, stream=ledger.stream)
        ledger.stream.record().sync()
        expect(int(array[0]), 1, "a variable's value")

    return Handed(variable, look)


@kind("Kernel")
def a_kernel(ledger: Ledger) -> Handed:
    def look(kernel):
        counted(ledger, lambda word: launch(ledger.stream, ledger.env.one, kernel, word))

    return Handed(ledger.env.new_code().get_kernel("increment"), look)


@kind("KernelOccupancy")
def an_occupancy(ledger: Ledger) -> Handed:
    wanted = ledger.env.increment.occupancy.max_active_blocks_per_multiprocessor(32, 0)

    def look(occupancy):
        expect(occupancy.max_active_blocks_per_multiprocessor(32, 0), wanted, "an occupancy")

    return Handed(ledger.env.new_code().get_kernel("increment").occupancy, look)


@kind("BoundLaunch")
def a_bound_launch(ledger: Ledger) -> Handed:
    """Its buffer, and the kernel's code, are only its own."""
    word, array = ledger.word()
    bound = ledger.env.new_code().get_kernel("increment").bind(ledger.env.one, word)

    def look(bound):
        expect(bound.arguments[0].size, BYTES, "a bound argument")
        bound.launch(ledger.stream)
        ledger.stream.record().sync()
        expect(int(array[0]), 1, "a count after one bound launch")

    return Handed(bound, look)


@kind("BoundLaunch")
def a_bound_launch_of_an_array(ledger: Ledger) -> Handed:
    """Bound to memory of others, which the launch keeps; it is dropped while that runs."""
    value = ledger.number()
    owner = Owner(ledger, value)

    bound = ledger.env.late.bind(ledger.env.one, StridedMemoryView(ArrayOfOthers(owner), -1), value, TURNS)
    return Handed(bound, lambda bound: bound.launch(ledger.stream))


@kind("LaunchConfig")
def a_configuration(ledger: Ledger) -> Handed:
    def look(config):
        word, array = ledger.word()
        launch(ledger.stream, config, ledger.env.increment, word)
        ledger.stream.record().sync()
        expect(int(array[0]), 6, "a count of the threads of one launch")

    return Handed(LaunchConfig(grid=2, block=3), look)
