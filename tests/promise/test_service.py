"""What is retained goes when its work is done, though no thread calls ftcuda again; and an allocation lets go of nothing."""

import threading
import weakref
from types import SimpleNamespace

import pytest

from ftcuda import LaunchConfig, launch
from ftcuda.testing import Schedule, faults, simulation, together
from tests.conftest import simulated_only

ONE = LaunchConfig(grid=1, block=1)
pytestmark = pytest.mark.thread_unsafe(reason="another thread's call may be the one that lets go")


class Producer(SimpleNamespace):
    """An array of another library, of a buffer's memory."""


def produced(memory, tell):
    """One that nobody keeps; `tell` is called when it goes."""
    producer = Producer(__cuda_array_interface__=memory.__cuda_array_interface__)
    weakref.finalize(producer, tell)
    return producer


def comes(gone):
    """Waits in steps: without the GIL CPython lets go of an object in the thread that made it, when that runs again."""
    return any(gone.wait(0.1) for _ in range(600))


@simulated_only
def test_it_goes_though_nobody_calls(device, stream, code, held_clock):
    """Mutant: a service that is not woken, or that does not ask the thread to let go."""
    memory, gone = device.allocate(64, stream=stream), threading.Event()
    with held_clock():
        launch(stream, ONE, code.get_kernel("store"), produced(memory, gone.set), 1)
        assert not gone.wait(0.3)  # many turns of the service: the kernel has still to run
    assert comes(gone)
    memory.close()


@simulated_only
def test_an_allocation_lets_go_of_nothing(device, stream, code, held_clock):
    """Mutant: clean-up in an allocation. Under a schedule the service waits, so that only calls let go."""
    memory, gone = device.allocate(64, stream=stream), []
    kernel = code.get_kernel("store")
    event = device.create_event()

    def use(index):
        with held_clock():  # or the launch itself may find its work done
            launch(stream, ONE, kernel, produced(memory, lambda: gone.append(None)), 1)
            stream.record(event)
        while not event.is_done:
            pass
        before = len(gone)
        allocated = [device.allocate(size, stream=stream) for size in (64, 4096)]
        after = len(gone)
        for buffer in allocated:
            buffer.close()
        return before, after, len(gone)

    assert together(1, use, schedule=Schedule(seed=1)) == [(0, 0, 1)]
    memory.close()


@simulated_only
def test_no_planned_fault_is_for_the_service(device, stream, code, held_clock):
    """Mutant: a thread of ours whose calls a test's faults hit, and its counts count."""
    memory, gone = device.allocate(64, stream=stream), threading.Event()
    with held_clock():
        launch(stream, ONE, code.get_kernel("store"), produced(memory, gone.set), 1)
        before = simulation.calls("cuEventQuery")
        planned = faults.failing("cuEventQuery", 700)
    with planned as fault:
        assert comes(gone)
        assert fault.hits == 0 and simulation.calls("cuEventQuery") == before
    memory.close()


@simulated_only
def test_a_context_that_failed_keeps_nothing(run_python):
    """Mutant: what waits for an event of a context that has failed waits for ever."""
    assert run_python(POISONED).split() == ["alive", "gone"]


POISONED = """
import weakref
import ftcuda
from ftcuda.testing import faults, simulation
from tests.kernels import SAXPY, compile_code
from tests.promise.test_service import Producer

device = ftcuda.Device(0)
stream = device.create_stream()
kernel = compile_code(SAXPY).get_kernel("store")
memory = device.allocate(64, stream=stream)
producer = Producer(__cuda_array_interface__=memory.__cuda_array_interface__)
alive = weakref.ref(producer)
with simulation.held_clock():
    ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=1), kernel, producer, 1)
    del producer
    print("alive" if alive() else "gone")
    with faults.poisoning("cuStreamQuery", 700):
        try:
            stream.is_done
        except ftcuda.CUDAError:
            pass
    ftcuda.memory.wait_for_deallocations()
    print("alive" if alive() else "gone")
"""
