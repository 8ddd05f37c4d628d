"""One noun has one name and one wing in the core and among the objects, and the wings stand in one order."""

import re

import pytest

from tests.layout.test_layers import CORE, DECLARATIONS, OBJECTS, PACKAGE, STAND_ABOVE, sources, wing

# Nouns that stand in wings of different names, and why.
ELSEWHERE = {
    "deferred_release": "every call lets go of what is done before it raises or warns, so that raising in `support` needs it",
    "when_done": "the part of the core's completion wing that objects have in `support`",
}
DECLARE = re.compile(r"^(?:cdef .*= )?declare_handle\((\w+)(?:, \w+)?\)$", re.MULTILINE)
EXTERN = re.compile(r'^cdef extern from "_core/([^"]+)\.hpp"', re.MULTILINE)


def nouns(folder, *suffixes, leave_out=()):
    """The wings of each file name."""
    found = {}
    for path in sources(folder, *suffixes):
        here = wing(path, folder)
        if here and here not in leave_out and path.stem != "__init__":
            found.setdefault(path.stem, set()).add(here)
    return found


def test_the_wings_of_objects_stand_in_the_order_of_the_core():
    assert [each for each in OBJECTS if each in CORE] == [each for each in CORE if each in OBJECTS]
    # Locks and leases, of which objects have none; and what is over later, of which they have the part in `support`.
    assert {*CORE} - {*OBJECTS} == {"sync", "completion"}
    assert ("driver", *CORE) == DECLARATIONS


def in_other_wings(core, objects):
    return {name for name in core.keys() & objects.keys() if core[name] != objects[name]}


def test_a_noun_is_in_the_wing_of_the_same_name():
    core = nouns(PACKAGE / "_core", ".hpp", ".cpp")
    objects = nouns(PACKAGE / "_objects", ".pyx", ".py", leave_out=("core",))
    assert in_other_wings(core, objects) == set(ELSEWHERE)
    both = core.keys() & objects.keys()
    assert both >= {"account", "bound_launch", "buffer", "cache", "copy", "device", "event", "kernel", "launch", "resource"}
    assert both >= {"stream", "tensor_map"}


@pytest.mark.parametrize(
    ("core", "objects", "found"),
    [
        ({"cache": {"memory"}}, {"cache": {"memory"}}, set()),
        ({"cache": {"memory"}}, {"view": {"arrays"}}, set()),
        ({"tensor_map": {"launch"}}, {"tensor_map": {"arrays"}}, {"tensor_map"}),
        ({"cache": {"memory"}}, {"cache": {"memory", "device"}}, {"cache"}),
    ],
)
def test_the_lint_of_the_names_sees(core, objects, found):
    assert in_other_wings(core, objects) == found


def test_declarations_stand_where_the_header_does():
    for path in sources(PACKAGE / "_objects" / "core", ".pxd"):
        here = path.relative_to(PACKAGE / "_objects" / "core").with_suffix("")
        declared = EXTERN.findall(path.read_text())
        assert not declared or str(here) in declared, path


def test_handle_and_public_class_share_a_wing():
    declared, above = {}, {}
    for path in sources(PACKAGE / "_objects", ".pyx"):
        for handle in DECLARE.findall(path.read_text()):
            declared[handle] = path
        for public, handle in STAND_ABOVE.findall(path.read_text()):
            above[handle] = (public, path)
    assert declared.keys() == above.keys()
    table = (PACKAGE.parents[1] / "docs" / "design" / "architecture.md").read_text()
    for handle, path in declared.items():
        public, public_path = above[handle]
        assert path.stem.endswith("_handle")
        assert path.parent == public_path.parent, f"{public} is in {public_path.parent.name}, {handle} in {path.parent.name}"
        assert re.search(rf"^\| `{public}`, .*`{handle}`", table, re.MULTILINE), f"{handle} is missing in architecture.md"
