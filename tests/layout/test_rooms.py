"""The rooms of docs/design/architecture.md: who may include whom. Reads sources, needs no compiler."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ftcuda"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.MULTILINE)
CIMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+cimport|cimport\s+(\S+))", re.MULTILINE)
IMPORT = re.compile(r"^([ \t]*)(?:from\s+(\S+)\s+import|import\s+(\S+))", re.MULTILINE)


def sources(folder, *suffixes):
    found = [path for path in folder.rglob("*") if path.suffix in suffixes]
    assert found, f"no sources in {folder}"
    return found


def includes(path):
    return [(kind, name) for kind, name in INCLUDE.findall(path.read_text())]


@pytest.mark.parametrize("room", ["_driver", "_core"])
def test_lower_rooms_know_no_python(room):
    for path in sources(PACKAGE / room, ".hpp", ".cpp", ".def"):
        assert not any("Python.h" in name for _, name in includes(path)), path


def test_the_driver_room_includes_nothing_of_ours_above_it():
    for path in sources(PACKAGE / "_driver", ".hpp", ".cpp"):
        for kind, name in includes(path):
            assert kind == "<" or "/" not in name, f"{path} includes {name}"


def test_the_core_uses_the_driver_room_and_nothing_else():
    forbidden = re.compile(r"\bgetenv\b|\bfprintf\b|\bprintf\b|\bstd::c(out|err)\b")
    for path in sources(PACKAGE / "_core", ".hpp", ".cpp"):
        for kind, name in includes(path):
            assert kind == "<" or "/" not in name or name.startswith("../_driver/"), f"{path} includes {name}"
        if path.name != "lock_order.cpp":  # debug builds: it says what it found and aborts
            assert not forbidden.search(path.read_text()), f"{path} prints or reads the environment"


def test_objects_reach_the_core_through_its_declarations():
    # ftcuda.adapter is the declaration of the header that others are given: no code.
    allowed = ("core.", "libc", "libcpp", "cpython", "ftcuda._objects.", "core", "cython", "ftcuda.adapter")
    for path in sources(PACKAGE / "_objects", ".pyx", ".pxd"):
        for from_module, module in CIMPORT.findall(path.read_text()):
            assert (from_module or module).startswith(allowed), f"{path} cimports {from_module or module}"
        text = path.read_text()
        assert not re.search(r"\bcu\.cu[A-Z]|\bcu(Stream|Event|Mem|Launch|Ctx)[A-Za-z]+\(", text), (
            f"{path} calls the driver"
        )
        assert not re.search(r"threading|critical_section|pymutex", text), f"{path} has a lock of its own"


def test_no_imports_inside_functions():
    for path in sources(PACKAGE / "_objects", ".pyx"):
        for indent, *_ in IMPORT.findall(path.read_text()):
            assert not indent, f"{path} imports inside a function"


def test_the_simulated_driver_may_disagree_with_us():
    allowed = {"../ftcuda/_driver/abi.hpp", "../ftcuda/_driver/entry_points.def"}
    for path in sources(ROOT / "src" / "simdriver", ".hpp", ".cpp"):
        for kind, name in includes(path):
            assert kind == "<" or "ftcuda/" not in name or name in allowed, f"{path} includes {name}"


def test_the_interpreter_of_ptx_stands_alone():
    for path in sources(ROOT / "src" / "simdriver" / "ptx", ".hpp", ".cpp"):
        for kind, name in includes(path):
            assert kind == "<" or "/" not in name, f"{path} includes {name}"


def test_testing_does_not_know_the_core():
    for path in sources(PACKAGE / "testing", ".pyx", ".py"):
        assert "_core" not in path.read_text() and "_objects" not in path.read_text(), path


def test_one_noun_one_name():
    for noun in ("device", "stream", "event", "memory", "buffer", "kernel", "launch", "bound_launch"):
        for path in (f"_core/{noun}.hpp", f"_core/{noun}.cpp", f"_objects/core/{noun}.pxd", f"_objects/{noun}.pyx"):
            assert (PACKAGE / path).exists(), path
        assert (ROOT / "tests" / "objects" / f"test_{noun}.py").exists(), noun


def test_files_stay_small():
    for path in sources(ROOT / "src", ".hpp", ".cpp", ".pyx", ".pxd", ".py"):
        assert len(path.read_text().splitlines()) <= 640, f"{path} holds more than one noun"
