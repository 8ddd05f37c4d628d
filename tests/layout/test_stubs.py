"""The type stubs against what is there, and a program that uses them under mypy's strict rules."""

import ast
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ftcuda

OBJECTS = Path(__file__).parents[2] / "src" / "ftcuda" / "_objects"
STUBS = {path.stem: path for path in sorted(OBJECTS.rglob("*.pyi"))}


def test_each_compiled_module_of_public_names_has_a_stub():
    modules = {
        getattr(ftcuda, name).__module__ for name in ftcuda.__all__ if hasattr(getattr(ftcuda, name), "__module__")
    }
    compiled = {path.stem for path in OBJECTS.rglob("*.pyx")} & {name.rpartition(".")[2] for name in modules}
    assert compiled <= set(STUBS)


@pytest.mark.parametrize("name", STUBS)
def test_stub_and_module_say_the_same(name):
    stub = STUBS[name]
    module = importlib.import_module(".".join(stub.relative_to(OBJECTS.parents[1]).with_suffix("").parts))
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(module, node.name))
        if not isinstance(node, ast.ClassDef) or any(ast.unparse(base) == "Protocol" for base in node.bases):
            continue
        thing = getattr(module, node.name)
        stated = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        stated |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
        for member in stated - {"__init__", "__getattr__", "__setattr__", "__exit__"}:
            assert member in dir(thing) or (name in ("resource", "device_features") and "__getattr__" in vars(thing)), (
                f"{node.name}.{member}"
            )
        there = {
            member
            for member in vars(thing)
            if not member.startswith("_") and not isinstance(vars(thing)[member], tuple | dict)
        }
        inherited = {member for base in thing.__mro__[1:] for member in vars(base)}
        fields = set(getattr(thing, "_fields", ()))
        assert there - inherited - fields <= stated, f"{node.name} has {there - inherited - stated}"
        assert inspect.isclass(thing)


PROGRAM = """
from pathlib import Path

import numpy as np

import ftcuda
from ftcuda import Buffer, Device, Kernel, LaunchConfig, Program, ProgramOptions, StridedMemoryView, launch
from ftcuda.memory import Allocation, hooks
from ftcuda.typing import CompilerBackendType, ObjectCodeFormatType, SourceCodeType

device = Device(0)
stream = device.create_stream(options={"nonblocking": True})
options = ProgramOptions(include_path=("/inc", Path("/b")), define_macro=["A", ("B", "1")], no_cache=True)
words: list[bytes] = options.as_bytes(CompilerBackendType.NVRTC, "ptx")
code = Program("...", SourceCodeType.CXX, options).compile(ObjectCodeFormatType.CUBIN)
image: bytes | str = code.code
kernel: Kernel = Program("...", "c++").compile().get_kernel("k")
with device.allocate(64, stream=stream) as buffer:
    buffer.copy_from(np.zeros(16, np.float32), stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (4, 4), dtype=np.float32)
    launch(stream, LaunchConfig(grid=np.int64(1), block=(16, 1)), kernel, buffer, view, 1.0, np.float32(2))
    copied: Buffer = buffer.copy_to(stream=stream)
    array: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = np.empty(16, np.float32)
    array = buffer.copy_to(array, stream=stream)
    milliseconds: float = stream.record() - stream.record()
    pinned = np.asarray(ftcuda.LegacyPinnedMemoryResource().allocate(64))

def seen(allocation: Allocation) -> None:
    print(allocation.size)

with hooks.on_allocate(seen):
    limited = ftcuda.LimitingMemoryResource(device.memory_resource, 1 << 20)
    statistics: int = limited.statistics.peak_bytes
"""
WRONG = "from ftcuda import Device\nDevice(0).create_stream().record().colour\nDevice(0).allocate('64')\n"


@pytest.fixture
def programs(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "include": ["*.py"]}')
    return tmp_path


def said_by(folder, module, *arguments):
    """What a checker says of each file, by its name."""
    pytest.importorskip(module, reason=f"no {module}")
    command = [sys.executable, "-m", module, *arguments]
    # On PATH is where --verifytypes looks for the python whose packages it reads.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    sources = Path(ftcuda.__file__).parents[1]
    if sources == OBJECTS.parents[1]:  # an editable installation, whose import hook the checkers do not know
        environment |= {"MYPYPATH": str(sources), "PYTHONPATH": str(sources)}
    return subprocess.run(command, capture_output=True, encoding="utf-8", cwd=folder, timeout=250, env=environment).stdout


def test_a_program_passes_mypy(programs):
    said = said_by(programs, "mypy", "--strict", "--cache-dir", str(programs / "cache"), "right.py", "wrong.py")
    assert "right.py" not in said
    assert '"Event" has no attribute "colour"' in said and 'Argument 1 to "allocate"' in said


def test_a_program_passes_pyright(programs):
    """By basedpyright, which is pyright in a wheel of its own."""
    said = said_by(programs, "basedpyright", "--pythonpath", sys.executable)
    assert "right.py" not in said
    assert 'Cannot access attribute "colour" for class "Event"' in said and 'is not assignable to "int"' in said


def test_every_public_type_is_known(tmp_path):
    said = said_by(tmp_path, "basedpyright", "--verifytypes", "ftcuda", "--ignoreexternal")
    assert "Type completeness score: 100%" in said, said
