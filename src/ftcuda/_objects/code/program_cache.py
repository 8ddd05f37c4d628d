"""What caches of compiled programs have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from ftcuda._objects.code.object_code import ObjectCode
from ftcuda._objects.code.turns import turn_of

Key = bytes | str
Value = bytes | bytearray | memoryview | ObjectCode


def key_bytes(key: object) -> bytes:
    """Of a key: a text is the same as its UTF-8."""
    if isinstance(key, str):
        return str.__str__(key).encode()
    if isinstance(key, bytes | bytearray):
        return bytes(key)
    raise TypeError(f"keys of a program cache must be bytes or str, not {type(key).__name__}")


def value_bytes(value: object) -> bytes:
    """Of a value: the image of object code, also of one that was read from a file."""
    if isinstance(value, ObjectCode):
        return bytes(value.__reduce__()[1][0])
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"values of a program cache must be bytes-like or ObjectCode, not {type(value).__name__}")


class ProgramCacheResource(ABC):
    """Below caches of compiled programs: bytes by key, of which :meth:`Program.compile` takes one as ``cache=``.

    A subclass has the five methods that are abstract here, for any number of threads at once. Keys are bytes or str; a
    str is the same key as its UTF-8. Values are what was compiled, as it is: a cubin, PTX or LTO IR. There is no
    ``key in cache``, since an entry may be gone when it is read: use :meth:`get`.

    Thread safety: atomic.
    """

    @abstractmethod
    def __getitem__(self, key: Key) -> bytes:
        """The bytes; KeyError if there are none."""

    @abstractmethod
    def __setitem__(self, key: Key, value: Value) -> None:
        """Keeps bytes, or the image of an `ObjectCode`."""

    @abstractmethod
    def __delitem__(self, key: Key) -> None:
        """Forgets them; KeyError if there are none."""

    @abstractmethod
    def __len__(self) -> int:
        """How many entries there are."""

    @abstractmethod
    def clear(self) -> None:
        """Forgets all."""

    def get(self, key: Key, default: bytes | None = None) -> bytes | None:
        """The bytes, or `default` if there are none. Thread safety: atomic."""
        try:
            return self[key]
        except KeyError:
            return default

    def update(self, items: Mapping[Key, Value] | Iterable[tuple[Key, Value]], /) -> None:
        """Keeps several, one after the other: an error leaves those before it. Thread safety: atomic, each."""
        for key, value in items.items() if isinstance(items, Mapping) else items:
            self[key] = value

    @contextmanager
    def exclusive(self, key: Key) -> Iterator[bool]:
        """For a block that makes what is missing: one thread at a time is in such a block of the same cache and key.

        The rest wait, and find it then. A block within another of the same thread, of whatever cache and key, waits for
        nobody. ftcuda's own.

        Yields
        ------
        bool
            False within another block.

        Thread safety: atomic. Blocks detached from the interpreter.
        """
        with turn_of(self, key_bytes(key)) as is_mine:
            yield is_mine

    def close(self) -> None:  # noqa: B027
        """Gives back what the cache has open; these have nothing. Thread safety: atomic."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def checked_size(max_size_bytes: int | None) -> int | None:
    """The most bytes that a cache keeps."""
    if max_size_bytes is None:
        return None
    if isinstance(max_size_bytes, bool) or not isinstance(max_size_bytes, int):
        raise TypeError(f"max_size_bytes must be an int or None, not {type(max_size_bytes).__name__}")
    if max_size_bytes <= 0:
        raise ValueError(f"max_size_bytes must be positive or None, not {max_size_bytes}")
    return max_size_bytes
