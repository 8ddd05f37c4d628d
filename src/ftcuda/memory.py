"""Memory resources, and hooks on what they do."""

from ftcuda._objects import hooks
from ftcuda._objects.hooks import Allocation, Hook

__all__ = ["Allocation", "Hook", "hooks"]
