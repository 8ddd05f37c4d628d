"""Words that streams write: the simulated driver and a GPU behave alike."""

import time
from ctypes import CFUNCTYPE, byref, c_int, c_size_t, c_uint, c_void_p
from threading import Event

import numpy as np
import pytest

from tests.conftest import simulated_only
from tests.contract.graphs import INVALID_VALUE, memory_of_the_device

pytestmark = pytest.mark.thread_unsafe(reason="calls the driver in the context that its fixture made current, in the main thread")
DEFAULT, NO_BARRIER = 0, 1
ATTRIBUTE = 122


@pytest.fixture(autouse=True)
def _needs(driver):
    driver.needs(11, 7)
    supported = c_int()
    driver.call("cuDeviceGetAttribute", byref(supported), c_int(ATTRIBUTE), c_int(0))
    if not supported.value:
        pytest.skip(reason="the device has no memory operations of streams")


def write(driver, stream, address, value, flags=DEFAULT):
    return driver.result("cuStreamWriteValue32_v2", stream, address, c_uint(value), c_uint(flags))


def sees(words, index, value):
    """Whether the host comes to see a value, which it looks for all the time."""
    end = time.monotonic() + 20
    while words[index] != value and time.monotonic() < end:
        pass
    return words[index] == value


def test_the_host_sees_the_word_and_what_comes_before(driver, pinned):
    size = 1 << 18
    stream = driver.stream()
    device = c_void_p()
    driver.call("cuMemAlloc_v2", byref(device), c_size_t(4 * size))
    source, values = pinned(np.arange(size, dtype=np.int32))
    target, copied = pinned(np.zeros(size, np.int32))
    flag, words = pinned(np.zeros(16, np.int32))
    driver.call("cuMemcpyAsync", device, c_void_p(int(source.handle)), c_size_t(4 * size), stream)
    driver.call("cuMemcpyAsync", c_void_p(int(target.handle)), device, c_size_t(4 * size), stream)
    assert write(driver, stream, c_void_p(int(flag.handle)), 77) == 0
    assert sees(words, 0, 77)
    assert (copied == values).all()
    driver.call("cuMemFree_v2", device)
    del values, copied, words


def test_the_word_comes_in_the_order_of_its_stream(driver, memory):
    stream, other, go_on = driver.stream(), driver.stream(), Event()
    device = memory_of_the_device(driver)  # a copy from the host to the host would block, as hardware does it
    wait = CFUNCTYPE(None, c_void_p)(lambda _: go_on.wait(60) and None)
    driver.call("cuLaunchHostFunc", stream, wait, None)
    assert write(driver, stream, memory.at(0), 1) == 0
    assert write(driver, stream, memory.at(0), 2) == 0
    driver.call("cuMemcpyAsync", device, memory.at(0), c_size_t(4), stream)
    assert write(driver, other, memory.at(1), 3) == 0
    driver.call("cuStreamSynchronize", other)
    assert list(memory.words[:2]) == [0, 3]
    go_on.set()
    driver.call("cuMemcpyAsync", memory.at(8), device, c_size_t(4), stream)
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[0] == memory.words[8] == 2
    driver.call("cuMemFree_v2", device)


def test_a_word_of_the_device(driver, memory):
    stream, device = driver.stream(), memory_of_the_device(driver)
    assert write(driver, stream, c_void_p(device.value + 4), 9) == 0
    driver.call("cuMemcpyAsync", memory.at(0), c_void_p(device.value + 4), c_size_t(4), stream)
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[0] == 9
    driver.call("cuMemFree_v2", device)


def test_what_is_refused(driver, memory):
    stream = driver.stream()
    assert write(driver, stream, c_void_p(memory.at(0).value + 2), 1) == INVALID_VALUE
    for flags in (NO_BARRIER, 8):  # the first is not there in the second version of the entry
        assert write(driver, stream, memory.at(0), 1, flags) == INVALID_VALUE
    driver.call("cuStreamSynchronize", stream)
    assert not memory.words.any()


def fill_by_two(driver, memory, looks):
    """One stream fills memory and writes a word; another one fills the same memory when the host has seen that, or before."""
    first, second, go_on, device = driver.stream(), driver.stream(), Event(), memory_of_the_device(driver)
    wait = CFUNCTYPE(None, c_void_p)(lambda _: go_on.wait(60) and None)
    driver.call("cuLaunchHostFunc", first, wait, None)
    driver.call("cuMemsetD32Async", device, c_uint(1), c_size_t(16), first)
    assert write(driver, first, memory.at(0), 5) == 0
    if looks:
        go_on.set()
        assert sees(memory.words, 0, 5)
    driver.call("cuMemsetD32Async", device, c_uint(2), c_size_t(16), second)
    go_on.set()
    driver.call("cuStreamSynchronize", second)
    driver.call("cuStreamSynchronize", first)
    driver.call("cuMemFree_v2", device)


@simulated_only
@pytest.mark.thread_unsafe(reason="watches the races of all threads")
def test_a_word_orders_streams_by_the_host_that_sees_it(driver, memory, violations):
    from ftcuda.testing import simulation

    with simulation.watched_races():
        fill_by_two(driver, memory, looks=True)
        assert violations() == []
        memory.words[0] = 0
        fill_by_two(driver, memory, looks=False)
    assert any("no order between streams" in text for text in violations())


@simulated_only
def test_memory_may_go_when_its_word_is_seen(driver, device):
    """The oracle for frees that come too early knows when the last use is over."""
    stream = driver.stream()
    for value in range(1, 100):
        pointer = c_void_p()
        driver.call("cuMemHostAlloc", byref(pointer), c_size_t(64), c_uint(0))
        words = np.frombuffer((c_int * 16).from_address(pointer.value), np.int32)
        assert write(driver, stream, pointer, value) == 0
        assert sees(words, 0, value)
        driver.call("cuMemFreeHost", pointer)
