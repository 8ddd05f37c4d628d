"""Graphs whose launches have arguments of their own."""

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor, wait
from inspect import signature
from itertools import permutations
from time import monotonic
from types import SimpleNamespace
from unicodedata import normalize

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, LaunchConfig, LegacyPinnedMemoryResource, NotSupportedError, StridedMemoryView, launch
from ftcuda.graph import BoundGraph, GraphCompleteOptions, Parameter
from ftcuda.testing import Schedule, faults, together
from tests.conftest import seeds, simulated_only
from tests.kernels import IS_SIMULATED, compile_code
from tests.objects.graphs import ONE, assert_goes, assert_kept, assert_nothing_left, needs_12

pytestmark = [needs_12, pytest.mark.thread_unsafe(reason="makes threads of its own, and counts what lives")]
UNKNOWN = 999  # a failure that does not end the context

SOURCE = """
extern "C" __global__ void put(int* place, int value) { *place = value; }
extern "C" __global__ void add(int* place, int value, int more) { *place += value + more; }
extern "C" __global__ void put_float(float* place, float value) { *place = value; }
struct Pair { int first, second; };
extern "C" __global__ void put_pair(int* place, Pair pair) { place[0] = pair.first; place[1] = pair.second; }
extern "C" __global__ void put_at(int* place, long long value) { *place = (int)value; }
"""


@pytest.fixture(scope="module")
def kernels():
    code = compile_code(SOURCE)
    return SimpleNamespace(**{name: code.get_kernel(name) for name in ("put", "add", "put_float", "put_pair", "put_at")})


@pytest.fixture(scope="module")
def shapes():
    places = (f"{name}.{axis}" for name in ("gridDim", "blockDim") for axis in "xyz")
    writes = " ".join(f"place[{index}] = {place};" for index, place in enumerate(places))
    return SimpleNamespace(dimensions=compile_code(f'extern "C" __global__ void dimensions(int* place) {{ {writes} }}').get_kernel("dimensions"))


@pytest.fixture
def words(pinned):
    """Makes words of pinned memory, each with a view."""
    return lambda: pinned(np.zeros(4, np.int32))


def built(device, *launches, most=1):
    """The graph of `launches`, each a kernel and its arguments; its builder is gone."""
    builder = device.create_graph_builder().begin_building()
    for kernel, *arguments in launches:
        launch(builder, ONE, kernel, *arguments)
    graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=most))
    builder.close()
    return graph


def test_each_launch_has_its_own_arguments(device, kernels, words, stream):
    (first, x), (second, y) = words(), words()
    graph = built(device, (kernels.put, Parameter("where", first), Parameter("value", 1)))
    bound = graph.bind()
    assert isinstance(bound, BoundGraph) and bound.parameters == ("where", "value") and bound.graph is graph
    bound.launch(stream, where=second, value=7)
    stream.sync()
    assert (x[0], y[0]) == (0, 7)
    bound.launch(stream, value=8)  # what is left out is the example
    stream.sync()
    assert (x[0], y[0]) == (8, 7)
    bound.launch(stream)
    stream.sync()
    assert (x[0], y[0]) == (1, 7)
    bound.launch(stream, where=second)
    graph.launch(stream)  # as it was captured
    stream.sync()
    assert (x[0], y[0]) == (1, 1)
    graph.close()


def test_one_name_for_several_arguments(device, kernels, words, stream):
    """Of the same kernel, of several, and of other kinds: a float where an int is meant elsewhere."""
    memory, view = words()
    floats, real = LegacyPinnedMemoryResource().allocate(4), None
    real = np.frombuffer(floats, np.float32)
    n = Parameter("n", 2)
    graph = built(
        device, (kernels.put, memory, n), (kernels.add, memory, n, n), (kernels.put_float, floats, n), (kernels.add, memory, 100, n)
    )
    bound = graph.bind()
    assert bound.parameters == ("n",)
    bound.launch(stream, n=5)
    stream.sync()
    assert view[0] == 5 + 10 + 105 and real[0] == 5
    with pytest.raises(TypeError, match="float"):
        bound.launch(stream, n=2.5)  # which the int parameters do not take
    stream.sync()
    assert view[0] == 120
    graph.launch(stream)
    stream.sync()
    assert view[0] == 2 + 4 + 102 and real[0] == 2
    graph.close()


@pytest.mark.parametrize("count", [3, 60])  # on the stack; in memory of the launch's own
def test_any_number_of_names(device, kernels, pinned, words, stream, count):
    memory, view = pinned(np.zeros(count, np.int32))
    other, single = words()
    places = [int(memory.handle) + 4 * index for index in range(count)]
    graph = built(
        device,
        *((kernels.put, Parameter(f"place{index}", place), Parameter(f"value{index}", index)) for index, place in enumerate(places)),
    )
    bound = graph.bind()
    bound.launch(stream, **{f"value{index}": 100 + index for index in range(0, count, 2)})
    stream.sync()
    assert view.tolist() == [index if index % 2 else 100 + index for index in range(count)]
    bound.launch(stream, **{f"place{index}": other for index in range(1, count)})
    stream.sync()
    assert single[0] == count - 1
    assert view.tolist() == [0, *(index if index % 2 else 100 + index for index in range(1, count))]
    graph.close()


def test_all_kinds_of_arguments(device, kernels, words, stream):
    memory, view = words()
    pair = np.zeros((), [("first", "i4"), ("second", "i4")])[()]
    graph = built(device, (kernels.put_pair, memory, Parameter("pair", pair)))
    given = np.array((3, 4), [("first", "i4"), ("second", "i4")])[()]
    graph.bind().launch(stream, pair=given)
    stream.sync()
    assert view[:2].tolist() == [3, 4]
    graph.close()
    graph = built(device, (kernels.put, Parameter("where", memory), 9))
    bound = graph.bind()
    other, seen = words()
    array = SimpleNamespace(__cuda_array_interface__=StridedMemoryView.from_buffer(other, (4,), dtype="i4").__cuda_array_interface__)
    for where in (StridedMemoryView.from_buffer(other, (4,), dtype="i4"), array, int(other.handle)):
        seen[0] = 0
        bound.launch(stream, where=where)
        stream.sync()
        assert seen[0] == 9
    graph.close()


def test_the_shape_of_a_launch(device, kernels, words, stream):
    memory, view = words()
    code = compile_code('extern "C" __global__ void count(int* place) { extern __shared__ int s[]; atomicAdd(place, 1); }')
    config = Parameter("config", ONE)
    builder = device.create_graph_builder().begin_building()
    launch(builder, config, code.get_kernel("count"), memory)
    graph = builder.end_building().complete()
    builder.close()
    bound = graph.bind()
    for wanted, seen in ((LaunchConfig(grid=2, block=3), 6), (LaunchConfig(grid=1, block=1, shmem_size=64 * 1024), 1), (None, 1)):
        view[0] = 0
        bound.launch(stream, **({} if wanted is None else {"config": wanted}))
        stream.sync()
        assert view[0] == seen
    with pytest.raises(TypeError, match="must be a LaunchConfig"):
        bound.launch(stream, config=3)
    with pytest.raises(ValueError, match="the same cluster"):
        bound.launch(stream, config=LaunchConfig(grid=1, block=1, is_cooperative=True))
    builder = device.create_graph_builder().begin_building()
    with pytest.raises(TypeError, match="must be a LaunchConfig"):
        launch(builder, Parameter("config", 1), kernels.put, memory, 1)
    builder.close()
    with pytest.raises(TypeError, match="must be a LaunchConfig, not Parameter"):
        launch(stream, config, kernels.put, memory, 1)
    graph.close()


def test_all_dimensions_of_a_launch(device, pinned, shapes, stream):
    memory, view = pinned(np.zeros(6, np.int32))
    builder = device.create_graph_builder().begin_building()
    launch(builder, Parameter("config", ONE), shapes.dimensions, memory)
    graph = builder.end_building().complete()
    bound = graph.bind()
    for arguments, seen in (({"config": LaunchConfig(grid=(2, 3, 4), block=(5, 6, 7))}, [2, 3, 4, 5, 6, 7]), ({}, [1] * 6)):
        bound.launch(stream, **arguments)
        stream.sync()
        assert view.tolist() == seen
    graph.close()
    builder.close()


def test_a_configuration_has_the_attributes_of_all_its_launches(device, kernels, words, stream):
    memory, view = words()
    together_config = LaunchConfig(grid=1, block=1, is_cooperative=True)
    builder = device.create_graph_builder().begin_building()
    for example in (together_config, ONE):  # each place has an example of its own
        launch(builder, Parameter("config", example), kernels.add, memory, 1, 0)
    graph = builder.end_building().complete()
    bound = graph.bind()
    for config in (together_config, ONE):
        with pytest.raises(ValueError, match="the same cluster"):
            bound.launch(stream, config=config)
    stream.sync()
    assert view[0] == 0
    bound.launch(stream)
    stream.sync()
    assert view[0] == 2
    graph.close()
    builder.close()


def test_values_in_flight_stay(device, kernels, stream, held_clock):
    """A hundred launches are under way, each with its own value and place."""
    memory = LegacyPinnedMemoryResource().allocate(400)
    values = np.frombuffer(memory, np.int32)
    values[:] = 0
    graph = built(device, (kernels.put, Parameter("where", memory), Parameter("value", 0)))
    bound = graph.bind()
    with held_clock():
        for index in range(100):
            bound.launch(stream, where=int(memory.handle) + 4 * index, value=index + 1)
    stream.sync()
    assert values.tolist() == list(range(1, 101))
    graph.close()


@pytest.mark.parametrize("most", [1, 4])
def test_threads_launch_one_graph_with_arguments_of_their_own(device, kernels, most):
    graph = built(device, (kernels.put, Parameter("where", 8), Parameter("value", 0)), (kernels.add, Parameter("where", 8), Parameter("more", 0), 1), most=most)
    bound = graph.bind()

    def run(thread):
        own = device.create_stream()
        memory = LegacyPinnedMemoryResource().allocate(4 * 50)
        values = np.frombuffer(memory, np.int32)
        values[:] = 0
        for turn in range(50):
            bound.launch(own, where=int(memory.handle) + 4 * turn, value=1000 * thread, more=turn)
        own.sync()
        own.close()
        return values.tolist() == [1000 * thread + turn + 1 for turn in range(50)]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, range(6)))
    graph.close()


class Kept:
    """Something that a test can see go."""


def test_what_was_given_lives_until_the_work_is_done(device, kernels, words, stream, held_clock):
    (memory, _), (other, view) = words(), words()
    graph = built(device, (kernels.put, Parameter("where", memory), 5))
    interface = StridedMemoryView.from_buffer(other, (4,), dtype="i4").__cuda_array_interface__
    array = SimpleNamespace(__cuda_array_interface__=interface, kept=Kept())
    gone = weakref.ref(array.kept)
    with held_clock():
        graph.bind().launch(stream, where=array)
        del array
        graph.close()
        ftcuda.memory.wait_for_deallocations()
        assert gone() is not None
    device.sync()
    assert view[0] == 5
    end = monotonic() + 20
    while gone() is not None and monotonic() < end:
        ftcuda.memory.wait_for_deallocations()
    assert gone() is None


def test_the_owner_of_a_buffer_lives_until_the_work_is_done(device, kernels, words, stream, held_clock):
    (memory, _), (other, view) = words(), words()
    graph = built(device, (kernels.put, Parameter("where", memory), 5))
    owner = Kept()
    gone = weakref.ref(owner)
    buffer = ftcuda.Buffer.from_handle(int(other.handle), 16, owner=owner)
    with held_clock():
        graph.bind().launch(stream, where=buffer)
        del buffer, owner
        ftcuda.memory.wait_for_deallocations()
        assert gone() is not None
    stream.sync()
    assert view[0] == 5
    assert_goes(lambda: gone() is None, device)
    graph.close()


@simulated_only
def test_an_argument_on_another_device(run_python):
    """A view tells on which device it is, where the driver would take the address."""
    run_python(
        "import numpy, ftcuda\n"
        "from ftcuda import Device, LaunchConfig, StridedMemoryView, launch\n"
        "from ftcuda.graph import Parameter\n"
        "from tests.kernels import compile_code\n"
        "devices = Device(0), Device(1)\n"
        "streams = [device.create_stream() for device in devices]\n"
        "buffers = [device.allocate(16, stream=stream) for device, stream in zip(devices, streams)]\n"
        "devices[0].set_current()\n"
        "put = compile_code('extern \"C\" __global__ void put(int* x, int v) { *x = v; }').get_kernel('put')\n"
        "builder = devices[0].create_graph_builder().begin_building()\n"
        "launch(builder, LaunchConfig(grid=1, block=1), put, Parameter('where', buffers[0]), 7)\n"
        "bound = builder.end_building().complete().bind()\n"
        "try: bound.launch(streams[0], where=StridedMemoryView.from_buffer(buffers[1], (4,), dtype='i4'))\n"
        "except ValueError as error: assert 'is on device 1, and the stream on device 0' in str(error), error\n"
        "else: raise SystemExit('launched')\n"
        "bound.launch(streams[0], where=StridedMemoryView.from_buffer(buffers[0], (4,), dtype='i4'))\n"
        "seen = numpy.zeros(4, 'i4')\n"
        "buffers[0].copy_to(seen, stream=streams[0])\n"
        "streams[0].sync()\n"
        "assert seen[0] == 7, seen\n",
        FTCUDA_SIM_DEVICES="2",
    )


@pytest.mark.parametrize("is_example", [False, True])
def test_arrays_of_others_beside_parameters(device, kernels, words, stream, is_example):
    """As an example, or as an argument without a name: the graph keeps them."""
    (first, x), (second, y) = words(), words()
    interface = StridedMemoryView.from_buffer(first, (4,), dtype="i4").__cuda_array_interface__
    interface = {**interface, "stream": None}  # else the builder would have to wait for work outside the capture
    array = SimpleNamespace(__cuda_array_interface__=interface, kept=Kept())
    gone = weakref.ref(array.kept)
    where = Parameter("where", array) if is_example else array
    graph = built(device, (kernels.put, where, Parameter("value", 3)))
    del array, where
    bound = graph.bind()
    bound.launch(stream, **({"where": second} if is_example else {"value": 4}))
    bound.launch(stream, value=6)
    stream.sync()
    assert (x[0], y[0]) == (6, 3 if is_example else 0)
    ftcuda.memory.wait_for_deallocations()
    assert gone() is not None
    graph.close()
    del bound, graph
    assert_goes(lambda: gone() is None, device)


def test_where_a_parameter_belongs(device, kernels, words, stream):
    memory, _ = words()
    parameter = Parameter("value", 1)
    for call in (
        lambda: launch(stream, ONE, kernels.put, memory, parameter),
        lambda: launch(stream, Parameter("config", ONE), kernels.put, memory, 1),
        lambda: kernels.put.bind(ONE, memory, parameter),
        lambda: kernels.put.bind(ONE, memory, 1).set(1, parameter),
        lambda: Parameter("outer", parameter),
    ):
        with pytest.raises(TypeError, match=r"a Parameter is for launch\(\) with a GraphBuilder"):
            call()
    with pytest.raises(TypeError, match="no subclasses"):
        type("Named", (Parameter,), {})


class Name(str):
    """A text that lies about what it is."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __str__(self):
        return "other"


def test_names_of_parameters(device, kernels, words, stream):
    """What a call may have as a keyword, as the parser reads it."""
    memory, view = words()
    name = Parameter(Name("value"), 1).name
    assert type(name) is str and name == "value"
    for refused in ("\ufb01", "\u2102", "__debug__", "None", "1a", "\ud800", ""):
        with pytest.raises(ValueError, match="name must be"):
            Parameter(refused, 1)
    graph = built(device, (kernels.add, memory, Parameter("fi", 1), Parameter("m\u00e4rz", 1)))
    graph.bind().launch(stream, **{normalize("NFKC", "\ufb01"): 20, "m\u00e4rz": 300})
    stream.sync()
    assert view[0] == 320
    graph.close()


def test_names_in_any_order(device, kernels, words, stream):
    """Some of four, in each order, from the text of a call and from names that a program made."""
    memory, view = words()
    captured = {"first": 1, "second": 2, "self": 4, "stream": 8}
    graph = built(device, *((kernels.add, memory, Parameter(name, value), 0) for name, value in captured.items()))
    bound, expected = graph.bind(), 0
    for count in range(len(captured) + 1):
        for names in permutations(captured, count):
            given = {name: 10 * value for name, value in captured.items() if name in names}
            bound.launch(stream, **{name: given[name] for name in names})
            bound.launch(stream, **{"".join(list(name)): given[name] for name in names})
            expected += 2 * sum(({**captured, **given}).values())
    bound.launch(stream, second=0, stream=0, self=0, first=100)
    stream.sync()
    assert view[0] == expected + 100
    graph.close()


def test_names_that_are_no_plain_texts(device, kernels, words, stream):
    memory, view = words()
    graph = built(device, (kernels.add, memory, Parameter("value", 1), 0))
    bound = graph.bind()
    bound.launch(stream, **{Name("value"): 20})
    with pytest.raises(TypeError, match="no parameter name"):
        bound.launch(stream, **{Name("name"): 300})
    stream.sync()
    assert view[0] == 20
    graph.close()


def test_launches_that_are_called_wrongly(device, kernels, words, stream):
    memory, view = words()
    graph = built(device, (kernels.put, memory, Parameter("value", 1)))
    bound = graph.bind()
    for wrong in ((), (stream, 1)):
        with pytest.raises(TypeError, match=rf"exactly 1 positional argument \({len(wrong)} given\)"):
            bound.launch(*wrong)
        with pytest.raises(TypeError, match="exactly 1 positional"):
            bound.launch(*wrong, value=1)
    with pytest.raises(TypeError, match="BoundGraph' objects"):
        BoundGraph.launch(graph, stream)
    with pytest.raises(TypeError):
        bound.launch(1, value=1)
    assert str(signature(bound.launch)) == "(stream, /, **arguments)"
    stream.sync()
    assert view[0] == 0
    graph.close()


def test_a_buffer_that_another_thread_closes_is_freed_after_the_launch(device, kernels, stream, held_clock):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    memory = resource.allocate(4)
    values = np.frombuffer(memory, np.int32)
    graph = built(device, (kernels.put, Parameter("where", 8), 5))
    bound = graph.bind()
    with ThreadPoolExecutor(1) as pool:
        with held_clock():
            bound.launch(stream, where=memory)
            closing = pool.submit(memory.close)
            wait([closing], timeout=0.2)
            assert resource.statistics.current_count == 1
        closing.result()
    stream.sync()
    assert values[0] == 5
    del values
    graph.close()
    assert_nothing_left(resource, device)


@simulated_only
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_launch_that_fails_half_way_launches_nothing(device, kernels, words, most, nth):
    """The next one has none of its arguments."""
    (first, x), (second, y) = words(), words()
    graph = built(
        device, *[(kernels.add, Parameter("where", first), Parameter("value", 1), 0)] * 3, most=most
    )
    bound = graph.bind()
    stream, other = device.create_stream(), device.create_stream()
    graph.launch(other)
    other.sync()  # the kernels' additions are not atomic
    graph.launch(stream)
    device.sync()
    assert x[0] == 6
    with faults.failing("cuGraphExecKernelNodeSetParams_v2", UNKNOWN, nth=nth), pytest.raises(ftcuda.CUDAError):
        bound.launch(stream, where=second, value=50)
    device.sync()
    assert (x[0], y[0]) == (6, 0)
    bound.launch(stream, where=second, value=50)  # the same again: all nodes are told now
    device.sync()
    assert (x[0], y[0]) == (6, 150)
    with faults.failing("cuGraphExecKernelNodeSetParams_v2", UNKNOWN, nth=nth), pytest.raises(ftcuda.CUDAError):
        bound.launch(stream, where=second, value=60)
    graph.launch(stream)
    bound.launch(stream, value=2)
    device.sync()
    assert (x[0], y[0]) == (6 + 3 + 6, 150)
    graph.close()


@pytest.mark.skipif(not IS_SIMULATED, reason="its schedules are the simulated driver's")
def test_launches_that_meet_have_their_own_arguments(device, kernels):
    """Mutant: one thread's arguments are in the other's launch."""
    graph = built(device, *[(kernels.add, Parameter("where", 8), Parameter("value", 0), 0)] * 3)
    bound = graph.bind()
    streams = [device.create_stream() for _ in range(2)]
    memory = LegacyPinnedMemoryResource().allocate(8)
    values = np.frombuffer(memory, np.int32)
    for seed in seeds(60):
        values[:] = 0
        together(
            2,
            lambda index: bound.launch(streams[index], where=int(memory.handle) + 4 * index, value=index + 1),
            schedule=Schedule("random", seed=seed),
        )
        device.sync()
        assert values.tolist() == [3, 6]
    graph.close()


def test_what_has_parameters_stays_as_it_is(device, kernels, words, stream):
    """It is neither embedded nor updated, nor are there parameters in bodies."""
    memory, _ = words()
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, kernels.put, memory, Parameter("value", 1))
    graph = builder.end_building().complete()
    outer = device.create_graph_builder().begin_building()
    with pytest.raises(NotSupportedError, match="replace arguments, and"):
        outer.embed(builder)
    outer.end_building()
    with pytest.raises(NotSupportedError, match="replace arguments, and"):
        graph.update(builder)
    if device.features.conditional_graphs:
        outer = device.create_graph_builder().begin_building()
        body = outer.if_then(outer.create_condition(0)).begin_building()
        with pytest.raises(NotSupportedError, match="bodies"):
            launch(body, ONE, kernels.put, memory, Parameter("value", 1))
        body.end_building()
        outer.end_building().close()
    for each in (graph, builder, outer):
        each.close()


def test_bad_arguments(device, kernels, words, stream):
    memory, view = words()
    graph = built(device, (kernels.put, memory, Parameter("value", 1)))
    bound = graph.bind()
    for error, match, arguments in (
        (TypeError, "no parameter place", {"place": memory}),
        (TypeError, "no parameter a, b", {"value": 1, "a": 1, "b": 2}),
        (OverflowError, "cannot hold", {"value": 2**40}),
        (TypeError, "cannot be str", {"value": "1"}),
        (TypeError, "cannot be Parameter", {"value": Parameter("value", 2)}),
    ):
        with pytest.raises(error, match=match):
            bound.launch(stream, **arguments)
    stream.sync()
    assert view[0] == 0
    with pytest.raises(TypeError, match="cannot be Parameter"):
        launch(stream, ONE, kernels.put, memory, Parameter("value", 1))
    for name, error in ((1, TypeError), ("", ValueError), ("a b", ValueError), ("class", ValueError)):
        with pytest.raises(error, match="name must be"):
            Parameter(name, 1)
    plain = built(device, (kernels.put, memory, 1))
    with pytest.raises(ValueError, match="no argument in it has a name"):
        plain.bind()
    with pytest.raises(TypeError, match=r"Graph.bind\(\)"):
        BoundGraph()
    graph.close()
    with pytest.raises(ClosedError, match="graph"):
        bound.launch(stream, value=1)
    with pytest.raises(ClosedError, match="closed"):
        graph.bind()
    other, _ = words()
    graph = built(device, (kernels.put, Parameter("where", memory), 1))
    bound = graph.bind()
    other.close()
    with pytest.raises(ClosedError, match=": where, <Buffer .*, is closed"):
        bound.launch(stream, where=other)
    graph.close()
    plain.close()


MAP = """
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void copy(unsigned long long* out, int at, const __grid_constant__ Map map) {
    for (int i = 0; i < 16; ++i) out[16 * at + i] = map.words[i];
}
extern "C" __global__ void both(unsigned long long* out, int at, const __grid_constant__ Map map,
                                const __grid_constant__ Map same) {
    for (int i = 0; i < 16; ++i) out[i] = map.words[i], out[16 + i] = same.words[i] + at;
}
"""


@pytest.fixture(scope="module")
def maps(device):
    if not device.features.tensor_maps:
        pytest.skip("the device or driver has no tensor maps")
    code = compile_code(MAP)
    kernels = {name: code.get_kernel(name) for name in ("copy", "both")}
    return SimpleNamespace(**kernels, of=lambda tensor: view_of(tensor).as_tensor_map((8, 8)))


def view_of(buffer):
    return StridedMemoryView.from_buffer(buffer, (32, 32), dtype="f4")


class Log:
    """What kernels wrote since the last look; zeros else."""

    def __init__(self, stream):
        self.memory = LegacyPinnedMemoryResource().allocate(256)
        self._words = np.frombuffer(self.memory, np.uint64)
        self._words[:] = 0
        self._stream = stream

    def take(self):
        self._stream.sync()
        taken = self._words.tobytes()
        self._words[:] = 0
        return taken


def test_a_tensor_map_as_a_parameter(device, maps, stream):
    """What is left out is the map as it was captured, wherever the map points by then."""
    first, second, third = (device.allocate(4096, stream=stream) for _ in range(3))
    example, other = maps.of(first), maps.of(second)
    captured, replaced = bytes(example), bytes(other)
    log = Log(stream)
    graph = built(device, *[(maps.copy, log.memory, index, Parameter("map", example)) for index in range(2)])
    bound = graph.bind()
    for submit, seen in (
        (bound.launch, captured),
        (lambda stream: bound.launch(stream, map=other), replaced),
        (bound.launch, captured),
        (lambda stream: bound.launch(stream, map=other), replaced),
        (graph.launch, captured),
    ):
        submit(stream)
        assert log.take() == 2 * seen
    example.replace_address(view_of(third))
    for arguments, seen in (({}, captured), ({"map": example}, bytes(example)), ({"map": replaced}, replaced), ({}, captured)):
        bound.launch(stream, **arguments)
        assert log.take() == 2 * seen
    assert len({captured, replaced, bytes(example)}) == 3
    graph.close()


def test_a_tensor_map_beside_a_parameter(device, maps, stream):
    first, second = (device.allocate(4096, stream=stream) for _ in range(2))
    map = maps.of(first)
    captured = bytes(map)
    log = Log(stream)
    graph = built(device, (maps.copy, log.memory, Parameter("at", 0), map))
    bound = graph.bind()
    for submit, at in ((bound.launch, 0), (lambda stream: bound.launch(stream, at=1), 1), (bound.launch, 0), (graph.launch, 0)):
        submit(stream)
        assert log.take()[128 * at :][:128] == captured
        map.replace_address(view_of(second))
    graph.close()


@simulated_only
def test_maps_that_change_while_they_are_captured(device, maps, stream):
    """Both places have one moment's map, and launches before and after others were replaced the same one."""
    first, second = (device.allocate(4096, stream=stream) for _ in range(2))
    views = [view_of(each) for each in (first, second)]
    map = maps.of(first)
    moments = {bytes(view.as_tensor_map((8, 8))) for view in views}
    log = Log(stream)
    for seed in seeds(1500):
        builder = device.create_graph_builder().begin_building()
        map.replace_address(views[seed % 2])

        def work(index, builder=builder, other=views[1 - seed % 2]):
            if index == 0:
                launch(builder, ONE, maps.both, log.memory, Parameter("at", 0), map, map)
            else:
                map.replace_address(other)

        together(2, work, schedule=Schedule("random", seed=seed))
        graph = builder.end_building().complete()
        bound = graph.bind()
        bound.launch(stream)
        seen = log.take()
        assert seen[:128] == seen[128:] and seen[:128] in moments
        bound.launch(stream, at=1)
        assert log.take()[:128] == seen[:128]
        bound.launch(stream)
        assert log.take() == seen
        graph.close()
        builder.close()


def test_the_memory_of_a_map_that_replaces_another_is_freed_after_the_launch(device, maps, stream, held_clock):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    first, second = LegacyPinnedMemoryResource().allocate(4096), resource.allocate(4096)
    map = maps.of(second)
    log = Log(stream)
    graph = built(device, (maps.copy, log.memory, 0, Parameter("map", maps.of(first))))
    bound = graph.bind()
    with ThreadPoolExecutor(1) as pool:
        with held_clock():
            bound.launch(stream, map=map)
            closing = pool.submit(second.close)
            wait([closing], timeout=0.2)
            assert resource.statistics.current_count == 1
        closing.result()
    assert log.take()[:128] == bytes(map)
    with pytest.raises(ClosedError, match="closed"):
        bound.launch(stream, map=map)
    assert log.take() == bytes(256)
    graph.close()
    assert_nothing_left(resource, device)


def test_the_memory_of_a_captured_map_lives_as_long_as_the_graph(device, maps, stream):
    """It is the memory that the map was of then."""
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    first, second = resource.allocate(4096), LegacyPinnedMemoryResource().allocate(4096)
    map = maps.of(first)
    captured = bytes(map)
    log = Log(stream)
    graph = built(device, (maps.copy, log.memory, Parameter("at", 0), map))
    map.replace_address(view_of(second))
    first.close()
    del first
    graph.bind().launch(stream, at=1)
    assert log.take()[128:] == captured
    assert_kept(resource, device)
    graph.close()
    assert_nothing_left(resource, device)


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("is_owned", [False, True])
def test_a_map_of_foreign_memory_is_kept(device, maps, stream, held_clock, is_replaced, is_owned):
    """Of an array, or of a buffer with an owner: to the end of the launch, as an example to that of the graph."""
    memory = LegacyPinnedMemoryResource().allocate(4096)
    kept = Kept()
    gone = weakref.ref(kept)
    if is_owned:
        tensor = view_of(ftcuda.Buffer.from_handle(int(memory.handle), 4096, owner=kept))
    else:
        interface = view_of(memory).__cuda_array_interface__
        tensor = StridedMemoryView.from_cuda_array_interface(SimpleNamespace(__cuda_array_interface__=interface, kept=kept), -1)
    map = tensor.as_tensor_map((8, 8))
    wanted = bytes(map)
    log = Log(stream)
    graph = built(device, (maps.copy, log.memory, 0, Parameter("map", maps.of(memory) if is_replaced else map)))
    bound = graph.bind()
    del kept, tensor
    with held_clock():
        bound.launch(stream, **({"map": map} if is_replaced else {}))
        del map
        if not is_replaced:
            graph.close()
        ftcuda.memory.wait_for_deallocations()
        assert gone() is not None
    assert log.take()[:128] == wanted
    assert_goes(lambda: gone() is None, device)
    graph.close()


@pytest.mark.parametrize("kind", ["pinned", "device"])
def test_memory_at_an_address_that_another_buffer_had(device, kernels, stream, kind):
    """The bytes are the same, and nobody tells the driver of them again."""
    if kind == "device" and not device.features.memory_pools:
        pytest.skip("this driver profile has no memory pools")
    resource = LegacyPinnedMemoryResource() if kind == "pinned" else ftcuda.DeviceMemoryResource(device)
    example = resource.allocate(16)
    graph = built(device, (kernels.put, Parameter("where", example), Parameter("value", 0)))
    bound = graph.bind()
    seen = np.zeros(4, np.int32)
    addresses = []
    for _ in range(8):
        memory = resource.allocate(16)
        addresses.append(int(memory.handle))
        bound.launch(stream, where=memory, value=7)
        memory.copy_to(seen, stream=stream)
        stream.sync()
        assert seen[0] == 7
        memory.close()
        ftcuda.memory.wait_for_deallocations()
    assert kind == "device" or not IS_SIMULATED or len(set(addresses)) < len(addresses)  # a pool may have more room
    graph.close()


def test_parts_capture_parameters_too(device, kernels, words, stream):
    (first, x), (second, y) = words(), words()
    builder = device.create_graph_builder().begin_building()
    one, two = builder.split(2)
    launch(one, ONE, kernels.put, first, Parameter("value", 1))
    launch(two, ONE, kernels.put, second, Parameter("value", 1))
    one.join(one, two)
    graph = builder.end_building().complete()
    graph.bind().launch(stream, value=6)
    stream.sync()
    assert x[0] == y[0] == 6
    graph.close()
    builder.close()


def test_a_cycle_of_threads(device, kernels):
    """Launch, bind and close at once: what is launched has its value, what is not says that it is closed."""
    for _ in range(20):
        memory = LegacyPinnedMemoryResource().allocate(16)
        values = np.frombuffer(memory, np.int32)
        values[:] = 0
        graph = built(device, (kernels.put, Parameter("where", 8), Parameter("value", 0)), most=2)
        launched = [False] * 3

        def run(index, graph=graph, memory=memory, launched=launched):
            own = device.create_stream()
            try:
                graph.bind().launch(own, where=int(memory.handle) + 4 * index, value=index + 1)
                launched[index] = True
            except ClosedError:
                pass
            own.sync()
            own.close()

        threads = [threading.Thread(target=run, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        graph.close()
        for thread in threads:
            thread.join()
        assert values[:3].tolist() == [index + 1 if launched[index] else 0 for index in range(3)]
