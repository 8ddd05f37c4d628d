"""A command that runs hazards, and how it finds them by their names."""

import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType

from ftcuda.testing.hazard import Environment, Hazard


class NoHazardError(ValueError):
    """What a run was given is no hazard. The message says why, and what to give."""


@dataclass(frozen=True)
class Program:
    """A command that runs hazards: those of its own, by their names, and any others by file, folder or module.

    Attributes
    ----------
    module : str
        What ``python -m`` runs.
    environment : callable
        Makes what all hazards of a run share.
    hazards : str
        The package whose modules are its own hazards; empty if it has none.
    """

    module: str
    environment: Callable[[], Environment] = Environment
    hazards: str = ""

    @property
    def command(self) -> str:
        """As it is typed."""
        return f"python -m {self.module}"

    def own(self) -> list[str]:
        """Returns the names of its own hazards."""
        return _modules(importlib.import_module(self.hazards)) if self.hazards else []

    def hazards_of(self, name: str) -> list[str]:
        """Returns the names of the hazards that a name stands for: a folder or a package has several.

        Files and modules whose names begin with ``_`` are left out of those.
        """
        if name in self.own() or name.endswith(".py"):
            return [name]
        if Path(name).is_dir():
            found = sorted(str(path) for path in Path(name).glob("[!_]*.py"))
            kind = "file"
        else:
            module = self._imported(name)
            if not hasattr(module, "__path__"):
                return [name]
            found = [f"{name}.{each}" for each in _modules(module)]
            kind = "module"
        if not found:
            raise NoHazardError(f"there is no {kind} in {name}; each {kind} of it is to hold one hazard")
        return found

    def find(self, name: str) -> type[Hazard]:
        """Returns the hazard of one of its own names, of a file, or of a module.

        Raises
        ------
        NoHazardError
            There is none, or it cannot be imported.
        """
        if name in self.own():
            module = importlib.import_module(f"{self.hazards}.{name}")
        else:
            module = _loaded(name) if name.endswith(".py") else self._imported(name)
        things = [thing for thing in vars(module).values() if isinstance(thing, type) and issubclass(thing, Hazard)]
        found = list(dict.fromkeys(thing for thing in things if thing.__module__ == module.__name__))
        if len(found) != 1:
            seen = f"{len(found)}: {', '.join(thing.__name__ for thing in found)}" if found else "none"
            raise NoHazardError(f"{name} must hold one subclass of ftcuda.testing.hazard.Hazard, and holds {seen}")
        return found[0]

    def _imported(self, name: str) -> ModuleType:
        """Returns the module of a name."""
        try:
            if all(part.isidentifier() for part in name.split(".")):
                return importlib.import_module(name)
        except ModuleNotFoundError as problem:
            if problem.name is None or not f"{name}.".startswith(f"{problem.name}."):
                raise _not_imported(name, problem) from None
        except (Exception, SystemExit) as problem:
            raise _not_imported(name, problem) from None
        of_ours = f"; the hazards here are {', '.join(self.own())}" if self.hazards else ""
        raise NoHazardError(f"there is no file, folder or module {name}; give one that holds a hazard{of_ours}")


def _modules(package: ModuleType) -> list[str]:
    """Returns the names of the modules in a package, but for those that begin with ``_``."""
    return sorted(found.name for found in pkgutil.iter_modules(package.__path__) if not found.name.startswith("_"))


def _loaded(name: str) -> ModuleType:
    """Returns the module of a file. It may import what stands beside it, and is in nobody's way by its own name."""
    path = Path(name).resolve()
    if not path.is_file():
        raise NoHazardError(f"there is no file {name}; give one that holds a hazard")
    spec = importlib.util.spec_from_file_location(f"hazard{re.sub(r'\W', '_', str(path))}", path)
    assert spec is not None and spec.loader is not None  # of a .py file there is always one
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # at the end: a hazard queue.py is not for who imports Python's own
    if spec.name in sys.modules:
        return sys.modules[spec.name]
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        del sys.modules[spec.name]
        raise _not_imported(name, problem) from None
    return module


def _not_imported(name: str, problem: BaseException) -> NoHazardError:
    """Returns the error of a hazard whose import failed, with the stack from its first line."""
    ours = (__file__, importlib.__file__)
    stack: TracebackType | None = problem.__traceback__
    while stack and ((file := stack.tb_frame.f_code.co_filename) in ours or file.startswith("<frozen importlib")):
        stack = stack.tb_next
    text = "".join(traceback.format_exception(problem.with_traceback(stack)))
    return NoHazardError(f"cannot import {name}: {type(problem).__name__}\n{text.rstrip()}")
