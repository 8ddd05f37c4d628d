"""Exclusive sections: who is in one, who ends it, and what becomes of one that nobody ends."""

import asyncio
import gc
import threading
import weakref
from contextlib import ExitStack, contextmanager, suppress

import numpy as np
import pytest

from ftcuda import ClosedError, LaunchConfig, SectionAbandonedError, launch
from ftcuda.testing import together

ONE = LaunchConfig(grid=1, block=1)
pytestmark = pytest.mark.thread_unsafe(reason="a test's threads would be in each other's sections of the one stream")


def in_another_thread(function):
    """What `function` returned in a thread that has ended."""
    return together(1, lambda index: function())[0]


def told(stream):
    with pytest.raises(SectionAbandonedError):
        stream.record()


@pytest.fixture
def append(stream, code, pinned):
    """Appends a number to a log on the device; returns the log if none is given."""
    log = list(pinned(np.zeros(64, np.int32)))  # emptied at the end: pytest keeps the fixture
    kernel = code.get_kernel("append")

    def append(number=None):
        buffer, entries = log
        if number is None:
            stream.sync()
            return list(entries[1 : 1 + entries[0]])
        return launch(stream, ONE, kernel, buffer, number)

    yield append
    log.clear()


def test_reentrant(stream):
    section = stream.exclusive()
    with section, section, stream.exclusive():
        stream.record()
    with pytest.raises(RuntimeError, match="was not begun, or has ended"):
        section.__exit__(None, None, None)
    assert in_another_thread(stream.record).is_closed is False


def test_a_thread_that_ends_inside_gives_the_section_up(stream, append):
    """Mutant: without the list of a thread's sections this waits for ever."""
    sections = []

    def die(index):
        sections.append(stream.exclusive())
        sections[0].__enter__()
        append(1)

    together(1, die)
    with pytest.raises(SectionAbandonedError, match=r"cannot launch <Kernel append> .* ended, or lost the section"):
        append(2)
    append(3)
    with stream.exclusive():
        append(4)
    assert append() == [1, 3, 4]  # what was told, was not submitted
    with pytest.raises(RuntimeError, match="has ended"):
        sections[0].__exit__(None, None, None)
    append(5)
    assert append() == [1, 3, 4, 5]


def test_threads_that_wait_for_a_dead_one_are_woken(stream):
    """One of them is told, the others go on. Mutant: abandon_exclusive() wakes nobody."""
    sections, inside = [], threading.Event()

    def act(index):
        if index == 0:
            sections.append(stream.exclusive())
            sections[0].__enter__()
            inside.set()
            return None
        inside.wait()
        try:
            if index % 2:
                with stream.exclusive():
                    stream.record()
            else:
                stream.record()
        except SectionAbandonedError:
            return "told"
        return "done"

    assert sorted(together(5, act)[1:]) == ["done", "done", "done", "told"]


def test_a_dead_thread_that_was_inside_twice(device, stream):
    other = device.create_stream()
    kept = []

    def die(index):
        for which in (stream, stream, other):
            kept.append(which.exclusive())
            kept[-1].__enter__()

    together(1, die)
    for which in (other, stream):
        with pytest.raises(SectionAbandonedError), which.exclusive():
            pass
        which.record()
    other.close()


def test_a_section_of_a_dead_thread_may_still_be_ended(stream):
    section = stream.exclusive()
    in_another_thread(section.__enter__)
    section.__exit__(None, None, None)  # in time: nobody has to be told
    stream.record()


def test_a_section_that_is_lost_is_given_up(stream):
    """Mutant: with a destructor that does nothing the other thread waits for ever."""
    stream.exclusive().__enter__()
    gc.collect()

    def submit():
        with pytest.raises(SectionAbandonedError):
            stream.record()
        stream.record()

    in_another_thread(submit)
    stream.record()


def test_a_lost_level_leaves_the_others(stream, append):
    """Mutant: with drop_exclusive() giving all levels up the other thread gets in between."""
    lost, waiting = threading.Event(), threading.Event()

    def act(index):
        if index == 0:
            with stream.exclusive():
                stream.exclusive().__enter__()
                gc.collect()
                lost.set()
                waiting.wait()
                append(1)
                append(2)
        else:
            lost.wait()
            waiting.set()
            append(3)

    together(2, act)
    assert append() == [1, 2, 3]


@contextmanager
def sectioned(stream):
    with stream.exclusive():
        yield


def test_a_generator_that_another_thread_finishes(stream):
    """Mutant: an end that compares threads leaves the section held."""

    def numbers():
        with stream.exclusive():
            yield 1
            yield 2

    generator = numbers()
    assert next(generator) == 1
    in_another_thread(generator.close)
    in_another_thread(stream.record)
    stream.record()


def test_an_exit_stack_that_is_handed_over(stream):
    stack = ExitStack()
    stack.enter_context(sectioned(stream))
    stack.enter_context(stream.exclusive())
    in_another_thread(stack.close)
    in_another_thread(stream.record)
    with stream.exclusive():
        stream.record()


def test_the_thread_whose_section_was_ended_waits_as_others_do(stream, append):
    """Mutant: a thread that trusts its own token submits into the next section."""
    section, ended, begun, waiting = stream.exclusive(), threading.Event(), threading.Event(), threading.Event()

    def act(index):
        if index == 0:
            section.__enter__()
            ended.set()
            begun.wait()
            waiting.set()
            append(3)  # after what the other one appends in its section
        else:
            ended.wait()
            section.__exit__(None, None, None)
            with stream.exclusive():
                append(1)
                begun.set()
                waiting.wait()
                append(2)

    together(2, act)
    assert append() == [1, 2, 3]


def test_close_inside(stream):
    with stream.exclusive():
        stream.close()
        with pytest.raises(ClosedError, match="the stream is closed"):
            stream.record()
    with pytest.raises(ClosedError, match="the stream is closed"), stream.exclusive():
        pass


def test_a_thread_that_closes_and_dies_inside(device):
    stream, kept = device.create_stream(), []

    def die(index):
        kept.append(stream.exclusive())
        kept[0].__enter__()
        stream.close()

    together(1, die)
    with pytest.raises(ClosedError):
        stream.record()  # the fixture sees that the handle is gone


def test_tasks_of_one_thread(stream, append):
    """A task that submits into the section of another is told, and waits for nothing. Mutant: sections that know no tasks."""

    async def owner(inside, done):
        with stream.exclusive():
            append(1)
            inside.set()
            await done.wait()
            append(2)
            with stream.exclusive():
                append(3)

    async def intruder(inside, done):
        await inside.wait()
        for act in (lambda: append(100), stream.exclusive().__enter__, stream.record, lambda: stream.wait(stream)):
            with pytest.raises(RuntimeError, match="another asyncio task of this thread is in the stream's exclusive section"):
                act()
        stream.sync()
        assert stream.is_done
        done.set()

    async def both():
        inside, done = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(owner(inside, done))
            group.create_task(intruder(inside, done))

    asyncio.run(both())
    append(4)
    assert append() == [1, 2, 3, 4]


def test_other_threads_wait_for_a_task(stream, append):
    async def owner():
        with stream.exclusive():
            append(1)
            thread = threading.Thread(target=append, args=(3,))
            thread.start()
            await asyncio.sleep(0)
            append(2)
        await asyncio.to_thread(thread.join)

    asyncio.run(owner())
    assert append() == [1, 2, 3]


def test_pageable_copies_inside_a_task(device, stream):
    """They take a section of their own, inside the task's."""
    buffer = device.allocate(16, stream=stream)
    array = np.arange(4, dtype=np.int32)
    result = np.zeros(4, np.int32)

    async def owner():
        with stream.exclusive():
            buffer.copy_from(array, stream=stream)
            await asyncio.sleep(0)
            buffer.copy_to(result, stream=stream)

    asyncio.run(owner())
    assert list(result) == [0, 1, 2, 3]
    buffer.close()


def test_a_section_around_a_loop_is_all_of_its_tasks(stream, append):
    async def submit(number):
        append(number)
        await asyncio.sleep(0)

    async def all_of_them():
        await asyncio.gather(*(submit(number) for number in (1, 2, 3)))

    with stream.exclusive():
        asyncio.run(all_of_them())
    assert append() == [1, 2, 3]


def test_a_cancelled_task_ends_its_section(stream):
    async def owner(inside):
        with stream.exclusive():
            inside.set()
            await asyncio.sleep(3600)

    async def cancel():
        inside = asyncio.Event()
        task = asyncio.create_task(owner(inside))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stream.record()

    asyncio.run(cancel())
    in_another_thread(stream.record)


@pytest.mark.parametrize("ends_by", ["exception", "cancellation", "return"])
@pytest.mark.parametrize("kept", [False, True])
def test_a_task_that_ends_inside_its_section_gives_it_up(stream, ends_by, kept):
    """Whoever waits is told, once, also while somebody keeps the task and its exception, whose traceback has the section.
    Mutant: the core keeps the task, which keeps the section; or the section only goes with the traceback."""
    kept_by_somebody = []

    async def owner():
        section = stream.exclusive()
        section.__enter__()
        if ends_by == "exception":
            raise KeyError("inside")
        if ends_by == "cancellation":
            asyncio.current_task().cancel()
            await asyncio.sleep(3600)
        return section if kept else None

    async def run():
        task = asyncio.create_task(owner())
        await asyncio.wait([task])
        if kept:
            kept_by_somebody.append(task)
        elif ends_by == "exception":
            task.exception()  # or asyncio reports it

    asyncio.run(run())
    in_another_thread(lambda: told(stream))
    in_another_thread(stream.record)
    stream.record()
    for task in kept_by_somebody:
        with suppress(KeyError, asyncio.CancelledError):
            section = task.result()
            with pytest.raises(RuntimeError, match="has ended"):
                section.__exit__(None, None, None)


def test_tasks_that_wait_are_told_by_the_end_of_a_task(stream):
    """In a thread of their own each. Mutant: a task's end wakes nobody."""
    waiting = threading.Event()

    def record():
        waiting.set()
        told(stream)

    async def owner():
        section = stream.exclusive()
        section.__enter__()
        future = asyncio.get_running_loop().run_in_executor(None, record)
        await asyncio.to_thread(waiting.wait)
        return future, section

    async def run():
        future, _ = await asyncio.create_task(owner())
        await future

    asyncio.run(run())


def test_a_task_gives_up_all_its_sections(stream, device):
    """Mutant: only the first one, or those of the last stream."""
    other = device.create_stream()
    sections = [each.exclusive() for each in (stream, other, stream)]

    async def owner():
        for section in sections:
            section.__enter__()

    asyncio.run(owner())
    for each in (stream, other):
        with pytest.raises(SectionAbandonedError):
            each.record()
        in_another_thread(each.record)
    other.close()


@pytest.mark.parametrize("waits", ["here", "in another thread", "in one that waits already"])
def test_who_awaited_the_task_is_told_at_once(stream, waits, when_waiting):
    """It runs before those whom asyncio calls when the task is done, and does not let the loop turn. Mutant: only those are
    asked whether a task has ended."""
    answers, sections = [], []

    def record():
        try:
            stream.record()
        except SectionAbandonedError:
            answers.append("abandoned")

    async def owner():
        sections.append(stream.exclusive())
        sections[0].__enter__()
        if waits == "in one that waits already":
            thread.start()
            when_waiting()

    async def run():
        task = asyncio.create_task(owner())
        await task
        if waits == "here":
            record()
            return
        if not thread.ident:
            thread.start()
        thread.join()

    thread = threading.Thread(target=record)
    asyncio.run(run())
    assert answers == ["abandoned"]
    stream.record()


@pytest.mark.parametrize("keeps", [False, True])
def test_a_level_of_a_task_in_a_section_of_its_thread(stream, append, keeps):
    """The task ends without ending it: the thread's section goes on, and ends as ever. Mutant: only a section's first level
    is its task's, and the others are never ended."""
    sections = []

    async def forgets():
        section = stream.exclusive()
        section.__enter__()
        section.__enter__()
        append(1)
        if keeps:
            sections.append(section)

    with stream.exclusive():
        asyncio.run(forgets())
        thread = threading.Thread(target=append, args=(3,))
        thread.start()
        append(2)
    thread.join()
    assert append() == [1, 2, 3]
    for section in sections:
        with pytest.raises(RuntimeError, match="has ended"):
            section.__exit__(None, None, None)


def test_a_task_s_level_keeps_others_out_when_its_thread_has_ended_the_section(stream, append):
    """The section was all the thread's, and is the task's then. Mutant: what its first level was begun by decides for ever."""
    outer = stream.exclusive()

    async def inner(inside, done):
        with stream.exclusive():
            append(1)
            inside.set()
            await done.wait()
            append(4)

    async def run():
        inside, done = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(inner(inside, done))
            await inside.wait()
            append(2)
            outer.__exit__(None, None, None)
            for act in (lambda: append(3), stream.exclusive().__enter__):
                with pytest.raises(RuntimeError, match="another asyncio task"):
                    act()
            done.set()

    outer.__enter__()
    asyncio.run(run())
    append(5)
    assert append() == [1, 2, 4, 5]


def test_a_level_that_a_task_leaves_when_its_thread_has_ended_the_section(stream):
    """Nobody is inside any more once the task has ended: the next one is told."""
    sections = [stream.exclusive()]

    async def outlives():
        section = stream.exclusive()
        section.__enter__()
        sections.pop().__exit__(None, None, None)
        sections.append(section)
        with pytest.raises(RuntimeError, match="was not begun"):
            stream.exclusive().__exit__(None, None, None)
        stream.record()

    sections[0].__enter__()
    asyncio.run(outlives())
    in_another_thread(lambda: told(stream))
    in_another_thread(stream.record)
    with pytest.raises(RuntimeError, match="has ended"):
        sections[0].__exit__(None, None, None)


def test_a_task_whose_loop_never_turns_again(stream):
    """Mutant: who waits hears of a task's end by its event loop alone."""
    sections = [stream.exclusive()]

    async def owner():
        sections[0].__enter__()

    loop = asyncio.new_event_loop()
    task = loop.create_task(owner())
    loop.stop()
    loop.run_forever()  # one turn: the task has ended, and its callbacks wait for the next
    assert task.done()
    in_another_thread(lambda: told(stream))
    stream.record()
    loop.run_until_complete(task)
    loop.close()
    in_another_thread(stream.record)


def test_the_end_of_a_task_leaves_the_sections_of_others(stream, device):
    """Mutant: a task that ends gives up all that its thread is in."""
    other, sections = device.create_stream(), []

    async def stays(inside, done):
        with stream.exclusive():
            inside.set()
            await done.wait()
            stream.record()

    async def ends():
        sections.append(other.exclusive())
        sections[0].__enter__()

    async def run():
        inside, done = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(stays(inside, done))
            await inside.wait()
            await asyncio.create_task(ends())
            await asyncio.sleep(0)
            done.set()

    asyncio.run(run())
    stream.record()
    told(other)
    other.close()


def test_nothing_of_a_task_is_kept(stream):
    """A task that entered sections is collected as any other. Mutant: the core keeps it, or a table does."""
    async def owner():
        for _ in range(3):
            with stream.exclusive():
                await asyncio.sleep(0)

    async def run():
        task = asyncio.create_task(owner())
        await task
        return weakref.ref(task)

    gone = asyncio.run(run())
    gc.collect()
    assert gone() is None


def test_a_section_is_not_held_in_a_forked_child(run_python):
    """Neither waits for threads that are not there."""
    run_python(
        """
import os, signal, threading, warnings
from ftcuda import Device, ForkedProcessError
stream = Device(0).create_stream()
event = stream.record()
inside, leave = threading.Event(), threading.Event()
def hold():
    with stream.exclusive():
        inside.set()
        leave.wait()
thread = threading.Thread(target=hold)
thread.start()
inside.wait()
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    signal.alarm(10)  # a child that hangs ends, and so fails
    for use in (lambda: stream.wait(event), stream.record, stream.exclusive().__enter__):
        try: use()
        except ForkedProcessError: pass
        else: os._exit(1)
    stream.close()
    os._exit(0)
outcome = os.waitpid(child, 0)[1]
leave.set()
thread.join()
stream.record()
assert outcome == 0
"""
    )
