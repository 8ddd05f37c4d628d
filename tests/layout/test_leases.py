"""No method of something that may be closed touches it after its lease ended: the lease lasts as long as the method."""

import re
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "src" / "ftcuda" / "_core"
METHOD = re.compile(r"^(?:[\w:<>&*]+ )+&?\*?(\w+)::(\w+)\([^;{]*\)[^;{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
OWN_LEASE = re.compile(r"^( *).*\bLease<\w+> \w+\(\*this\);", re.MULTILINE)
FILES = sorted(path for path in CORE.rglob("*.cpp") if OWN_LEASE.search(path.read_text()))


def methods_of(text):
    return [(found[1], found[2], found[3]) for found in METHOD.finditer(text)]


def late_uses(text):
    """What goes on, in a method without a lease, behind a call of one that has a lease; close() needs none."""
    methods = methods_of(text)
    leased = {(kind, name) for kind, name, body in methods if OWN_LEASE.search(body)}
    for kind, name, body in methods:
        if OWN_LEASE.search(body) or name == "close":
            continue
        for call in re.finditer(r"(?<![.>\w:])(return )?(\w+)\(", body):
            if (kind, call[2]) in leased and not call[1]:
                yield f"{kind}::{name} goes on after {call[2]}"


def nested_leases(text):
    for kind, name, body in methods_of(text):
        for lease in OWN_LEASE.finditer(body):
            if lease[1] != "    ":
                yield f"{kind}::{name} has its lease for a part of it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_lease_lasts_as_long_as_its_method(path):
    text = path.read_text()
    assert [*nested_leases(text), *late_uses(text)] == []


def test_the_lint_sees_what_it_is_for():
    """As `graph[node].update()` was beside `close()`: it looked where the graph was launched, which was gone."""
    text = (CORE / "graph" / "graph.cpp").read_text()
    own = "    // Until what was kept is let go of: the end of the graph forgets where it was launched.\n"
    before, after = text.split(own)
    without = before + after.split("return Reason::closed;\n", 1)[1]
    assert [*late_uses(without)] == ["Graph::update goes on after with_node"]
    nested = text.replace("    const Lease<Graph> lease(*this);", "    {\n        const Lease<Graph> lease(*this);\n    }", 1)
    assert len([*nested_leases(nested)]) == 1
