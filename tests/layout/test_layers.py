"""The layers of docs/design/architecture.md: who may include whom. Reads sources, needs no compiler."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ftcuda"
SIMDRIVER = ROOT / "src" / "simdriver"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.MULTILINE)
CIMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+cimport|cimport\s+(\S+))", re.MULTILINE)
IMPORT = re.compile(r"^([ \t]*)(?:from\s+(\S+)\s+import|import\s+(\S+))", re.MULTILINE)


# The wings of a layer, the lowest first: what stands in one uses its own wing and those before it.
CORE = ("sync", "device", "completion", "stream", "memory", "code", "launch", "graph", "serving")
DECLARATIONS = ("driver", *CORE)
SIMULATOR = ("ptx", "state", "schedule", "calls", "checkers", "timeline", "memory", "device", "code", "graph", "nvrtc")
OBJECTS = ("support", "device", "stream", "memory", "arrays", "code", "launch", "graph", "serving")


# A public class that stands above its handle: its methods make what later wings have, which know the handle.
STAND_ABOVE = re.compile(r"^stand_above\((\w+), (\w+)\)$", re.MULTILINE)


def sources(folder, *suffixes):
    found = [path for path in folder.rglob("*") if path.suffix in suffixes]
    assert found, f"no sources in {folder}"
    return found


def includes(path):
    return [(kind, name) for kind, name in INCLUDE.findall(path.read_text())]


@pytest.mark.parametrize("layer", ["_driver", "_core"])
def test_lower_layers_know_no_python(layer):
    for path in sources(PACKAGE / layer, ".hpp", ".cpp", ".def"):
        assert not any("Python.h" in name for _, name in includes(path)), path


def test_the_driver_layer_includes_nothing_of_ours_above_it():
    for path in sources(PACKAGE / "_driver", ".hpp", ".cpp"):
        for kind, name in includes(path):
            assert kind == "<" or "/" not in name, f"{path} includes {name}"


def test_the_core_uses_the_driver_layer_and_nothing_else():
    forbidden = re.compile(r"\bgetenv\b|\bfprintf\b|\bprintf\b|\bstd::c(out|err)\b")
    for path in sources(PACKAGE / "_core", ".hpp", ".cpp"):
        for kind, name in includes(path):
            layer = (path.parent / name).resolve().relative_to(PACKAGE).parts[0] if kind == '"' else "_core"
            assert layer in ("_driver", "_core"), f"{path} includes {name}"
        if path.name != "lock_order.cpp":  # debug builds: it says what it found and aborts
            assert not forbidden.search(path.read_text()), f"{path} prints or reads the environment"


def uses_in_core(path):
    return [(path.parent / name).resolve() for kind, name in includes(path) if kind == '"']


def uses_in_declarations(path):
    """The files whose declarations a .pxd takes."""
    modules = [first or second for first, second in CIMPORT.findall(path.read_text())]
    return [PACKAGE / "_objects" / f"{name.replace('.', '/')}.pxd" for name in modules if name.startswith("core.")]


def uses_in_objects(path):
    """The files that a module needs, to be compiled and to be imported."""
    texts = [each.read_text() for each in (path, path.with_suffix(".pxd")) if each.exists()]
    modules = {first or second for text in texts for first, second in CIMPORT.findall(text)}
    modules |= {first or second for text in texts for _, first, second in IMPORT.findall(text)}
    used = [ROOT / "src" / name.replace(".", "/") for name in modules if name.startswith("ftcuda._objects.")]
    files = [
        name / "__init__.py" if name.is_dir() else name.with_suffix(".py" if name.with_suffix(".py").exists() else ".pyx")
        for name in used
    ]
    return [each for each in files if each != path]


def uses_in_simulator(path):
    """What a file needs, to be compiled and to be linked: what a header declares stands in the source beside it."""
    headers = [(path.parent / name).resolve() for kind, name in includes(path) if kind == '"' and "ftcuda/" not in name]
    return headers + [each.with_suffix(".cpp") for each in headers if each.with_suffix(".cpp").exists()]


LAYERS = {
    "_core": (PACKAGE / "_core", CORE, (".hpp", ".cpp"), uses_in_core),
    "declarations": (PACKAGE / "_objects" / "core", DECLARATIONS, (".pxd",), uses_in_declarations),
    "_objects": (PACKAGE / "_objects", OBJECTS, (".pyx", ".py"), uses_in_objects),
    "simdriver": (SIMDRIVER, SIMULATOR, (".hpp", ".cpp"), uses_in_simulator),
}


# Files of no wing: they concern every kind of object, or steer the whole simulator.
OUTSIDE = {
    "declarations": {"__init__.pxd"},
    "_objects": {"__init__.py", "immortal.pyx", "process_bound.pyx"},
    "simdriver": {"control.hpp", "control.cpp"},
}


def wing(path, folder):
    """The wing that a file stands in; empty for a file of no wing."""
    inside = path.relative_to(folder).parts if path.is_relative_to(folder) else ()
    return inside[0] if len(inside) > 1 else ""


def steps_up(folder, wings, suffixes, uses):
    """The arrows from a wing to a later one, but for those of public classes that stand above, and to files that are not
    there.
    """
    for path in sources(folder, *suffixes):
        here = "" if STAND_ABOVE.search(path.read_text()) else wing(path, folder)
        for used in uses(path):
            there = wing(used, folder)
            if not used.exists():
                yield f"{path} uses {used}, which is not there"
            elif here in wings and there in wings and wings.index(there) > wings.index(here):
                yield f"{path}, in {here}, uses {used}, in {there}"


@pytest.mark.parametrize("layer", LAYERS)
def test_arrows_between_wings_point_one_way(layer):
    assert list(steps_up(*LAYERS[layer])) == []


@pytest.mark.parametrize("layer", LAYERS)
def test_every_wing_is_known(layer):
    folder, wings, suffixes, _ = LAYERS[layer]
    folders = {path.name for path in folder.iterdir() if path.is_dir() and path.name not in ("__pycache__", "core")}
    assert folders == set(wings)
    outside = [path for path in folder.iterdir() if path.suffix in suffixes]
    assert {path.name for path in outside} <= OUTSIDE.get(layer, set())


def tangle(folder, suffixes, uses):
    """The files that use themselves by way of others, and those that use them."""
    left = {path: {used for used in uses(path) if used != path} for path in sources(folder, *suffixes)}
    while done := {path for path, used in left.items() if not used & left.keys()}:
        left = {path: used for path, used in left.items() if path not in done}
    return sorted(map(str, left))


@pytest.mark.parametrize("layer", LAYERS)
def test_no_file_uses_itself_by_way_of_others(layer):
    folder, _, suffixes, uses = LAYERS[layer]
    assert tangle(folder, suffixes, uses) == []


def test_the_lint_of_tangles_sees_a_source_behind_a_header(tmp_path):
    for name, used in (("a.hpp", ""), ("a.cpp", "a b"), ("b.hpp", "a"), ("b.cpp", "b")):
        (tmp_path / name).write_text("".join(f'#include "{each}.hpp"\n' for each in used.split()))
    assert tangle(tmp_path, (".hpp", ".cpp"), uses_in_core) == []
    assert tangle(tmp_path, (".hpp", ".cpp"), uses_in_simulator) == [str(tmp_path / name) for name in ("a.cpp", "b.cpp", "b.hpp")]


@pytest.mark.parametrize(
    ("file", "include", "words"),
    [
        ("sync/a.hpp", "../stream/b.hpp", "in sync, uses"),
        ("stream/a.hpp", "../stream/c.hpp", "which is not there"),
        ("stream/a.hpp", "../sync/c.hpp", None),
        ("stream/a.hpp", "b.hpp", None),
    ],
)
def test_the_lint_of_the_wings_sees(tmp_path, file, include, words):
    for name in ("sync/c.hpp", "stream/b.hpp"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / file).write_text(f'#include "{include}"\n')
    found = list(steps_up(tmp_path, CORE, (".hpp",), uses_in_core))
    assert (found == []) if words is None else (len(found) == 1 and words in found[0])


def test_only_who_stands_above_uses_later_wings(tmp_path):
    for folder in ("stream", "device"):
        (tmp_path / folder).mkdir()
    (tmp_path / "stream" / "stream.hpp").touch()
    public = tmp_path / "device" / "device.hpp"
    for said, count in (("", 1), ("stand_above(Device, DeviceHandle)\n", 0), ("# stand_above(Device, DeviceHandle)\n", 1)):
        public.write_text(f'#include "../stream/stream.hpp"\n{said}')
        assert len(list(steps_up(tmp_path, CORE, (".hpp",), uses_in_core))) == count


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


CODE = re.compile(r"^(?:cdef class|class|def|cdef .*\) *(?:except|noexcept|:)).*", re.MULTILINE)


def late_imports(text):
    """The imports in functions, and those after the first of them: whoever needs them is below what it needs."""
    code = CODE.search(text)
    return [found[0] for found in IMPORT.finditer(text) if found[1] or (code and found.start() > code.start())]


def test_imports_stand_above_all_code():
    for path in sources(PACKAGE / "_objects", ".pyx"):
        assert late_imports(path.read_text()) == [], path


@pytest.mark.parametrize("code", ["def f():\n    pass", "cdef class A:\n    pass", "cdef int f(A a) except -1:\n    return 0"])
def test_the_lint_of_imports_sees(code):
    assert late_imports(f"import a\n\n\n{code}\n") == []
    assert late_imports(f"{code}\n\n\nimport a.b as _b  # noqa: E402\n") == ["import a.b"]
    assert late_imports(f"{code}\n\n\ndef g():\n    from a import b\n") == ["    from a import"]


def test_the_simulated_driver_may_disagree_with_us():
    allowed = {"../../ftcuda/_driver/abi.hpp", "../../ftcuda/_driver/entry_points.def"}
    for path in sources(SIMDRIVER, ".hpp", ".cpp"):
        for kind, name in includes(path):
            assert kind == "<" or "ftcuda/" not in name or name in allowed, f"{path} includes {name}"


def test_the_interpreter_of_ptx_stands_alone():
    for path in sources(SIMDRIVER / "ptx", ".hpp", ".cpp"):
        for kind, name in includes(path):
            assert kind == "<" or "/" not in name, f"{path} includes {name}"


def test_testing_does_not_know_the_core():
    for path in sources(PACKAGE / "testing", ".pyx", ".py"):
        assert "_core" not in path.read_text() and "_objects" not in path.read_text(), path


def test_the_package_does_not_know_the_checkout():
    """Who installs ftcuda has neither the hazards of the checkout nor its tests."""
    for path in sources(PACKAGE, ".pyx", ".py"):
        for _, first, second in IMPORT.findall(path.read_text()):
            assert (first or second).partition(".")[0] not in ("stress", "tests", "benchmarks", "examples"), path


def test_the_stress_harness_stands_on_public_names():
    for path in sources(PACKAGE / "stress", ".py"):
        assert "_core" not in path.read_text() and "_objects" not in path.read_text(), path
    for path in sources(PACKAGE, ".pyx", ".py"):
        if not path.is_relative_to(PACKAGE / "stress"):
            used = [first or second for _, first, second in IMPORT.findall(path.read_text())]
            assert not any(name.startswith("ftcuda.stress") for name in used), path


def test_hazards_need_neither_plots_nor_the_terminal():
    """Nor does a file of hazards: whoever only imports it needs what ftcuda needs."""
    for path in sources(PACKAGE / "testing", ".py"):
        assert not re.search(r"\b(?:import|from) (?:rich|matplotlib)\b", path.read_text()), path


def test_every_python_file_is_installed():
    """By the meson.build beside it."""
    for build in (PACKAGE / "meson.build", PACKAGE / "testing" / "meson.build", PACKAGE / "stress" / "meson.build"):
        for path in build.parent.glob("*.py"):
            assert f"'{path.name}'" in build.read_text(), f"{build} does not install {path.name}"


def test_one_noun_one_name():
    nouns = {
        "device": ("device",),
        "stream": ("stream", "event"),
        "memory": ("resource", "buffer"),
        "code": ("kernel",),
        "launch": ("launch", "bound_launch"),
    }
    for layer, names in nouns.items():
        for noun in names:
            for file in ("_core/{}/{}.hpp", "_core/{}/{}.cpp", "_objects/core/{}/{}.pxd", "_objects/{}/{}.pyx"):
                assert (PACKAGE / file.format(layer, noun)).exists(), file.format(layer, noun)
            assert (ROOT / "tests" / "objects" / f"test_{noun}.py").exists(), noun


def test_the_document_of_the_locks_has_every_rank():
    ranks = re.findall(r"^RANK\((\w+), (?:calls|alone)\)", (PACKAGE / "_core" / "sync" / "ranks.def").read_text(), re.MULTILINE)
    table = re.findall(r"^\| `(\w+)` \| [^|]* \| [^|]* \| [^|]* \|$", (ROOT / "docs" / "design" / "locks.md").read_text(), re.MULTILINE)
    assert table == ranks
    used = {name for path in sources(PACKAGE / "_core", ".hpp", ".cpp") for name in re.findall(r"Rank::(\w+)", path.read_text())}
    assert used == set(ranks)


def test_files_stay_small():
    for path in sources(ROOT / "src", ".hpp", ".cpp", ".pyx", ".pxd", ".py"):
        assert len(path.read_text().splitlines()) <= 640, f"{path} holds more than one noun"
