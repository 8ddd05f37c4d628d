"""What tests of graphs share."""

from concurrent.futures import ThreadPoolExecutor, wait
from time import monotonic

import numpy as np
import pytest

import ftcuda
from ftcuda import LaunchConfig
from ftcuda.testing import faults

ONE = LaunchConfig(grid=1, block=1)
OUT_OF_MEMORY = 2
DRIVER = tuple(map(int, ftcuda.driver_info().version.split(".")))
needs_graphs = pytest.mark.skipif(DRIVER < (11, 4), reason="graphs need a driver of CUDA 11.4")
needs_12 = pytest.mark.skipif(DRIVER < (12, 0), reason="updates of graphs need a driver of CUDA 12")
needs_definitions = pytest.mark.skipif(DRIVER < (12, 3), reason="graph definitions need a driver of CUDA 12.3")


def new_log(pinned):
    """Where `append` writes: a number, and as many values."""
    return pinned(np.zeros(64, np.int32))


def written(view):
    return view[1 : view[0] + 1].tolist()


def assert_goes(is_gone, device):
    """What work used goes a moment after it, in a thread of ftcuda's."""
    end = monotonic() + 20
    while not is_gone() and monotonic() < end:
        device.sync()
        ftcuda.memory.wait_for_deallocations()
    assert is_gone()


def assert_goes_by_itself(is_gone):
    """Nobody waits for anything."""
    end = monotonic() + 20
    while not is_gone() and monotonic() < end:
        ftcuda.memory.wait_for_deallocations()
    assert is_gone()


def assert_nothing_left(resource, device):
    """Of what graphs used."""
    assert_goes(lambda: resource.statistics.current_count == 0, device)


def assert_kept(resource, device):
    """One buffer, after all that could have let go of it."""
    device.sync()
    ftcuda.memory.wait_for_deallocations()
    assert resource.statistics.current_count == 1


def meet(entry, held, other):
    """Calls `held` in one thread and, while that is about to call `entry`, `other` in a second one. What came of `other`.

    It has time to come to a lock. Where there is none it is over before `held` goes on.
    """
    with faults.holding(entry) as fault, ThreadPoolExecutor(2) as pool:
        first = pool.submit(held)
        fault.wait()
        second = pool.submit(other)
        wait([second], timeout=0.2)
        fault.release()
        first.result()
        return second.exception()
