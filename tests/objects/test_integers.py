"""Parameters that are integers: what only rounds to one is refused, and not cut."""

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from ftcuda import (
    Buffer,
    CachingMemoryResource,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    ExternalMemoryResource,
    HostDeviceBuffer,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LimitingMemoryResource,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    NotSupportedError,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    StatisticsMemoryResource,
    StreamOptions,
    StridedMemoryView,
    SynchronousMemoryResource,
)


class OnlyInt:
    """Has a value as an int, and is none."""

    def __int__(self):
        return 1

    def __repr__(self):
        return "OnlyInt()"


class Index:
    """An integer of another library."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def no_memory(size, stream):
    raise AssertionError("nobody allocates from it")


# What gives an integer to a parameter, and one that it takes.
PARAMETERS = {
    "Device": (lambda value, it: Device(value), 0),
    "allocate": (lambda value, it: it.plain.allocate(value).close(), 8),
    "HostDeviceBuffer": (lambda value, it: HostDeviceBuffer(value).close(), 8),
    "from_handle": (lambda value, it: Buffer.from_handle(0, value).close(), 0),
    "priority": (lambda value, it: it.device.create_stream(options=StreamOptions(priority=value)).close(), 0),
    "max_size": (lambda value, it: DeviceMemoryResource(it.device, DeviceMemoryResourceOptions(value)).close(), 0),
    "pinned max_size": (lambda value, it: PinnedMemoryResource(PinnedMemoryResourceOptions(value)).close(), 0),
    "location": (lambda value, it: ManagedMemoryResource(ManagedMemoryResourceOptions(value)).close(), 0),
    "trim": (lambda value, it: it.plain.trim(value), 0),
    "trim behind statistics": (lambda value, it: StatisticsMemoryResource(it.plain).trim(value), 0),
    "limit": (lambda value, it: LimitingMemoryResource(it.plain, value).close(), 8),
    "max_cached_size": (lambda value, it: CachingMemoryResource(max_cached_size=value).close(), 8),
    "device_id": (lambda value, it: ExternalMemoryResource(no_memory, device_id=value), 0),
    "release_threshold": (lambda value, it: setattr(it.pool().attributes, "release_threshold", value), 0),
    "attribute": (lambda value, it: setattr(it.kernel.attributes, "max_dynamic_shared_size_bytes", value), 64),
    "block_size": (lambda value, it: it.occupancy.max_active_blocks_per_multiprocessor(value, 0), 32),
    "shared memory": (lambda value, it: it.occupancy.max_active_blocks_per_multiprocessor(32, value), 64),
    "shared memory needed": (lambda value, it: it.occupancy.max_potential_block_size(value, 0), 64),
    "block_size_limit": (lambda value, it: it.occupancy.max_potential_block_size(0, value), 64),
    "blocks": (lambda value, it: it.occupancy.available_dynamic_shared_memory_per_block(value, 32), 1),
    "block_size for it": (lambda value, it: it.occupancy.available_dynamic_shared_memory_per_block(1, value), 32),
    "shmem_size": (lambda value, it: LaunchConfig(grid=1, block=1, shmem_size=value), 64),
    "Device.allocate": (lambda value, it: it.device.allocate(value, stream=it.stream).close(), 8),
    "argument": (lambda value, it: it.kernel.bind(LaunchConfig(grid=1, block=1), 0, 0.0, 0, 0).set(value, 1), 0),
}


@pytest.fixture
def it(device, stream, saxpy):
    def pool():
        if not device.features.memory_pools:
            raise NotSupportedError("no pools")
        return DeviceMemoryResource(device)

    plain = SynchronousMemoryResource(device)
    with LegacyPinnedMemoryResource().allocate(8) as memory:
        yield SimpleNamespace(
            device=device, stream=stream, plain=plain, pool=pool, kernel=saxpy, occupancy=saxpy.occupancy, memory=memory
        )


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("value", [0.5, 1.0, np.float32(1), Decimal(1), OnlyInt(), "1", 1j, True, False, np.True_], ids=repr)
def test_what_is_no_integer_is_refused(it, name, value):
    give, _ = PARAMETERS[name]
    try:
        with pytest.raises(TypeError):
            give(value, it)
    except NotSupportedError:
        pytest.skip("this driver has no such pool")


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, Index])
def test_integers_of_other_libraries_are_taken(it, name, kind):
    give, value = PARAMETERS[name]
    try:
        give(kind(value), it)
    except NotSupportedError:
        pytest.skip("this driver has no such pool")


@pytest.mark.parametrize("value", [True, False, np.True_], ids=repr)
def test_a_bool_is_no_number(it, value):
    """Of these a number of any kind is taken, or a pattern; a bool is a mistake in the order of the arguments."""
    for give in (
        lambda: it.memory.fill(value, stream=it.stream),
        lambda: Buffer.from_handle(value, 8),
        lambda: it.memory.__dlpack__(dl_device=(value, 0)),
    ):
        with pytest.raises(TypeError):
            give()
    for wrong in ({"shape": (value,)}, {"strides": (value,)}, {"itemsize": value}):
        with pytest.raises((TypeError, BufferError)):
            StridedMemoryView.from_buffer(it.memory, **{"shape": (2,), "itemsize": 1, **wrong})
    if isinstance(value, bool):
        for wait in (it.stream.sync, it.device.sync, it.device.create_event().sync):
            with pytest.raises(TypeError, match="timeout must be seconds or None, not bool"):
                wait(value)


def test_a_bool_is_a_value_for_a_parameter(it):
    """Of a kernel: as in C, it is the number 0 or 1; where that would be an address it is refused."""
    bound = it.kernel.bind(LaunchConfig(grid=1, block=1), True, False, 0, 0)
    assert bound.arguments[:2] == (1, 0.0)
    with pytest.raises(TypeError, match="cannot be a bool"):
        bound.set(2, True)
