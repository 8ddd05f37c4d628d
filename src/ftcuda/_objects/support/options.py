"""Options of streams, events, memory resources and programs: names and defaults as in cuda.core 1.x."""

import operator
from dataclasses import dataclass

from ftcuda.errors import NotSupportedError


@dataclass
class StreamOptions:
    """Options of a stream.

    Attributes
    ----------
    nonblocking : bool
        The stream does not synchronise with the legacy default stream.
    priority : int or None
        Smaller numbers are served first; None is the lowest priority.
    """

    nonblocking: bool = True
    priority: int | None = None


@dataclass
class EventOptions:
    """Options of an event.

    Attributes
    ----------
    timing_enabled : bool
        The event keeps the time it was reached, for ``end - start``.
    blocking_sync : bool
        A thread in :meth:`Event.sync` sleeps instead of spinning.
    ipc_enabled : bool
        Must be false: ftcuda has no IPC yet.
    """

    timing_enabled: bool = False
    blocking_sync: bool = False
    ipc_enabled: bool = False


@dataclass
class DeviceMemoryResourceOptions:
    """Options of a pool of device memory.

    Attributes
    ----------
    max_size : int
        Bytes the pool may grow to, 0 for no limit. Drivers before CUDA 12.2 ignore it.
    ipc_enabled : bool
        Must be false: ftcuda has no IPC yet.
    """

    max_size: int = 0
    ipc_enabled: bool = False


@dataclass
class PinnedMemoryResourceOptions:
    """Options of a pool of pinned host memory.

    Attributes
    ----------
    max_size : int
        Bytes the pool may grow to, 0 for no limit.
    ipc_enabled : bool
        Must be false: ftcuda has no IPC yet.
    """

    max_size: int = 0
    ipc_enabled: bool = False


@dataclass
class ManagedMemoryResourceOptions:
    """Options of managed memory.

    Attributes
    ----------
    preferred_location : int or None
        Ordinal of the device whose context the memory is made in; None for the current one.
    """

    preferred_location: int | None = None


def checked(options: object, kind: type) -> object:
    """Returns `options` as an instance of `kind`: None gives the defaults, a dict its fields."""
    if options is None:
        return kind()
    if isinstance(options, dict):
        return kind(**options)
    if isinstance(options, kind):
        return options
    raise TypeError(f"options must be {kind.__name__}, a dict or None, not {type(options).__name__}")


def refuse_ipc(options: object) -> None:
    """Raises where `options` ask for what other processes can have."""
    if options.ipc_enabled:  # type: ignore[attr-defined]
        raise NotSupportedError(
            f"{type(options).__name__}(ipc_enabled=True) is not supported: ftcuda has no IPC yet; leave it False, and "
            "share memory with other processes by CUDA's own functions"
        )


def integer(value: object, name: str) -> int:
    """Returns `value` as an int. A TypeError of `name` if it is none: a C conversion would cut a float silently.

    A bool is none: who gives one where a number is meant has mistaken the argument.
    """
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not bool")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
