"""Pickling: every public class either comes back in another process as it was, or says in words that it cannot go there."""

import copy
import inspect
import json
import multiprocessing
import pickle
from dataclasses import is_dataclass
from enum import Enum
from operator import methodcaller

import numpy as np
import pytest

import ftcuda
import ftcuda.graph
import ftcuda.memory
import ftcuda.typing
import ftcuda.utils
from ftcuda import Device, LaunchConfig, ObjectCode, Program, StridedMemoryView, launch
from ftcuda.memory import hooks
from tests.kernels import IS_SIMULATED, compile_code
from tests.objects.graphs import needs_definitions

SOURCE = '__device__ int cell = 3; template <class T> __global__ void store(T* p, T a) { *p = a + cell; }'


def public_classes():
    modules = (ftcuda, ftcuda.errors, ftcuda.memory, ftcuda.typing, ftcuda.utils)
    found = {getattr(module, name) for module in modules for name in module.__all__}
    return {each for each in found if inspect.isclass(each)}


class OfUser(ftcuda.MemoryResource):
    """Module level, so that only its being a memory resource is in the way."""

    def allocate(self, size, *, stream=None):
        raise NotImplementedError

    def close(self):
        """There is nothing to close."""


@pytest.fixture
def bound(device, stream, saxpy, pinned):
    """Objects that belong to this process, by public class; and some that are got from them."""
    plain = ftcuda.SynchronousMemoryResource(device)
    host, _ = pinned(np.zeros(16, np.int32))
    objects = [
        stream,
        ftcuda.PER_THREAD_DEFAULT_STREAM,
        stream.record(),
        host,
        saxpy,
        saxpy.bind(LaunchConfig(grid=1, block=1), 0, 1.0, host, host),
        saxpy.attributes,
        saxpy.occupancy,
        StridedMemoryView.from_buffer(host, (16,), dtype="i4"),
        ftcuda.HostDeviceBuffer(64, stream=stream),
        plain,
        ftcuda.LegacyPinnedMemoryResource(),
        ftcuda.CachingMemoryResource(plain),
        ftcuda.StagingPool(device, 64),
        ftcuda.StatisticsMemoryResource(plain),
        ftcuda.LimitingMemoryResource(plain, 1024),
        ftcuda.TrackingMemoryResource(plain),
        ftcuda.ExternalMemoryResource(lambda size, stream: plain.allocate(size)),
        ftcuda.ManagedMemoryResource(),
        ftcuda.PinnedMemoryResource(),
        OfUser(),
        stream.exclusive(),
    ]
    if device.features.memory_pools:
        pool = ftcuda.DeviceMemoryResource(device)
        objects += [pool, pool.attributes]
        if device.features.graphs:
            graphs = ftcuda.GraphMemoryResource(device)
            objects += [graphs, graphs.attributes]
    if device.features.tensor_maps:
        tensor = device.allocate(64 * 4, stream=stream)
        objects.append(StridedMemoryView.from_buffer(tensor, (64,), dtype="f4").as_tensor_map((16,)))
    with hooks.on_allocate(print, memory_resource=plain) as hook:
        objects.append(hook)
        yield objects
    for each in objects:
        if isinstance(each, ftcuda.HostDeviceBuffer | ftcuda.Event | ftcuda.MemoryResource):
            each.close()
    objects.clear()  # pytest keeps the list itself until after all teardowns


def travellers(device, code):
    """Objects that come back equal."""
    return [
        device,
        device.compute_capability,
        ftcuda.driver_info(),
        LaunchConfig(grid=(2, 3), block=32, cluster=None, shmem_size=16, is_cooperative=True),
        ftcuda.ProgramOptions(define_macro=("A", "1")),
        ftcuda.LinkerOptions(verbose=True),
        ftcuda.StreamOptions(priority=-1),
        ftcuda.EventOptions(timing_enabled=True),
        ftcuda.DeviceMemoryResourceOptions(max_size=5),
        ftcuda.PinnedMemoryResourceOptions(),
        ftcuda.ManagedMemoryResourceOptions(),
        ftcuda.TensorMapDescriptorOptions((1, 2), swizzle=ftcuda.TensorMapSwizzle.SWIZZLE_32B),
        ftcuda.CachingMemoryResource(ftcuda.SynchronousMemoryResource(device)).statistics,
        ftcuda.StagingPool(device, 64).statistics,
        ftcuda.StatisticsMemoryResource(ftcuda.SynchronousMemoryResource(device)).statistics,
        code.get_kernel("saxpy").arguments_info,
        code.get_kernel("saxpy").occupancy.max_potential_block_size(0, 0),
        ftcuda.memory.Allocation(1, 2, None, None),
        ftcuda.memory.LiveAllocation(None, 5, ()),
    ]


def test_every_public_class_is_one_or_the_other(bound, device, code):
    """Mutant: a class left out of process_bound.pyx says that its C field cannot be converted to a Python object."""
    stay = {kind for each in bound for kind in type(each).__mro__}
    go = {kind for each in travellers(device, code) for kind in type(each).__mro__}
    features = {
        ftcuda.DeviceMemoryResource: ("memory_pools",),
        ftcuda.GraphMemoryResource: ("memory_pools", "graphs"),
        ftcuda.TensorMapDescriptor: ("tensor_maps",),
    }
    lacking = {kind for kind, names in features.items() if not all(getattr(device.features, name) for name in names)}
    caches = {ftcuda.utils.ProgramCacheResource, ftcuda.utils.InMemoryProgramCache, ftcuda.utils.FileStreamProgramCache}
    for kind in public_classes() - stay - go - lacking - {Program, ObjectCode, ftcuda.Linker} - caches:
        assert issubclass(kind, BaseException | Enum) or getattr(kind, "_is_protocol", False), kind


def test_what_belongs_to_this_process_says_so(bound):
    for each in bound:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy, methodcaller("__reduce_ex__", 2)):
            with pytest.raises(TypeError, match="it belongs to this process; ") as caught:
                attempt(each)
            assert f"cannot pickle {each!r}: " in str(caught.value)


@needs_definitions
def test_what_is_of_a_graph_says_so(device, code):
    builder = device.create_graph_builder().begin_building()
    scratch = builder.scratch(64)
    launch(builder, LaunchConfig(grid=1, block=1), code.get_kernel("saxpy"), 0, 1.0, scratch, scratch)
    graph = builder.end_building().complete()
    definition = ftcuda.graph.GraphDefinition()
    node = definition.empty()
    made = definition.instantiate()
    objects = [builder, scratch, graph, definition, node, made, definition.callback(print), definition.join()]
    for each in objects:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="it belongs to this process; build the graph there"):
                attempt(each)
    for each in (graph, made, builder):
        each.close()


def test_no_object_takes_a_state(device, stream):
    """Fields are constant. Mutant: methods for pickling that Cython adds by itself, by which a device became another one."""
    for each in (device, stream, device.create_event(), device.memory_resource):
        with pytest.raises((AttributeError, TypeError)):
            each.__setstate__((7,))
    assert device.device_id == 0 and Device(0) is device


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_what_comes_back_is_equal(device, code, protocol):
    for each in travellers(device, code):
        again = pickle.loads(pickle.dumps(each, protocol))
        assert type(again) is type(each) and again == each
        if not isinstance(each, list) and not is_dataclass(each):
            assert hash(again) == hash(each)


def test_names_are_themselves():
    for module in (ftcuda, ftcuda.memory, ftcuda.typing, ftcuda.utils):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and not isinstance(thing, ftcuda.Stream):
                assert pickle.loads(pickle.dumps(thing)) is thing
    for kind in public_classes():
        for member in kind if issubclass(kind, Enum) else ():
            assert pickle.loads(pickle.dumps(member)) is member


def test_errors_come_back_with_what_they_say():
    for kind in (each for each in public_classes() if issubclass(each, BaseException)):
        error = kind("words", "log") if kind is ftcuda.NVRTCError else kind("words")
        if isinstance(error, ftcuda.CUDAError):
            error.code, error.name, error.entry_point = 700, "NAME", "cuEntry"
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == "words" and vars(again) == vars(error)


def use(code, values):
    """In another process: what the kernel of `code` stores, and what the objects say."""
    kernel = code.get_kernel("store<int>")
    host = ftcuda.LegacyPinnedMemoryResource().allocate(4)
    stream = Device(0).create_stream()
    launch(stream, LaunchConfig(grid=1, block=1), kernel, host, 4)
    stream.sync()
    return int(np.frombuffer(host, np.int32)[0]), code.symbol_mapping, code.code, str(code.code_type), values


def in_another_process(*arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(use, arguments)


def test_object_code_is_usable_in_another_process(device, code, tmp_path):
    """Of a file too, which need not be there any more."""
    made = compile_code(SOURCE, "store<int>")
    values = travellers(device, code)
    stored, mapping, image, kind, again = in_another_process(made, values)
    assert stored == 7 and mapping == made.symbol_mapping and image == made.code and kind == made.code_type
    assert again == values
    path = tmp_path / "code"
    path.write_bytes(made.code)
    load = ObjectCode.from_ptx if IS_SIMULATED else ObjectCode.from_cubin
    of_file = load(path, name="n", symbol_mapping=made.symbol_mapping)
    text = pickle.dumps(of_file)
    path.unlink()
    again = pickle.loads(text)
    assert again.code == str(path) == of_file.code and again.name == "n" and repr(again) == repr(of_file)
    assert again.get_kernel("store<int>").num_arguments == 2
    assert again.code_type is of_file.code_type and json.dumps(again.code_type) == json.dumps(made.code_type)


def test_a_cubin_keeps_what_the_compiler_told_of_its_parameters(device):
    """The types of parameters are in the PTX that was made on the way."""
    made = Program('extern "C" __global__ void k(float a, int b) {}', "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
    _, (image, signatures, path, *_) = made.__reduce__()
    assert image == made.code and b".entry k(" in signatures and path is None
    again = pickle.loads(pickle.dumps(made))
    assert again.__reduce__()[1] == made.__reduce__()[1]
