from contextlib import ExitStack

import numpy as np
import pytest

import ftcuda
from ftcuda import (
    ClosedError,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    NotSupportedError,
    OutOfMemoryError,
    PinnedMemoryResource,
    SynchronousMemoryResource,
    launch,
)
from ftcuda.testing import together
from tests.conftest import simulated_only

HOST_ACCESSIBLE = [PinnedMemoryResource, LegacyPinnedMemoryResource, ManagedMemoryResource]


@pytest.mark.parametrize("kind", HOST_ACCESSIBLE)
def test_kernels_and_host_share_memory(kind, device, stream, code):
    resource = kind()
    assert resource.is_host_accessible and resource.is_device_accessible
    buffer = resource.allocate(4, stream=stream)
    stream.sync()
    view = np.frombuffer(buffer, np.int32)
    view[0] = 41
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("increment"), buffer)
    stream.sync()
    assert view[0] == 42
    del view
    buffer.close()
    resource.close()


@pytest.mark.parametrize("kind", [DeviceMemoryResource, SynchronousMemoryResource])
def test_device_memory(kind, device, stream, pinned):
    if kind is DeviceMemoryResource and not device.features.memory_pools:
        with pytest.raises(NotSupportedError, match="SynchronousMemoryResource"):
            kind(device)
        return
    resource = kind(device)
    assert not resource.is_host_accessible and resource.device == device and resource.device_id == 0
    host, view = pinned(np.zeros(16, np.uint8))
    buffer = resource.allocate(16, stream=stream)
    assert buffer.memory_resource is resource
    buffer.fill(5, stream=stream)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    assert set(view) == {5}


def test_default_resource_follows_the_features(device):
    assert device.memory_resource.is_stream_ordered == device.features.memory_pools


@pytest.mark.thread_unsafe(reason="sets the device's resource, for all threads")
def test_another_resource_of_the_device(device, stream):
    before, plain = device.memory_resource, ftcuda.SynchronousMemoryResource(device)

    def swap_and_allocate(index):
        for turn in range(50):
            if index == 0:
                device.memory_resource = (before, plain)[turn % 2]
            with device.allocate(64, stream=stream) as buffer:
                assert buffer.memory_resource is plain or type(buffer.memory_resource) is type(before)

    try:
        device.memory_resource = plain
        assert device.memory_resource is plain and ftcuda.Device(0).allocate(1, stream=stream).memory_resource is plain
        for wrong in (None, DeviceMemoryResource, 0):
            with pytest.raises(TypeError, match="must be a MemoryResource"):
                device.memory_resource = wrong
        together(4, swap_and_allocate)
    finally:
        device.memory_resource = before


def test_pool_of_its_own(device, stream):
    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    pool = DeviceMemoryResource(device, {"max_size": 0})
    assert pool.is_handle_owned and pool.handle
    pool.attributes.release_threshold = 1 << 20
    assert pool.attributes.release_threshold == 1 << 20
    assert pool.attributes.reuse_allow_opportunistic is True
    buffer = pool.allocate(1000, stream=stream)
    assert pool.attributes.used_mem_current >= 1000
    pool.close()
    assert pool.is_closed
    with pytest.raises(ClosedError):
        pool.allocate(1, stream=stream)
    buffer.fill(0, stream=stream)
    buffer.close()
    with pytest.raises(AttributeError, match="cannot be set"):
        pool.attributes.used_mem_current = 0
    with pytest.raises(AttributeError, match="no attribute"):
        pool.attributes.colour


def test_abstract():
    with pytest.raises(TypeError, match="abstract"):
        MemoryResource()

    class Careless(MemoryResource):
        def __init__(self):
            pass

    with pytest.raises(NotImplementedError, match="does not define this itself"):
        Careless().allocate(4)


@simulated_only
@pytest.mark.thread_unsafe(reason="limits the memory of the whole device")
def test_out_of_memory_collects_and_tries_again(device, stream, limit_memory):
    limit_memory(1 << 20)
    cycle = [device.allocate(700_000, stream=stream)]
    cycle.append(cycle)
    del cycle  # unreachable, but not collected yet
    device.allocate(700_000, stream=stream).close()
    with pytest.raises(OutOfMemoryError, match="2097152 bytes.*are free") as caught:
        device.allocate(2 << 20, stream=stream)
    assert isinstance(caught.value, MemoryError) and caught.value.code == 2 and caught.value.entry_point


@simulated_only
@pytest.mark.thread_unsafe(reason="counts the tries of one allocation")
@pytest.mark.parametrize("refusals", [3, 40])
def test_an_allocation_is_tried_again_while_there_is_room(device, refusals):
    """As when other threads get the memory first and free it again; but not for ever.

    Mutant: an allocation that is tried again once.
    """
    from ftcuda.testing import faults, simulation

    here = simulation.this_thread()
    with ExitStack() as stack:
        refused = [stack.enter_context(faults.failing("cuMemAlloc_v2", 2, thread=here)) for _ in range(refusals)]
        if refusals == 3:
            SynchronousMemoryResource(device).allocate(512).close()
        else:
            with pytest.raises(OutOfMemoryError, match="are free"):
                SynchronousMemoryResource(device).allocate(512)
        tries = sum(fault.hits for fault in refused)
    assert tries == (3 if refusals == 3 else 17)


@simulated_only
@pytest.mark.thread_unsafe(reason="limits the memory of the whole device")
def test_out_of_memory_stays_what_it_is(device, stream, limit_memory):
    """Mutant: the error of a wait that another thread's capture refuses takes the place of the allocation's."""
    from ftcuda.testing import faults

    limit_memory(1 << 20)
    with faults.failing("cuCtxSynchronize", 900) as refused:
        with pytest.raises(OutOfMemoryError, match="are free"):
            device.allocate(2 << 20, stream=stream)
        assert refused.hits == 1


def test_allocation_from_many_threads(device):
    def work(index):
        stream = device.create_stream()
        for size in range(1, 40):
            buffer = device.allocate(1000 * size, stream=stream)
            buffer.fill(index, stream=stream)
            buffer.close()
        stream.close()

    together(8, work)
    device.sync()


def test_managed_memory_needs_its_feature(device):
    assert device.features.managed_memory
    assert ManagedMemoryResource().is_managed
    assert ftcuda.ManagedMemoryResourceOptions().preferred_location is None


def test_a_device_is_never_without_a_resource(device, stream):
    own = device.memory_resource
    assert device.memory_resource is own and ftcuda.Device(0).memory_resource is own
    with device.allocate(64, stream=stream):
        own.close()
        ftcuda.StatisticsMemoryResource(own).close()
        assert not own.is_closed and device.memory_resource is own
        device.allocate(64, stream=stream).close()
