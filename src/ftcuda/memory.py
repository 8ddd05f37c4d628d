"""Hooks on allocations, and what memory resources answer."""

from ftcuda._objects.memory import hooks
from ftcuda._objects.memory.accounting import LiveAllocation, MemoryStatistics
from ftcuda._objects.memory.hooks import Allocation, Hook

__all__ = ["Allocation", "Hook", "LiveAllocation", "MemoryStatistics", "hooks"]
