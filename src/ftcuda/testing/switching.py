"""Switch points between the bytecodes of a user's own files, for threads that a schedule runs."""

import dis
import sys
import sysconfig
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType

from ftcuda.testing import simulation

HERE = Path(__file__).parent
# What touches the frame of one thread only, by the beginnings of the names. Whatever else there is, or will be, may
# touch what threads share.
OF_THE_FRAME = (
    "BUILD_", "CACHE", "COPY", "END_", "EXTENDED_ARG", "JUMP_", "LIST_APPEND", "LOAD_CONST", "LOAD_FAST",
    "LOAD_SMALL_INT", "MAKE_", "MAP_ADD", "NOP", "NOT_TAKEN", "POP_", "PUSH_", "RESUME", "RETURN_", "SET_ADD",
    "STORE_FAST", "SWAP", "UNPACK_",
)  # fmt: skip


class UserFiles:
    """The files whose code is raced: those under a folder that are not installed, and those that patterns name.

    Parameters
    ----------
    root : Path
    patterns : sequence of str
        Names of packages; or, with a ``*``, ``?`` or ``/``, patterns of paths, relative to `root` or absolute.

    Thread safety: shared.
    """

    def __init__(self, root: Path, patterns: Sequence[str] = ()) -> None:
        self._root = root.resolve()
        self._globs = [str(root / each) for each in patterns if set(each) & set("*?/")]
        self._packages = [Path(place) for each in patterns if not set(each) & set("*?/") for place in places(each)]
        self._standard = Path(sysconfig.get_path("stdlib")).resolve()
        self._has = cache(self._look)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._has(name)

    def _look(self, name: str) -> bool:
        path = Path(name)
        if not path.is_absolute() or path.is_relative_to(HERE) or path.resolve().is_relative_to(HERE):
            return False
        if any(fnmatch(name, each) for each in self._globs):
            return True
        if any(path.is_relative_to(each) for each in self._packages):
            return True
        installed = {"site-packages", "dist-packages"} & set(path.parts) or path.is_relative_to(self._standard)
        return path.resolve().is_relative_to(self._root) and not installed


def places(name: str) -> list[str]:
    """Returns where a package or module is; nothing of it is run."""
    if not name.isidentifier() or (spec := find_spec(name)) is None:
        raise ValueError(
            f"race_files names {name!r}, which is no package that can be imported, and no pattern of files"
        )
    return list(spec.submodule_search_locations or ([spec.origin] if spec.origin else []))


def places_of_points(code: CodeType) -> frozenset[int]:
    """Returns the offsets of what may touch things that threads share."""
    return frozenset(each.offset for each in dis.get_instructions(code) if not each.opname.startswith(OF_THE_FRAME))


@contextmanager
def switch_points(files: Container[str]) -> Iterator[None]:
    """For its block, scheduled threads may switch before each bytecode of `files` that may touch what threads share.

    By `sys.monitoring`, beside debuggers and coverage: a function is instrumented in place when it first starts, before
    its first bytecode, so that the first round has the same points as all others. Bodies of modules have none: while
    one is imported, others wait for a lock of the import system, which no schedule knows.

    Parameters
    ----------
    files : container of str

    Raises
    ------
    RuntimeError
        All tools of `sys.monitoring` are in use.

    Thread safety: main thread.
    """
    monitoring = sys.monitoring
    events = monitoring.events
    tool = next((each for each in (4, 3, 0, 2, 1) if monitoring.get_tool(each) is None), None)
    if tool is None:
        raise RuntimeError("all tools of sys.monitoring are in use: there is none for switch points")
    points: dict[int, tuple[CodeType, frozenset[int]]] = {}  # by id: equal code objects are not the same

    def start(code: CodeType, offset: int) -> object:
        if code.co_filename in files and code.co_name != "<module>" and id(code) not in points:
            points[id(code)] = code, places_of_points(code)
            monitoring.set_local_events(tool, code, events.INSTRUCTION)
        return monitoring.DISABLE

    def step(code: CodeType, offset: int) -> object:
        if offset not in points[id(code)][1]:
            return monitoring.DISABLE
        simulation.schedule_point()
        return None

    monitoring.use_tool_id(tool, "ftcuda races")
    try:
        monitoring.register_callback(tool, events.PY_START, start)
        monitoring.register_callback(tool, events.INSTRUCTION, step)
        monitoring.restart_events()  # what an earlier block has disabled
        monitoring.set_events(tool, events.PY_START)
        yield
    finally:
        monitoring.set_events(tool, 0)
        for code, _ in list(points.values()):
            monitoring.set_local_events(tool, code, 0)
        monitoring.free_tool_id(tool)
