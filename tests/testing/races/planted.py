"""Four races, as people write them, and the same code without."""

import queue
import threading
import time
from threading import Lock

import pytest


def names():
    """What a schedule has known ones for."""
    return (
        threading.Lock,
        threading.RLock,
        threading.Condition,
        threading.Thread.__init__,
        Lock,
        queue.SimpleQueue,
        time.sleep,
    )


NAMES = names()


class Counter:
    def __init__(self):
        self.n = 0
        self.lock = Lock()  # of a name taken when the module was imported

    def add(self):
        self.n += 1

    def add_safely(self):
        with self.lock:
            self.n += 1


@pytest.mark.parametrize("add", [pytest.param(Counter.add, id="lost update"), Counter.add_safely])
@pytest.mark.race
def test_counter(race, add):
    counter = Counter()
    race(lambda index: add(counter))
    assert counter.n == 2


class Cache:
    def __init__(self):
        self.made = {}
        self.lock = threading.RLock()

    def get(self, key):
        if key not in self.made:
            self.made[key] = object()
        return self.made[key]

    def get_safely(self, key):
        with self.lock, self.lock:
            return self.get(key)


@pytest.mark.race(threads=3)
@pytest.mark.parametrize("get", [Cache.get, Cache.get_safely])
def test_cache(race, get):
    cache = Cache()
    found = race(lambda index: get(cache, "key"))
    assert len(set(found)) == 1


@pytest.mark.race
@pytest.mark.parametrize("order", ["opposite", "same"])
def test_locks(race, order):
    one, other = threading.Lock(), threading.Lock()

    def work(index):
        first, second = (other, one) if index and order == "opposite" else (one, other)
        with first, second:
            pass

    race(work)


class Box:
    def __init__(self):
        self.full = False
        self.changed = threading.Condition()

    def put(self):
        with self.changed:
            self.full = True
            self.changed.notify()

    def wait(self):
        if not self.full:
            with self.changed:
                self.changed.wait()

    def wait_safely(self):
        with self.changed:
            self.changed.wait_for(lambda: self.full)


@pytest.mark.race
@pytest.mark.parametrize("wait", [Box.wait, Box.wait_safely])
def test_wake_up(race, wait):
    box = Box()
    race(lambda index: box.put() if index else wait(box))
    assert box.full


def test_names_are_what_they_were():
    """Also after the failures above. The tools of sys.monitoring are given back."""
    import sys

    assert all(one is other for one, other in zip(NAMES, names(), strict=True))
    assert all(sys.monitoring.get_tool(tool) != "ftcuda races" for tool in range(6))
    assert sys.monitoring.get_local_events(4, Counter.add.__code__) == 0 if sys.monitoring.get_tool(4) else True
