"""A lock that processes share: a file, which the system unlocks when its process ends, however it ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def lock(descriptor: int) -> None:
        """Waits, in turns of ten seconds."""
        while True:
            with suppress(OSError):
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
                return

    def unlock(descriptor: int) -> None:
        """Closing it does that here."""
else:
    import fcntl

    def lock(descriptor: int) -> None:
        """Waits. Signals are handled meanwhile."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def unlock(descriptor: int) -> None:
        """Also for a child that was forked meanwhile, which has the file open too."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


HELD: set[int] = set()  # the descriptors of locked files


def drop_all() -> None:
    """In a forked child: its parent has the locks, and those who wait do not wait for the child."""
    for descriptor in list(HELD):
        with suppress(OSError):
            os.close(descriptor)
    HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=drop_all)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Waits for the lock, and gives it back. Where there can be none, since the folder is not to be written or the file
    system knows no locks, there is none: two processes may do the same then."""
    process, descriptor = os.getpid(), locked(path)
    try:
        yield
    finally:
        if descriptor is not None and os.getpid() == process:
            HELD.discard(descriptor)
            with suppress(OSError):  # elsewhere than on Windows, where an open file stays
                path.unlink()  # who waits for it sees that it is not at its path any more
            with suppress(OSError):
                unlock(descriptor)
            os.close(descriptor)


def locked(path: Path) -> int | None:
    """The locked file that is at this path."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError:  # the folder is gone, or not to be written
            return None
        try:
            lock(descriptor)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                HELD.add(descriptor)
                return descriptor
        except FileNotFoundError:
            pass  # another one had it before, and has removed it
        except OSError:
            return None
        finally:
            if descriptor not in HELD:
                os.close(descriptor)
