"""Compiled programs in a folder, for many processes.

An entry is a file with what was compiled and nothing else, so that other tools read it. Its name is a digest of the key
and one of key and contents, which is compared at each reading: a file that was cut off, changed or copied from another
key serves nobody. Files come under their names whole, by renaming; who is killed while he writes leaves a file in
``tmp``, which goes after an hour.
"""

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ftcuda._objects.code.file_lock import file_lock
from ftcuda._objects.code.program_cache import Key, ProgramCacheResource, Value, checked_size, key_bytes, value_bytes
from ftcuda._objects.code.program_key import digest
from ftcuda._objects.code.program_options import cache_folder

NAME = re.compile(r"([0-9a-f]{64})-([0-9a-f]{64})")
STALE = 3600.0  # seconds, after which nobody writes to a file in tmp any more


class FileStreamProgramCache(ProgramCacheResource):
    """Compiled programs in a folder, for any number of threads and processes, and for the next run.

    One process at a time compiles what is missing; the rest wait and find it. An entry that is damaged, or that another
    program has put there, counts as missing, and is removed. In a folder that cannot be written what is there is found.
    Pickled, it is of the same folder. Its files are one user's: another one finds nothing in them.

    Parameters
    ----------
    path : str or os.PathLike, optional
        The folder, which is made if it is missing; not the empty text. None is ``ftcuda/program-cache`` in the cache
        folder of the user.
    max_size_bytes : int, optional
        About how many bytes there are at most. After a write that leaves more, those go that were read longest ago; a
        value that is larger is not kept. None: any number.

    Thread safety: atomic.

    Raises
    ------
    OSError
        There is no such folder, and it cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_size_bytes: int | None = None) -> None:
        self._most = checked_size(max_size_bytes)
        if path is not None and not os.fspath(path):
            raise ValueError("path must be a folder, not the empty text")
        self._root = Path(cache_folder() / "program-cache" if path is None else path).absolute()
        self._entries, self._tmp, self._locks = (self._root / each for each in ("entries", "tmp", "locks"))
        self._root.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # it is there, and not to be written
            self._entries.mkdir(exist_ok=True)
            self._locks.mkdir(exist_ok=True)
            self._tmp.mkdir(mode=0o700, exist_ok=True)  # nobody else writes to what becomes an entry
        self._remove_stale()

    def __repr__(self) -> str:
        return f"<FileStreamProgramCache {str(self._root)!r}>"

    def __getitem__(self, key: Key) -> bytes:
        wanted = key_bytes(key)
        for path in self._of(wanted):
            with suppress(OSError):  # another process has just removed it
                data = path.read_bytes()
                if path.name == name_of(wanted, data):
                    with suppress(OSError):
                        os.utime(path)
                    return data
                path.unlink()
        raise KeyError(key)

    def __setitem__(self, key: Key, value: Value) -> None:
        """Keeps it. OSError if it cannot be written; what was there under the key stays then."""
        made, data = key_bytes(key), value_bytes(value)
        if self._most is not None and len(data) > self._most:
            self._remove(made)
            return
        name = name_of(made, data)
        folder = self._entries / name[:2]
        folder.mkdir(parents=True, exist_ok=True)
        self._tmp.mkdir(mode=0o700, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=self._tmp)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(draft, folder / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
        for path in self._of(made):
            if path.name != name:
                with suppress(OSError):
                    path.unlink()
        self._shrink()

    def __delitem__(self, key: Key) -> None:
        if not self._remove(key_bytes(key)):
            raise KeyError(key)

    def __len__(self) -> int:
        return len({path.name[:64] for path in self._all()})

    def clear(self) -> None:
        """Removes all entries. Thread safety: atomic."""
        for path in self._all():
            with suppress(FileNotFoundError):
                path.unlink()
        self._remove_stale()

    @contextmanager
    def exclusive(self, key: Key) -> Iterator[bool]:
        """As of the class above; in all processes that have this folder."""
        with super().exclusive(key) as is_mine:
            if not is_mine:
                yield False
                return
            with file_lock(self._locks / digest(key_bytes(key)).hex()):
                yield True

    def _of(self, key: bytes) -> list[Path]:
        """The entry of a key; several for a moment, while it is replaced."""
        begin = digest(key).hex()
        return [path for path in files_in(self._entries / begin[:2]) if path.name.startswith(begin)]

    def _remove(self, key: bytes) -> bool:
        """Whether there was one."""
        removed = False
        for path in self._of(key):
            with suppress(FileNotFoundError):
                path.unlink()
                removed = True
        return removed

    def _all(self) -> Iterator[Path]:
        with suppress(OSError):
            for folder in sorted(self._entries.iterdir()):
                yield from (path for path in files_in(folder) if NAME.fullmatch(path.name))

    def _shrink(self) -> None:
        """Removes those that were read longest ago, until the rest is as small as it has to be."""
        if self._most is None:
            return
        found = []
        for path in self._all():
            with suppress(OSError):
                stat = path.stat()
                found.append((stat.st_mtime_ns, stat.st_size, path))
        size = sum(each for _, each, _ in found)
        for _, each, path in sorted(found):
            if size <= self._most:
                return
            with suppress(OSError):
                path.unlink()
            size -= each

    def _remove_stale(self) -> None:
        for path in files_in(self._tmp):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE:
                    path.unlink()


def name_of(key: bytes, data: bytes) -> str:
    """Of the file of an entry."""
    return f"{digest(key).hex()}-{digest(key, data).hex()}"


def files_in(folder: Path) -> list[Path]:
    """None where there is no folder."""
    try:
        with os.scandir(folder) as found:
            return sorted(Path(each) for each in found if each.is_file())
    except OSError:
        return []
