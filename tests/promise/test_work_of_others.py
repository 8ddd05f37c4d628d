"""What others submit to a stream by its handle, with a buffer's address, is done before its memory is anybody else's."""

import ctypes

import numpy as np
import pytest

import ftcuda
from ftcuda import CachingMemoryResource, DeviceMemoryResource, SynchronousMemoryResource
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="stops the simulated device's clock")]

WORDS = 256


def pool(device):
    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    return DeviceMemoryResource(device)


RESOURCES = {
    "pool": pool,
    "cache of a pool": lambda device: CachingMemoryResource(pool(device)),
    "cache of plain memory": lambda device: CachingMemoryResource(SynchronousMemoryResource(device)),
}


@pytest.fixture
def fill():
    """Fills a buffer by the driver itself, which nobody else knows of."""
    library = ctypes.CDLL(ftcuda.driver_info().path)

    def fill(stream, buffer, value):
        place = ctypes.c_ulonglong(buffer.handle)
        answer = library.cuMemsetD32Async(place, value, ctypes.c_size_t(WORDS), ctypes.c_void_p(stream.handle))
        assert answer == 0

    return fill


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in its stream alone", "in another stream too"])
@pytest.mark.parametrize("name", RESOURCES)
def test_a_close_comes_behind_work_of_others(name, elsewhere, device, fill, held_clock):
    """Whoever gets the memory next finds in it what it puts there, and the driver has nothing to report."""
    resource = RESOURCES[name](device)
    first, second, third = (device.create_stream() for _ in range(3))
    host = np.zeros(WORDS, np.int32)
    with held_clock():
        buffer = resource.allocate(4 * WORDS, stream=first)
        if elsewhere:
            event = first.record()
            second.wait(event)
            buffer.fill(b"\1\0\0\0", stream=second)
            first.wait(second.record())
        fill(first, buffer, 2)
        buffer.close()
        others = [resource.allocate(4 * WORDS, stream=third) for _ in range(3)]
        for other in others:
            other.fill(b"\3\0\0\0", stream=third)
    for other in others:
        other.copy_to(host, stream=third)
        third.sync()
        assert (host == 3).all()
    device.sync()
