"""Waits of event loops: a coroutine goes on when the work is done, and not before."""

import asyncio
import ctypes
import gc
import os
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as futures_wait

import pytest

import ftcuda
from ftcuda import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, ClosedError
from ftcuda.testing import faults, simulation, together
from tests.conftest import simulated_only
from tests.objects.graphs import needs_graphs
from tests.objects.waiting import Gates, cancelled

PATIENCE = 60  # seconds


def run(coroutine):
    async def limited():
        async with asyncio.timeout(PATIENCE):
            return await coroutine

    return asyncio.run(limited())


@pytest.fixture
def gates(code):
    gates = Gates(code)
    yield gates
    gates.close()


@pytest.fixture(params=["by a word", "by an event"])
def awaited_stream(device, request):
    """Of a stream whose handle others have the driver is asked by an event."""
    stream = device.create_stream()
    if request.param == "by an event":
        assert stream.handle
    yield stream
    stream.close()


def test_what_is_awaited_comes_of_it(stream):
    async def main():
        event = stream.record()
        return event, await stream, await event

    event, first, second = run(main())
    assert first is stream and second is event


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_the_result_is_there(awaited_stream, gates, kind):
    """Mutant: a word that is written without its barrier, or is taken for written."""
    buffer, view = gates.word()

    async def main():
        seen = []
        for value in range(1, 101):
            gates.store(awaited_stream, buffer, value)
            await (awaited_stream if kind == "stream" else awaited_stream.record())
            seen.append(int(view[0]))
        return seen

    assert run(main()) == list(range(1, 101))


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_it_waits_and_others_of_the_loop_go_on(awaited_stream, gates, kind):
    async def main():
        open_gate = gates.shut(awaited_stream)
        event = awaited_stream.record()
        awaited = awaited_stream if kind == "stream" else event
        task = asyncio.create_task(wait_for(awaited))
        turns = 0
        while turns < 200:
            turns += 1
            await asyncio.sleep(0)
            assert not task.done()
        open_gate()
        assert await task is awaited and event.is_done

    async def wait_for(awaited):
        return await awaited

    run(main())


def at_once(awaited):
    """Whether a wait for it is over when it begins; or None if it lets other tasks of the loop go on first."""
    waiting = awaited.__await__()
    try:
        first = next(waiting)
    except StopIteration as over:
        assert over.value is awaited
        return True
    return None if first is None else False


def test_a_wait_that_is_over_at_once(device):
    """It suspends nobody, but in one of eight. Mutants: one that always does, or never."""

    async def main():
        event = device.create_event()  # was never recorded, and so is done
        return [at_once(event) for _ in range(64)]

    seen = run(main())
    assert (seen.count(True), seen.count(None)) == (56, 8), seen


def test_waits_that_are_over_at_once_let_others_go_on(device):
    async def main():
        event, turns = device.create_event(), []

        async def other():
            while len(turns) < 4:
                turns.append(None)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(64):
            await event
        assert len(turns) == 4
        await task

    run(main())


def test_nobody_looks_himself_while_others_wait(device, stream, gates):
    """Mutant: a wait that holds up those which others of its loop have begun."""

    async def main():
        event = device.create_event()
        open_gate = gates.shut(stream)
        task = asyncio.ensure_future(stream)
        await asyncio.sleep(0)
        assert not any(at_once(event) for _ in range(32))
        open_gate()
        await task
        assert await event is event

    run(main())


def test_nobody_looks_himself_after_long_waits(device, stream, gates):
    """But now and then, so that short ones are found again. Mutants: who looks for ever, or never again."""

    async def main():
        event = device.create_event()
        for _ in range(4):
            open_gate = gates.shut(stream)
            task = asyncio.ensure_future(stream)
            await asyncio.sleep(0)
            assert not task.done()
            open_gate()
            await task
        found = []
        for _ in range(40):
            task = asyncio.ensure_future(event)
            await asyncio.sleep(0)
            found.append(task.done())
            await task
        return found

    found = run(main())
    assert not any(found[:11]) and found[12:].count(True) > 20, found


def test_work_submitted_later_does_not_matter(awaited_stream, gates):
    buffer, view = gates.word()

    async def main():
        first = gates.shut(awaited_stream)
        gates.store(awaited_stream, buffer, 1)
        task = asyncio.ensure_future(awaited_stream)
        await asyncio.sleep(0)  # the task has begun to wait
        second = gates.shut(awaited_stream)
        gates.store(awaited_stream, buffer, 2)
        first()
        await task
        assert view[0] == 1 and not awaited_stream.is_done
        second()
        await awaited_stream
        assert view[0] == 2

    run(main())


@pytest.mark.parametrize("shared", [False, True])
def test_the_record_that_is_there_is_awaited(device, gates, shared):
    """Mutant: to ask for the event itself, which is recorded again."""
    streams = [device.create_stream() for _ in range(3)]
    buffer, view = gates.word()
    event = device.create_event()
    if shared:
        assert event.handle

    async def main():
        first, second = gates.shut(streams[0]), gates.shut(streams[1])
        gates.store(streams[0], buffer, 5)
        streams[0].record(event)
        task = asyncio.ensure_future(event)
        await asyncio.sleep(0)
        streams[1].record(event)
        later = asyncio.ensure_future(event)
        first()
        await task
        assert view[0] == 5 and not event.is_done and not later.done()
        second()
        await later
        assert event.is_done

    run(main())
    for each in (*streams, event):
        each.close()


def test_an_event_that_was_never_recorded_is_done(device):
    event = device.create_event()
    assert run(awaiting(event)) is event


async def awaiting(what):
    return await what


@pytest.mark.thread_unsafe(reason="a thousand calls of a driver whose kernels spin: several threads' would starve them")
def test_many_at_once(device, gates):
    """More than there are words in a page of them; each comes once, those of one stream in any order."""
    streams = [device.create_stream() for _ in range(4)]

    async def main():
        open_gate = gates.shut(streams[0])
        for stream in streams[1:]:
            stream.wait(streams[0])
        count = [0] * 4

        async def one(index):
            await streams[index]
            count[index] += 1

        tasks = [asyncio.create_task(one(index % 4)) for index in range(1000)]
        await asyncio.sleep(0)
        assert count == [0] * 4
        open_gate()
        await asyncio.gather(*tasks)
        return count

    assert run(main()) == [250] * 4
    for stream in streams:
        stream.close()


def test_default_streams(gates):
    async def main():
        for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
            buffer, view = gates.word()
            gates.store(stream, buffer, 3)
            assert await stream is stream and view[0] == 3

    run(main())


def test_without_a_loop(stream):
    with pytest.raises(RuntimeError, match=r"cannot await <Stream 0x\w+>: neither an asyncio loop nor trio runs in this thread"):
        stream.__await__()


def test_closed_ones(device):
    stream, event = device.create_stream(), device.create_event()
    stream.close()
    event.close()
    with pytest.raises(ClosedError, match="cannot await <Stream 0x\\w+ closed>: the stream is closed"):
        run(awaiting(stream))
    with pytest.raises(ClosedError, match="cannot await <Event 0x\\w+ closed>: the event is closed"):
        run(awaiting(event))


def test_closed_while_it_is_awaited(device, gates):
    """The work runs on; mutant: a closed stream that ends its waits, or an event of which the record is forgotten."""
    stream, event = device.create_stream(), device.create_event()
    buffer, view = gates.word()

    async def main():
        open_gate = gates.shut(stream)
        gates.store(stream, buffer, 4)
        stream.record(event)
        tasks = [asyncio.ensure_future(each) for each in (stream, event)]
        await asyncio.sleep(0)
        stream.close()
        event.close()
        assert not any(task.done() for task in tasks)
        open_gate()
        assert await asyncio.gather(*tasks) == [stream, event]
        assert view[0] == 4

    run(main())


# ---- Waits that end before the work -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["cancel", "timeout", "wait_for"])
def test_a_wait_that_is_given_up(stream, gates, way):
    """What is over later is dropped, and disturbs nobody."""
    wrong = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        open_gate = gates.shut(stream)
        if way == "cancel":
            task = asyncio.ensure_future(stream)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert cancelled(task)
        else:
            with pytest.raises(TimeoutError):
                if way == "timeout":
                    async with asyncio.timeout(0.001):
                        await stream
                else:
                    await asyncio.wait_for(stream, 0.001)
        assert not stream.is_done
        open_gate()
        return await stream

    assert run(main()) is stream and wrong == []


def test_a_loop_that_ends_first(stream, gates):
    """What it waited for is over when it is closed, and the next loop finds nothing of that. Mutant: an eventfd that is
    closed while others write it.
    """
    for round_ in range(20):
        open_gate = gates.shut(stream)

        async def main():
            waiting = [asyncio.ensure_future(stream) for _ in range(10)]
            await asyncio.sleep(0)
            return len(waiting)

        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(main()) == 10
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        if round_ % 2:
            open_gate()
            loop.close()
        else:
            loop.close()
            open_gate()
        assert run(awaiting(stream)) is stream


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
def test_a_closed_loop_goes(stream, gates):
    """Nothing of ftcuda's keeps it, nor the future that it never came to."""
    open_gate = gates.shut(stream)
    loop = asyncio.new_event_loop()

    async def main():
        future = asyncio.ensure_future(stream)
        await asyncio.sleep(0)
        future.cancel()
        await asyncio.wait([future])

    loop.run_until_complete(main())
    gone = weakref.ref(loop)
    loop.close()
    del loop
    gc.collect()
    assert gone() is None
    open_gate()
    assert run(awaiting(stream)) is stream


def test_one_descriptor_for_a_loop(stream, gates):
    """However often it awaits; no program that is started inherits it."""

    async def main():
        loop = asyncio.get_running_loop()
        counts = []
        for _ in range(5):
            open_gate = gates.shut(stream)
            wait = asyncio.ensure_future(awaiting(stream))
            await asyncio.sleep(0)
            counts.append(len(loop._selector.get_map()))
            assert not any(os.get_inheritable(key.fd) for key in loop._selector.get_map().values())
            open_gate()
            await wait
        return counts

    counts = run(main())
    assert counts == [2, 2, 2, 2, 2]  # the other one is the loop's own


@pytest.mark.thread_unsafe(reason="asyncio knows what runs by its loop, of which there may be one that compares equal")
def test_loops_that_compare_equal(stream):
    """Each has its own descriptor."""

    class Equal(asyncio.SelectorEventLoop):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    loops = [Equal(), Equal()]
    for _ in range(2):
        for loop in loops:
            assert loop.run_until_complete(asyncio.wait_for(awaiting(stream), PATIENCE)) is stream
    for loop in loops:
        loop.close()


def test_a_signal_that_raises_loses_no_wait(stream, gates, monkeypatch):
    """Though its handler runs while what is over is given to those who wait."""
    from ftcuda._objects.stream import awaiting as module

    class Alarm(BaseException):
        pass

    calls, end, seen = [], module.settle, []

    def interrupted(future, error):
        calls.append(future)
        if len(calls) == 100:
            raise Alarm
        end(future, error)
        if len(calls) == 200:
            raise Alarm

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(type(context["exception"])))
        open_gate = gates.shut(stream)
        waits = [asyncio.ensure_future(awaiting(stream)) for _ in range(300)]
        await asyncio.sleep(0)
        monkeypatch.setattr(module, "settle", interrupted)
        open_gate()
        return await asyncio.gather(*waits)

    assert set(run(main())) == {stream} and seen == [Alarm, Alarm]


def test_a_child_is_refused(run_python):
    run_python(
        "import asyncio, os\n"
        "import ftcuda\n"
        "stream = ftcuda.Device(0).create_stream()\n"
        "async def main():\n"
        "    await stream\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try:\n"
        "            stream.__await__()\n"
        "        except ftcuda.ForkedProcessError:\n"
        "            os._exit(7)\n"
        "        os._exit(1)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "asyncio.run(main())\n"
    )


def test_a_loop_that_goes_on_later(stream, gates):
    """Between two runs of it the work ends."""
    loop = asyncio.new_event_loop()
    open_gate = gates.shut(stream)

    async def begin():
        task = asyncio.ensure_future(stream)
        await asyncio.sleep(0)
        return task

    task = loop.run_until_complete(begin())
    open_gate()
    stream.sync()
    assert not task.done()
    assert loop.run_until_complete(asyncio.wait_for(task, PATIENCE)) is stream
    loop.close()


# ---- Loops and threads ------------------------------------------------------------------------------------------------


def test_many_loops_in_many_threads(device, stream, gates):
    """Each finds its own results, though they share a stream. Mutants: an inbox that loses what comes while it is
    emptied, a wake-up that is lost.
    """
    own = [device.create_stream() for _ in range(4)]

    def work(index):
        buffer, view = gates.word()

        async def main():
            for value in range(1, 101):
                gates.store(own[index], buffer, value)
                await asyncio.gather(own[index], stream)
                assert view[0] == value

        run(main())

    together(4, work)
    for each in own:
        each.close()


def test_another_thread_ends_the_work_of_a_sleeping_loop(stream, gates):
    with ThreadPoolExecutor(1) as pool:

        async def main():
            for _ in range(50):
                open_gate = gates.shut(stream)
                future = pool.submit(open_gate)
                await stream
                future.result()

        run(main())


class WithoutReaders(asyncio.SelectorEventLoop):
    def add_reader(self, *_):
        raise NotImplementedError


@pytest.fixture
def without_readers():
    """The kind of loop that Windows has. Its own pipe needs a reader."""
    loop = asyncio.SelectorEventLoop()
    loop.__class__ = WithoutReaders
    yield loop
    if not loop.is_closed():
        loop.close()


@pytest.mark.thread_unsafe(reason="one loop, which one thread runs")
def test_a_loop_that_takes_no_readers(stream, gates, without_readers):
    buffer, view = gates.word()

    async def main():
        for value in range(1, 21):
            gates.store(stream, buffer, value)
            assert await stream is stream and view[0] == value
        task = asyncio.ensure_future(stream)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    without_readers.run_until_complete(asyncio.wait_for(main(), PATIENCE))


@pytest.mark.thread_unsafe(reason="changes sys.unraisablehook")
def test_a_loop_without_readers_that_is_closed_first(stream, gates, without_readers, monkeypatch):
    wrong = []
    monkeypatch.setattr(sys, "unraisablehook", wrong.append)
    open_gate = gates.shut(stream)

    async def main():
        task = asyncio.ensure_future(stream)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    without_readers.run_until_complete(main())
    without_readers.close()
    open_gate()
    later = threading.Event()
    stream.when_done(later.set)  # on the same thread, after what is over
    assert later.wait(PATIENCE) and wrong == []


# ---- Captures -------------------------------------------------------------------------------------------------------


@needs_graphs
def test_a_builders_stream_is_refused(device):
    builder = device.create_graph_builder().begin_building()
    stream = device.create_stream(builder)
    with pytest.raises(RuntimeError, match="it is a graph builder's: what is captured does not run, so that nobody waits for it"):
        run(awaiting(stream))
    with pytest.raises(RuntimeError, match="it is a graph builder's"):
        stream.when_done(print)
    builder.end_building()
    builder.close()


@pytest.fixture
def driver():
    library = ctypes.CDLL(ftcuda.driver_info().path)

    def call(name, *arguments):
        assert getattr(library, name)(*arguments) == 0, name

    return call


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.thread_unsafe(reason="captures in the mode of all threads")
def test_captures_of_others_are_refused_and_go_on(device, driver, gates, mode):
    """Mutant: to write a word, or to ask for the stream, in a capture."""
    captured, other, asked = (device.create_stream() for _ in range(3))
    handle = ctypes.c_void_p(captured.handle)
    assert asked.handle  # it is asked by events
    event = other.record()

    async def main():
        doors = [gates.shut(other), gates.shut(asked)]
        other.record(event)
        driver("cuStreamBeginCapture_v2", handle, mode)
        with pytest.raises(ftcuda.CUDAError, match="a stream that takes part is being captured"):
            await captured
        with pytest.raises(ftcuda.CUDAError, match="a stream that takes part is being captured"):
            captured.when_done(print)
        tasks = [asyncio.ensure_future(each) for each in (other, asked, event)]
        await asyncio.wait(tasks, timeout=0.02)  # long enough for contexts to be asked for
        assert not any(task.done() for task in tasks)
        for open_door in doors:
            open_door()
        await asyncio.gather(*tasks)
        graph = ctypes.c_void_p()
        driver("cuStreamEndCapture", handle, ctypes.byref(graph))
        assert graph.value
        driver("cuGraphDestroy", graph)
        return await captured

    assert run(main()) is captured
    for each in (captured, other, asked):
        each.close()


# ---- Failures -------------------------------------------------------------------------------------------------------

ARMED = {
    "by a word": ("cuStreamWriteValue32_v2", False), "by an event": ("cuEventRecord", True),
    "an event": ("cuStreamWaitEvent", None),
}  # fmt: skip


def refusal(what):
    """Awaits it in a loop of its own. Why that is refused; None if it is not."""

    async def main():
        await asyncio.wait_for(awaiting(what), PATIENCE)

    try:
        asyncio.run(main())
    except ftcuda.CUDAError as error:
        return str(error)
    return None


@simulated_only
@pytest.mark.thread_unsafe(reason="plans faults for all threads, and captures")
def test_an_event_is_captured_amid_a_wait_that_begins(device, driver, gates):
    """The stream that waits for it is lost to the capture: no other wait gets it, and the capture is whole."""
    stream, captured = device.create_stream(), device.create_stream()
    open_gate = gates.shut(stream)
    event, pending = stream.record(), stream.record()
    handle, graph = ctypes.c_void_p(captured.handle), ctypes.c_void_p()
    with ThreadPoolExecutor(1) as pool:
        with faults.holding("cuStreamWaitEvent") as fault:
            wait = pool.submit(refusal, event)
            fault.wait()
            driver("cuStreamBeginCapture_v2", handle, 2)
            driver("cuEventRecord", ctypes.c_void_p(event.handle), handle)
            fault.release()
            assert "captured" in wait.result(PATIENCE)
        with faults.holding("cuStreamWaitEvent") as fault:
            wait = pool.submit(refusal, pending)
            fault.wait()
            fault.release()
            open_gate()
            assert wait.result(PATIENCE) is None
    driver("cuStreamEndCapture", handle, ctypes.byref(graph))
    driver("cuGraphDestroy", graph)


@simulated_only
@pytest.mark.parametrize("way", ["by a word", "by an event"])
@pytest.mark.thread_unsafe(reason="plans faults for all threads, and captures")
def test_a_handle_and_a_capture_amid_a_wait_that_begins(device, driver, way):
    """The wait comes before the capture, or is refused; the capture is whole."""
    if way == "by a word" and simulation_lacks_words(device):
        pytest.skip(reason="this driver writes no words")
    stream = device.create_stream()
    if way == "by an event":
        assert stream.handle
    entry = "cuStreamWriteValue32_v2" if way == "by a word" else "cuEventRecord"

    def capture():
        handle = stream.handle
        driver("cuStreamBeginCapture_v2", ctypes.c_void_p(handle), 2)
        return handle

    with faults.holding(entry) as fault, ThreadPoolExecutor(2) as pool:
        wait = pool.submit(refusal, stream)
        fault.wait()
        captured = pool.submit(capture)
        done_first = bool(futures_wait([captured], timeout=PATIENCE if way == "by an event" else 0.2).done)
        fault.release()
        handle = captured.result(PATIENCE)
        answer = wait.result(PATIENCE)
    device.create_stream().wait(device.create_stream())  # by an event that the capture does not have
    graph = ctypes.c_void_p()
    driver("cuStreamEndCapture", ctypes.c_void_p(handle), ctypes.byref(graph))
    assert done_first == (way == "by an event")
    assert answer is None or "captured" in answer
    count = ctypes.c_size_t(9)
    driver("cuGraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value == 0
    driver("cuGraphDestroy", graph)
    stream.close()


@simulated_only
@pytest.mark.parametrize("way", ARMED)
@pytest.mark.thread_unsafe(reason="plans faults for all threads")
def test_what_cannot_be_armed_says_so(device, gates, way):
    """And leaves nothing behind: the next wait is as any."""
    entry, shared = ARMED[way]
    if entry.startswith("cuStreamWriteValue") and simulation_lacks_words(device):
        pytest.skip(reason="this driver writes no words")
    stream = device.create_stream()
    if shared:
        assert stream.handle
    open_gate = gates.shut(stream)
    awaited = stream.record() if shared is None else stream

    async def main():
        with faults.failing(entry, 2), pytest.raises(ftcuda.OutOfMemoryError, match="cannot await"):
            await awaited
        task = asyncio.ensure_future(awaited)
        await asyncio.sleep(0)
        assert not task.done()
        open_gate()
        return await task

    assert run(main()) is awaited
    stream.close()


def simulation_lacks_words(device):
    return not device.features.stream_values


@simulated_only
@pytest.mark.parametrize("kind", ["stream", "event"])
@pytest.mark.thread_unsafe(reason="plans faults for all threads, and counts what the driver has")
def test_waits_that_cannot_begin_lose_nothing(device, gates, kind):
    """Neither words, of which a page has 256, nor streams in which events are waited for; and they keep nothing."""
    if simulation_lacks_words(device):
        pytest.skip(reason="this driver writes no words")
    stream = device.create_stream()
    open_gate = gates.shut(stream)
    event = stream.record()
    before = simulation.live()

    async def main():
        await asyncio.sleep(0)
        for _ in range(256 * (before["pinned_allocation"] + 2)):  # more words than are idle, and two pages
            subject = stream if kind == "stream" else event
            with faults.failing("cuStreamWriteValue32_v2", 999), pytest.raises(ftcuda.CUDAError, match="UNKNOWN"):
                await subject

    async def lost():
        forgotten = device.create_stream()
        with faults.failing("cuStreamWriteValue32_v2", 999), pytest.raises(ftcuda.CUDAError):
            await forgotten
        gone = weakref.ref(forgotten)
        del forgotten
        gc.collect()
        assert gone() is None

    run(main())
    after = simulation.live()
    assert after["pinned_allocation"] <= before["pinned_allocation"] + 1
    assert after["stream"] <= before["stream"] + 1
    run(lost())
    open_gate()
    stream.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="counts what the driver has")
def test_few_streams_are_kept_for_events(device, gates):
    stream = device.create_stream()
    before = simulation.live()["stream"]
    open_gate = gates.shut(stream)
    events = [stream.record() for _ in range(20)]

    async def main():
        waits = [asyncio.ensure_future(awaiting(event)) for event in events]
        await asyncio.sleep(0)
        assert simulation.live()["stream"] >= before + 16  # four were idle, perhaps
        open_gate()
        await asyncio.gather(*waits)

    run(main())
    assert simulation.live()["stream"] <= before + 4
    stream.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="watches the races of all threads")
def test_whoever_awaited_comes_after_the_work(device, code):
    """To the oracle of races: what is submitted after an await is ordered behind what was awaited, by the barrier of its word."""
    streams = [device.create_stream() for _ in range(2)]
    memory = device.allocate(64, stream=streams[0])

    async def main():
        with simulation.watched_races():
            for turn in range(20):
                memory.fill(turn, stream=streams[turn % 2])
                await streams[turn % 2]

    run(main())
    memory.close()
    for each in streams:
        each.close()


# ---- trio ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def trio():
    return pytest.importorskip("trio", reason="no trio")


def test_a_task_of_trio(trio, awaited_stream, gates):
    buffer, view = gates.word()

    async def main():
        with trio.fail_after(PATIENCE):
            for value in range(1, 21):
                gates.store(awaited_stream, buffer, value)
                assert await awaited_stream is awaited_stream and view[0] == value
            event = awaited_stream.record()
            assert await event is event

    trio.run(main)


def test_a_task_of_trio_that_is_cancelled(trio, stream, gates):
    async def main():
        open_gate = gates.shut(stream)
        with trio.move_on_after(0.001) as scope:
            await stream
        assert scope.cancelled_caught and not stream.is_done
        open_gate()
        with trio.fail_after(PATIENCE):
            await stream

    trio.run(main)


def test_a_run_of_trio_that_ends_first(trio, stream, gates):
    async def main():
        with trio.move_on_after(0.001):
            await stream

    open_gate = gates.shut(stream)
    trio.run(main)
    open_gate()
    later = threading.Event()
    stream.when_done(later.set)
    assert later.wait(PATIENCE)


def test_a_task_of_trio_that_waits_for_another_ones_wait(trio, stream, gates):
    """Who waits is the task that iterates, not the one that began."""

    async def main():
        open_gate = gates.shut(stream)
        begun = stream.__await__()

        class Wait:
            def __await__(self):
                return begun

        async def other():
            return await Wait()

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(other)
                await trio.sleep(0.01)
                open_gate()

    trio.run(main)
