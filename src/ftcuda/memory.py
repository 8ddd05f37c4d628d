"""Hooks on allocations, and what memory resources answer."""

from ftcuda._objects import hooks
from ftcuda._objects.accounting import LiveAllocation, MemoryStatistics
from ftcuda._objects.hooks import Allocation, Hook

__all__ = ["Allocation", "Hook", "LiveAllocation", "MemoryStatistics", "hooks"]
