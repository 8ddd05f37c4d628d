"""Hooks on allocations, and what memory resources answer."""

from ftcuda._objects.memory.account import MemoryStatistics
from ftcuda._objects.memory.tracking import LiveAllocation
from ftcuda._objects.support import hooks
from ftcuda._objects.support.deferred_release import wait_for_deallocations
from ftcuda._objects.support.hooks import Allocation, Hook

__all__ = ["Allocation", "Hook", "LiveAllocation", "MemoryStatistics", "hooks", "wait_for_deallocations"]
