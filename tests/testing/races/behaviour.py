"""Races whose outcome is known, whatever the schedule."""

import queue
import random
import threading
import time
from time import sleep

import pytest


@pytest.fixture
def shared(request):
    """Set up once for all rounds."""
    made = []
    yield made
    assert len(made) == 5


@pytest.mark.race(rounds=5, threads=3)
def test_rounds(race, shared):
    shared.append(race.seed)
    assert shared == list(range(1, len(shared) + 1))
    assert race.threads == 3
    numbers = race(lambda index, add: (index + add, race.random_of(index).random()), 10)
    assert [number for number, _ in numbers] == [10, 11, 12]
    assert len({each for _, each in numbers}) == 3 and race.random_of(1).random() == numbers[1][1]
    assert race.random.random() == random.Random(race.seed).random()


BODIES = []


@pytest.mark.race(rounds=4, threads=3)
def test_without_the_fixture():
    BODIES.append(threading.current_thread().name)


def test_all_threads_ran_the_body():
    assert sorted(BODIES) == sorted(["together-0", "together-1", "together-2"] * 4)


@pytest.mark.race(rounds=30)
def test_queues(race):
    for kind in (queue.Queue, queue.SimpleQueue):
        channel = kind()
        assert race(lambda index, channel=channel: channel.put(7) if index else channel.get()) == [7, None]


@pytest.mark.race(rounds=10)
def test_limits(race):
    """An hour each, of simulated time, which passes in the order of the limits."""
    begun = time.perf_counter()
    lock, event, condition, channel = threading.Lock(), threading.Event(), threading.Condition(), queue.Queue()
    passed = []

    def work(index):
        before = time.monotonic()
        if index:
            sleep(3600)
            passed.append("slept")
            with lock:
                sleep(7200)
            return
        assert not event.wait(1800)
        passed.append("waited")
        with condition:
            assert not condition.wait_for(lambda: False, timeout=3600)
        with pytest.raises(queue.Empty):
            channel.get(timeout=0.5)
        assert not lock.acquire(timeout=60)
        assert lock.acquire(timeout=7200)
        lock.release()
        assert time.monotonic() - before == pytest.approx(3600 + 7200)

    race(work)
    assert passed == ["waited", "slept"]
    assert time.perf_counter() - begun < 60


@pytest.mark.race(rounds=10, threads=3)
def test_others(race):
    """Barriers and semaphores; a thread that a thread starts."""
    barrier, places = threading.Barrier(3), threading.BoundedSemaphore(2)
    inside, started = [], []

    def work(index):
        place = barrier.wait()
        with places:
            inside.append(index)
            assert len(inside) <= 2
            inside.remove(index)
        other = threading.Thread(target=started.append, args=(index,))
        other.start()
        other.join()
        assert index in started
        return place

    assert sorted(race(work)) == [0, 1, 2]


@pytest.mark.race(rounds=3)
def test_skips(race):
    race(lambda index: pytest.skip("not here") if index else None)


@pytest.mark.race
def test_xfails(race):
    race(lambda index: pytest.xfail("not yet"))


@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
@pytest.mark.race
def test_marked_xfail(race):
    race(lambda index: 1 / index)


def divide(index):
    return 1 / index


@pytest.mark.race
def test_one_fails(race):
    race(divide)


@pytest.mark.race
def test_one_fails_and_one_skips(race):
    race(lambda index: pytest.skip("not here") if index else divide(index))


@pytest.mark.race
def test_all_fail(race):
    race(lambda index: divide(0))


@pytest.mark.race
def test_says_no_more(race):
    pytest.fail("said in one line", pytrace=False)


@pytest.mark.race(schedule="free", timeout=0.5)
def test_hangs(race):
    one, other, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def work(index):
        first, second = (one, other) if index else (other, one)
        with first:
            both.wait()
            with second:
                pass

    race(work)


@pytest.mark.race(schedule="pct:3")
def test_knows_its_schedule(race):
    race(lambda index: None)
    assert race.seed < 4


def test_not_marked(race):
    pass
