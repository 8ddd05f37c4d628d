"""Promise 7: a forked child gets an error from calls, and what it lets go of waits for nobody."""

import os
from pathlib import Path

import pytest

import ftcuda

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.thread_unsafe(reason="its processes use all processors"),
]
CHILD = """
import gc, os, signal, warnings
warnings.simplefilter("ignore")  # Python's own about forking

def in_child(function):
    "Whether `function` ends, without another error than a child's, in a forked child in which everything then goes."
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    signal.alarm(20)  # a child that hangs ends, and so fails
    try:
        function()
        gc.collect()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(1)
    os._exit(0)
"""


@pytest.mark.timeout(600)
def test_every_call_in_a_forked_child(run_python, ptx_fits):
    """It fails as promised or needs nothing of the core. Builds with checked locks end a child that locks anything."""
    said = run_python(
        CHILD
        + """
import ftcuda
from stress.environment import Environment
from stress.promise import read

env = Environment()
names = {"env": env, "ftcuda": ftcuda, "launch": ftcuda.launch}

def use(call, it):
    try:
        eval(call.code, {**names, "it": it})
    except (ftcuda.ForkedProcessError, ftcuda.ClosedError, ftcuda.NotSupportedError, *call.may_raise):
        pass

def make(maker):
    try:
        return [eval(maker, names)]
    except ftcuda.NotSupportedError:
        return []

children = 0
for subject in read():
    for maker in subject.makers:
        for call in subject.calls.values():
            thing = make(maker)
            if not thing:
                continue  # this device or driver has none
            for other in subject.calls.values():
                if not other.closes and other.level is not None:
                    use(other, thing[0])
            env.stream.sync()
            children += 1
            if not in_child(lambda: use(call, thing.pop())):
                print(f"{maker.co_filename}: {call.name}", flush=True)
print("tried", children)
""",
        PYTHONPATH=f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    )
    head, _, children = said.rstrip().rpartition("tried ")
    assert head == "" and int(children) > 200, said


def test_children_of_a_busy_process(run_python):
    """Mutant: a child that lets go of an object waits for a lock that another thread held at the fork."""
    said = run_python(
        CHILD
        + """
import collections, threading, time
import numpy as np
from ftcuda import Buffer, Device, ForkedProcessError, LegacyPinnedMemoryResource, LimitingMemoryResource, MemoryResource

class Lent(MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, True, -1
    def __init__(self):
        self.live = {}
    def allocate(self, size, *, stream=None):
        memory = pinned.allocate(size)
        self.live[memory.handle] = memory
        return Buffer.from_handle(memory.handle, size, mr=self, stream=stream)
    def deallocate(self, ptr, size, *, stream):
        self.live.pop(ptr).close()

device, pinned = Device(0), LegacyPinnedMemoryResource()
limited, lent = LimitingMemoryResource(device.memory_resource, allocation_limit=1 << 30), Lent()
shared = device.create_stream()
# One a thread: a thread that waited for Python's own lock of a deque may be given it as it stops for the fork, and then
# CPython 3.13t leaves it locked in the child.
rounds = [0] * 3
kept, stop = [collections.deque(maxlen=100) for _ in range(3)], threading.Event()

def work(kept, index):
    stream, array = device.create_stream(), np.zeros(64, "u1")
    while not stop.is_set():
        buffers = [device.allocate(64, stream=stream), limited.allocate(64, stream=shared), lent.allocate(64)]
        buffers.append(Buffer.from_handle(buffers[0].handle, 64, owner=buffers[0]))
        for buffer in buffers:
            buffer.fill(1, stream=shared)
        buffers[0].copy_from(array, stream=stream)
        shared.wait(stream)
        kept.append((buffers, stream.record(), device.create_stream()))
        rounds[index] += 1

def let_go():
    for each in kept:
        each.clear()
    for call in (lambda: device.allocate(64, stream=shared), lambda: limited.allocate(64), lambda: limited.statistics):
        try:
            call()
        except ForkedProcessError:
            continue
        raise AssertionError("a forked child was answered")

threads = [threading.Thread(target=work, args=(each, index)) for index, each in enumerate(kept)]
for thread in threads: thread.start()
lost = 0
for _ in range(60):
    before = sum(rounds)
    while sum(rounds) < before + 3: time.sleep(0)  # they are at work, wherever in it
    lost += not in_child(let_go)
stop.set()
for thread in threads: thread.join()
shared.sync()
print(lost, "children did not end")
"""
    )
    assert said == "0 children did not end\n"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list a process's threads")
def test_a_forked_child_starts_no_thread(run_python):
    """Mutant: a buffer that is dropped there hands its deallocation over to a thread, which locks what is locked for ever."""
    said = run_python(
        CHILD
        + """
from ftcuda import Buffer, LegacyPinnedMemoryResource, MemoryResource
from ftcuda.memory import wait_for_deallocations

class Lent(MemoryResource):
    is_device_accessible = is_host_accessible = True
    device_id = -1
    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(memory.handle, size, mr=self)
    def deallocate(self, ptr, size, *, stream):
        raise AssertionError("a forked child gave memory back")

memory = LegacyPinnedMemoryResource().allocate(64)
kept = [Lent().allocate(64)]

def drop():
    kept.clear()
    gc.collect()
    wait_for_deallocations()
    assert len(os.listdir("/proc/self/task")) == 1

print(in_child(drop), flush=True)
os._exit(0)
"""
    )
    assert said == "True\n"


AMID = """
import os, signal, threading, warnings
import ftcuda
from ftcuda import Linker, ObjectCode, Program

warnings.simplefilter("ignore")  # Python's own about forking
program = Program('extern "C" __global__ void k(int* p) { *p = 3; }', "c++", {"arch": "compute_80"})
ptx = ObjectCode.from_ptx(program.compile("ptx").code)
linker = Linker(ptx, options={"arch": "sm_80"})
work = WORK
wanted, over = work().code, threading.Event()

def repeat():
    while not over.is_set():
        work()

threads = [threading.Thread(target=repeat) for _ in range(2)]
for thread in threads:
    thread.start()
outcomes = []
while len(outcomes) < 100 and 3 not in outcomes[5:]:
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that hangs ends, and so fails
        try:
            right = work().code == wanted
        except ftcuda.ForkedProcessError:
            os._exit(3)
        os._exit(0 if right else 1)
    outcomes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over.set()
for thread in threads:
    thread.join()
child = os.fork()
if child == 0:  # nobody is amid one now
    os._exit(0 if work().code == wanted else 1)
print(set(outcomes) <= {0, 3}, 3 in outcomes, os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("work", ["lambda: program.compile('ptx')", "lambda: linker.link('cubin')"], ids=["compiles", "links"])
def test_a_child_that_was_forked_amid_a_compilation(run_python, work):
    """It says so. Mutant: it waits for ever for a lock that a thread of its parent had."""
    if "linker" in work and ftcuda.nvrtc_version() < (12, 3):
        pytest.skip("there is no nvJitLink of CUDA 11")
    assert run_python(AMID.replace("WORK", work)).split() == ["True", "True", "0"]
