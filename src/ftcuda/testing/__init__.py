"""Tools for testing programs that share CUDA objects between threads."""

from ftcuda.testing.clock import Clock, simulated_clock
from ftcuda.testing.schedule import DeadlockError, Schedule
from ftcuda.testing.sequencer import Sequencer
from ftcuda.testing.settling import settle
from ftcuda.testing.together import together

__all__ = ["Clock", "DeadlockError", "Schedule", "Sequencer", "settle", "simulated_clock", "together"]
