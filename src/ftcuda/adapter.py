"""The loaded driver for native extensions: a C structure in a capsule, and the folder of its header."""

from ftcuda._objects.device.adapter import driver_v1, get_include

__all__ = ["driver_v1", "get_include"]
