"""docs/design/collector.md: what `__dealloc__` may touch. Reads sources, needs no compiler."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = ROOT / "src" / "ftcuda" / "_objects"
CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:(?:    .*)?\n)*)", re.MULTILINE)
FIELD = re.compile(r"^    cdef (?:readonly |public )?([\w.\[\]]+(?: [\w.]+)?\*?) (\w+)(?:[ ]*#.*)?$", re.MULTILINE)
NEVER_CLEARED = re.compile(r"^@cython\.no_gc_clear.*\ncdef class (\w+)", re.MULTILINE)
METHOD = re.compile(r"^    (?:@\w+\n    )*(?:cdef |cpdef |def ).*?\(.*\n(?:(?:     .*)?\n)*", re.MULTILINE)


def classes(folder=OBJECTS):
    """Each cdef class: its bases by name, its fields with their types, and the text of its `__dealloc__`."""
    found = {}
    for path in sorted(folder.rglob("*.p[yx][xd]")):
        for name, base, body in CLASS.findall(path.read_text()):
            entry = found.setdefault(name, {"base": base, "fields": {}, "dealloc": None, "path": path, "cleared": True})
            entry["base"] = entry["base"] or base
            entry["fields"] |= {field: kind for kind, field in FIELD.findall(body)}
            for method in METHOD.findall(body):
                if "def __dealloc__" in method:
                    entry["dealloc"] = method
        for name in NEVER_CLEARED.findall(path.read_text()):
            found[name]["cleared"] = False
    return found


def fields_of(name, found):
    inherited = fields_of(found[name]["base"], found) if found[name]["base"] in found else {}
    return inherited | found[name]["fields"]


def is_python(kind, found):
    """Whether a field of this type is a counted reference, which the collector clears."""
    return not kind.endswith("*") and (kind in found or kind in {"object", "dict", "list", "tuple", "str", "bytes", "set"})


def faults(found):
    for name, entry in found.items():
        fields = fields_of(name, found)
        for used in re.findall(r"\bself\.(\w+)", entry["dealloc"] or "") if entry["cleared"] else ():
            if used not in fields:
                yield f"{name}.__dealloc__ uses self.{used}, which is not a field of C's: what it reaches may be cleared"
            elif is_python(fields[used], found):
                yield f"{name}.__dealloc__ uses self.{used}, a Python field, which the collector has cleared"
        if re.search(r"(?<![\w.])self(?!\.|\w|\))", entry["dealloc"] or ""):
            yield f"{name}.__dealloc__ hands itself on"


def test_dealloc_touches_no_python_field():
    assert list(faults(classes())) == []


def test_the_classes_are_found():
    found = classes()
    uncleared = [name for name, entry in found.items() if not entry["cleared"]]
    assert uncleared == ["BoundGraph", "BufferHandle", "BatchFuture", "Batcher"]  # each with its reason in the document
    with_dealloc = {name for name, entry in found.items() if entry["dealloc"]}
    written = sum(path.read_text().count("def __dealloc__") for path in OBJECTS.rglob("*.pyx"))
    assert len(with_dealloc) == written >= 12
    assert is_python(fields_of("Buffer", found)["_memory_resource"], found) and not is_python(fields_of("Buffer", found)["_buffer"], found)


@pytest.mark.parametrize(
    ("fields", "line", "words"),
    [
        ("cdef object _owner", "drop(self._owner)", "Python field"),
        ("cdef Other _other", "self._other.close()", "Python field"),
        ("cdef core.Buffer* _buffer", "self.close()", "not a field"),
        ("cdef core.Buffer* _buffer", "announce(self, 1)", "hands itself on"),
        ("cdef core.Buffer* _buffer  # constant", "self._buffer.release()", None),
        ("cdef atomic[Borrowed] _named", "Py_XDECREF(self._named.load())", None),
    ],
)
def test_the_lint_sees(tmp_path, fields, line, words):
    (tmp_path / "bad.pyx").write_text(
        f"cdef class Other:\n    cdef int _x\n\n\ncdef class Bad:\n    {fields}\n\n    def __dealloc__(self):\n        {line}\n\n    def f(self):\n        self._other\n"
    )
    found = list(faults(classes(tmp_path)))
    assert (found == []) if words is None else (len(found) == 1 and words in found[0])
