"""Compiled programs in the memory of one process."""

import os
from collections import OrderedDict
from threading import RLock

from ftcuda._objects.code.program_cache import Key, ProgramCacheResource, Value, checked_size, key_bytes, value_bytes


class Entries:
    """Of one process, the one that was read longest ago first."""

    def __init__(self) -> None:
        self.lock = RLock()  # a finalizer may use the cache
        self.values: OrderedDict[bytes, bytes] = OrderedDict()


class InMemoryProgramCache(ProgramCacheResource):
    """Compiled programs in memory, for as long as the process runs. In a forked child, and pickled, it has none.

    Parameters
    ----------
    max_size_bytes : int, optional
        The most bytes of values. Where there would be more, those go that were read longest ago; a value that is larger
        is not kept. None: any number.

    Thread safety: atomic.
    """

    def __init__(self, *, max_size_bytes: int | None = None) -> None:
        self._most = checked_size(max_size_bytes)
        self._processes: dict[int, Entries] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_processes": {}}

    def _mine(self) -> Entries:
        return self._processes.setdefault(os.getpid(), Entries())

    def __getitem__(self, key: Key) -> bytes:
        wanted, mine = key_bytes(key), self._mine()
        with mine.lock:
            if wanted not in mine.values:
                raise KeyError(key)
            mine.values.move_to_end(wanted)
            return mine.values[wanted]

    def __setitem__(self, key: Key, value: Value) -> None:
        made, data, mine = key_bytes(key), value_bytes(value), self._mine()
        with mine.lock:
            if self._most is not None and len(data) > self._most:
                mine.values.pop(made, None)
                return
            mine.values[made] = data
            mine.values.move_to_end(made)
            if self._most is not None:
                size = sum(map(len, mine.values.values()))
                while size > self._most:
                    _, gone = mine.values.popitem(last=False)
                    size -= len(gone)

    def __delitem__(self, key: Key) -> None:
        wanted, mine = key_bytes(key), self._mine()
        with mine.lock:
            if mine.values.pop(wanted, None) is None:
                raise KeyError(key)

    def __len__(self) -> int:
        mine = self._mine()
        with mine.lock:
            return len(mine.values)

    def clear(self) -> None:
        """Forgets all. Thread safety: atomic."""
        mine = self._mine()
        with mine.lock:
            mine.values.clear()
