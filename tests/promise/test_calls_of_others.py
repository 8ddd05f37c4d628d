"""Promise 8: `deallocate`, hooks and finalizers may take locks; they are not called amid code that may hold those."""

import gc
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from ftcuda import (
    Buffer,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LimitingMemoryResource,
    MemoryResource,
    StatisticsMemoryResource,
    launch,
)
from ftcuda.memory import hooks, wait_for_deallocations
from ftcuda.testing import together
from tests.conftest import expires, simulated_only
from tests.promise.test_collector import SECONDS, Cycle, elsewhere

pytestmark = pytest.mark.thread_unsafe(reason="waits for the deallocations of all threads")


class Locked(MemoryResource):
    """A pool of pinned memory whose methods take one lock, which cannot be taken twice by a thread."""

    is_device_accessible = is_host_accessible = True
    device_id = -1

    def __init__(self):
        self.lock = threading.Lock()
        self.upstream = LegacyPinnedMemoryResource()
        self.free, self.live, self.threads = [], {}, []

    def allocate(self, size, *, stream=None):
        with self.lock:
            block = self.free.pop() if self.free else self.upstream.allocate(size)
            self.live[block.handle] = block
            return Buffer.from_handle(block.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        with self.lock:
            self.free.append(self.live.pop(ptr))
            self.threads.append(threading.get_ident())


@pytest.mark.parametrize("way", ["cycle", "reference", "elsewhere"])
def test_deallocate_takes_a_lock_that_its_finder_holds(way):
    """Mutant: the collector, or whoever has the last reference, calls it right there, and waits for itself."""
    resource = Locked()
    buffers = [resource.allocate(64) for _ in range(4)]
    with resource.lock:
        if way == "cycle":
            Cycle(buffers)
        elif way == "elsewhere":
            thread = threading.Thread(target=buffers.clear)
            thread.start()
            thread.join()
        del buffers
        gc.collect()
        resource.upstream.allocate(64).close()  # a later call: it must not call what locks either
        assert resource.threads == []
    wait_for_deallocations()
    assert len(resource.free) == 4 and not resource.live
    assert threading.get_ident() not in resource.threads


def test_close_calls_deallocate_before_it_returns():
    """In the thread that closes. Mutant: all calls are left to the thread."""
    resource = Locked()
    with resource.allocate(64):
        pass
    resource.allocate(64).close()
    assert resource.threads == [threading.get_ident()] * 2


def test_close_in_a_collection_calls_nothing():
    """A finalizer that closes does so amid other code. Mutant: a collection in the locked region waits for itself."""
    resource = Locked()

    class Closer:
        def __del__(self):
            self.buffer.close()

    closer = Closer()
    closer.buffer = resource.allocate(64)
    Cycle(closer)
    del closer
    with resource.lock:
        gc.collect()
    wait_for_deallocations()
    assert len(resource.threads) == 1 and threading.get_ident() not in resource.threads


def test_deallocate_that_closes_another_buffer_comes_first():
    """Each is over before the next one begins, all before `close()` returns. Mutant: one inside the other."""
    seen = []

    class Chained(Locked):
        def deallocate(self, ptr, size, *, stream):
            with self.lock:
                seen.append(("begins", size))
                if self.next is not None:
                    self.next.allocate(size + 1).close()
                    self.next = None
                self.live.pop(ptr)
                seen.append(("ends", size))

    outer, inner = Chained(), Chained()
    outer.next, inner.next = inner, outer
    outer.allocate(1).close()
    assert seen == [(word, size) for size in (1, 2, 3) for word in ("begins", "ends")]


def test_hooks_on_frees_take_a_lock_that_their_finder_holds():
    resource, lock, freed = LegacyPinnedMemoryResource(), threading.Lock(), []

    def note(allocation):
        with lock:
            freed.append(allocation.size)

    with hooks.on_free(note, memory_resource=resource):
        buffer = resource.allocate(8)
        with lock:
            Cycle(resource.allocate(16))
            del buffer
            gc.collect()
        wait_for_deallocations()
    assert sorted(freed) == [8, 16]


@pytest.mark.parametrize("threads", [1, 4])
def test_hooks_hear_of_a_free_before_the_address_is_given_out_again(device, threads):
    """Mutant: memory that is freed while the hooks have still to be told; who keeps a table by address loses an entry."""
    allocated, faults = {}, []

    def begin(allocation):
        if allocated.setdefault(allocation.handle, allocation) is not allocation:
            faults.append(allocation)

    def end(allocation):
        if allocated.pop(allocation.handle, None) is None:
            faults.append(allocation)

    def work(index):
        stream = device.create_stream()
        for number in range(200):
            buffer = resource.allocate(64, stream=stream)
            if number % 2:
                buffer.close()
            if number % 50 == 0:
                gc.collect()
        stream.close()

    resource = device.memory_resource
    with hooks.on_allocate(begin, memory_resource=resource), hooks.on_free(end, memory_resource=resource):
        together(threads, work)
        wait_for_deallocations()
    assert faults == [] and not allocated


@pytest.mark.skipif(not sys._is_gil_enabled(), reason="without the GIL, CPython ends an object of this thread amid its code")
def test_finalizers_of_owners_are_not_called_amid_deallocate(pinned):
    """Mutant: a buffer that `deallocate` closes lets its owner go there, whose finalizer takes the same lock."""
    memory, _ = pinned([0] * 16)
    lock, gone = threading.Lock(), []

    class Owner:
        def __del__(self):
            with lock:
                gone.append(threading.get_ident())

    class Closing(Locked):
        def deallocate(self, ptr, size, *, stream):
            with lock:
                self.window.close()
            super().deallocate(ptr, size, stream=stream)

    resource = Closing()
    resource.window = Buffer.from_handle(memory.handle, 16, owner=Owner())
    resource.allocate(8).close()
    wait_for_deallocations()
    assert len(gone) == 1 and threading.get_ident() not in gone


def test_what_deallocate_makes_and_drops_is_given_back(device, stream, code):
    """Memory of the thread that calls, which work keeps until a later call of another thread. Mutant: without the GIL it
    waits for that thread, which waits for its next call."""

    class Launching(Locked):  # of attributes: CPython 3.13t never ends a function, nor what it refers to
        def deallocate(self, ptr, size, *, stream):
            launch(*self.launch, self.inner.allocate(64), 1)
            super().deallocate(ptr, size, stream=stream)

    resource, inner = Launching(), Locked()
    resource.inner, resource.launch = inner, (stream, LaunchConfig(grid=1, block=1), code.get_kernel("store"))
    for _ in range(50):
        resource.allocate(64)
    for _ in range(4):
        wait_for_deallocations()
        device.sync()
        stream.record().close()
    wait_for_deallocations()
    assert not resource.live and not inner.live


def test_nobody_waits_for_the_call_that_it_is_in():
    caught = []

    class Waiting(Locked):
        def deallocate(self, ptr, size, *, stream):
            with pytest.raises(RuntimeError, match="cannot wait for deallocations"):
                wait_for_deallocations()
            caught.append(size)
            super().deallocate(ptr, size, stream=stream)

    resource = Waiting()
    resource.allocate(8).close()
    Cycle(resource.allocate(16))
    gc.collect()
    wait_for_deallocations()
    assert caught == [8, 16]


@simulated_only
@pytest.mark.parametrize("way", ["dropped", "closed"])
def test_the_call_that_finds_work_done_calls_nothing(device, stream, code, held_clock, way):
    """Memory ends under its work, and a later call of ftcuda finds that the work is done, amid code that holds the lock.
    Mutant: that call gives the memory back itself."""
    resource = Locked()
    buffer = resource.allocate(64)
    with held_clock():
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("store"), buffer, 1)
        if way == "closed":
            buffer.close()
        del buffer
    with resource.lock:
        device.sync()
        stream.record().close()
    wait_for_deallocations()
    assert len(resource.threads) == 1 and threading.get_ident() not in resource.threads


def test_one_wait_is_enough_for_nested_memory(device, stream, code):
    """Each block holds the next one's memory, and work was submitted with all. Mutant: one wait for each of them."""

    class Inside(Locked):
        def allocate(self, size, *, stream=None):
            return Buffer.from_handle(self.outer.handle, size, mr=self, stream=stream)

        def deallocate(self, ptr, size, *, stream):
            self.threads.append(threading.get_ident())
            self.outer = None

    resources, block = [], LegacyPinnedMemoryResource().allocate(64)
    for _ in range(8):
        resource = Inside()
        resource.outer = block
        block = resource.allocate(64)
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("store"), block, 1)
        resources.append(resource)
    stream.sync()
    del block, resource
    wait_for_deallocations()
    assert [len(each.threads) for each in resources] == [1] * 8


def test_waiting_for_deallocations_has_a_limit():
    """Mutant: it does not count the call that is being made."""
    resource = Locked()
    buffer = resource.allocate(8)
    with resource.lock:
        del buffer
        expires(lambda: wait_for_deallocations(timeout=0.01), 0.01, "1 are to be done")
    wait_for_deallocations()
    assert len(resource.threads) == 1
    with pytest.raises(ValueError, match="timeout must be seconds"):
        wait_for_deallocations(timeout=-1)


@pytest.mark.parametrize("kind", [LimitingMemoryResource, StatisticsMemoryResource])
def test_what_was_dropped_makes_room_under_a_limit(kind):
    """Mutant: an allocation is refused although the memory is on its way back."""
    resource = Locked()
    around = kind(resource, 64) if kind is LimitingMemoryResource else kind(resource)
    for _ in range(50):
        around.allocate(64)
    wait_for_deallocations()
    assert around.statistics.current_bytes == 0 and around.statistics.total_count == 50


@pytest.mark.parametrize("drop", [lambda buffer: None, Cycle], ids=["reference", "cycle"])
def test_a_limit_waits_for_a_slow_deallocate(drop, when_waiting):
    """Mutant: an allocation is refused while another thread still gives memory back."""

    class Slow(Locked):
        def deallocate(self, ptr, size, *, stream):
            when_waiting()
            super().deallocate(ptr, size, stream=stream)

    around = LimitingMemoryResource(Slow(), 64)
    for _ in range(4):
        drop(around.allocate(64))
    gc.collect()
    wait_for_deallocations()
    assert around.statistics.total_count == 4 and around.statistics.current_bytes == 0


@simulated_only
def test_a_pool_with_a_lock_and_many_threads():
    """Threads allocate, hand on, drop and collect, all amid regions that hold the lock. Mutant: as above; or the thread
    cannot keep up, and nobody waits for it."""
    resource = Locked()
    most = []

    def make(number):
        buffer = resource.allocate(64)
        with resource.lock:
            most.append(len(resource.live))
            return {"buffer": buffer} if number % 3 else Cycle(buffer)

    def check(thing):
        with resource.lock:
            len(resource.live)

    assert elsewhere(make, check) > 20
    wait_for_deallocations()
    gc.collect()
    wait_for_deallocations()
    assert not resource.live and max(most) < 20_000


def test_who_drops_faster_than_the_thread_gives_back_waits():
    """Mutant: memory that waits for the thread without a bound."""
    resource, until = Locked(), time.monotonic() + min(SECONDS, 5)
    most = [0] * 4

    def drop(index):
        while time.monotonic() < until:
            for _ in range(500):
                resource.allocate(8)
            most[index] = max(most[index], len(resource.live))

    together(4, drop, timeout=SECONDS + 60)
    wait_for_deallocations()
    assert max(most) < 10_000 and not resource.live


def test_a_thread_that_could_not_start_is_started_later(run_python):
    """Mutant: who could not start it is taken for who did, and nothing is given back any more."""
    said = run_python(
        """
import _thread
from ftcuda import Buffer, Device, LegacyPinnedMemoryResource, MemoryResource
from ftcuda.memory import wait_for_deallocations

class Lent(MemoryResource):
    is_device_accessible = is_host_accessible = True
    device_id = -1
    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(memory.handle, size, mr=self)
    def deallocate(self, ptr, size, *, stream):
        given_back.append(size)

def refuse(function, arguments):
    raise RuntimeError("can't start new thread")

given_back, memory, stream = [], LegacyPinnedMemoryResource().allocate(64), Device(0).create_stream()
start, _thread.start_new_thread = _thread.start_new_thread, refuse
Lent().allocate(8)  # dropped
stream.sync()
print(given_back)
_thread.start_new_thread = start
stream.sync()
wait_for_deallocations()
print(given_back)
"""
    )
    assert said == "[]\n[8]\n"


def test_an_owner_of_nothing_else_goes_at_once(pinned):
    """As any object does whose last reference goes. Mutant: all that finalizers let go of is left to the thread."""
    memory, _ = pinned([0] * 16)
    gone = []

    class Owner:
        def __del__(self):
            gone.append(threading.get_ident())

    buffer = Buffer.from_handle(memory.handle, 16, owner=Owner())
    del buffer
    assert gone == [threading.get_ident()]
    holder = SimpleNamespace(buffer=Buffer.from_handle(memory.handle, 16, owner=Owner()))
    holder.buffer.close()
    assert len(gone) == 2
