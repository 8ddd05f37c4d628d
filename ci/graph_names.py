"""Writes docs/cuda-core-graph.md: every public name of `cuda.core.graph` beside ftcuda's.

`python ci/graph_names.py FOLDER`, where FOLDER is what a wheel of cuda-core has in it (`pip download --no-deps
cuda-core`, unzipped). Both sides are read from stubs and sources; nothing is imported.
"""

import ast
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "src" / "ftcuda" / "_objects"
# Why something is not the same.
REASONS = {
    "GraphDefinition.__init__": "no thread needs a current device",
    "GraphCompleteOptions": "launches that overlap",
}


@dataclass
class Thing:
    """A public class: its members, each with the names of its parameters, or None for what is none to call."""

    bases: list[str]
    members: dict[str, list[str] | None] = field(default_factory=dict)


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names in their order; with a star those after which come keywords, or which take the rest."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args) if each.arg not in ("self", "cls")]
    if arguments.vararg is not None:
        names.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        names.append("*")
    names += [each.arg for each in arguments.kwonlyargs]
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg is not None else [])


def things(path: Path) -> dict[str, Thing]:
    """All classes of a file."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        thing = found[node.name] = Thing([base.id for base in node.bases if isinstance(base, ast.Name)])
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                marks = " ".join(map(ast.unparse, each.decorator_list))
                is_property = "property" in marks or "setter" in marks
                thing.members.setdefault(each.name, None if is_property else parameters(each))
            elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                thing.members[each.target.id] = None
    return found


def with_inherited(name: str, all_things: dict[str, Thing]) -> dict[str, list[str] | None]:
    """The public members of a class, and those of its bases."""
    thing = all_things.get(name)
    if thing is None:
        return {}
    members: dict[str, list[str] | None] = {}
    for base in thing.bases:
        members |= with_inherited(base, all_things)
    shown = ("__getitem__", "__init__")
    return members | {key: value for key, value in thing.members.items() if not key.startswith("_") or key in shown}


def call(member: list[str] | None) -> str:
    return "" if member is None else f"({', '.join(member)})"


def rows(theirs: dict[str, Thing], ours: dict[str, Thing], public: list[str]) -> list[str]:
    """The table, one row for each class and each member that it has beyond its base."""
    lines = []
    for name in public:
        if name not in ours:
            lines.append(f"| `{name}` | | not offered: {REASONS.get(name, '')} |")
            continue
        mine, wanted = with_inherited(name, ours), theirs[name].members
        lines.append(f"| `{name}` | | {REASONS.get(name, 'the same')} |")
        for member, given in wanted.items():
            if member.startswith("_") and member != "__getitem__":
                continue
            key, there = f"{name}.{member}", f"`{member}{call(given)}`"
            if member not in mine:
                lines.append(f"| | {there} | not offered: {REASONS.get(key, '')} |")
            elif mine[member] != given:
                lines.append(f"| | {there} | `{member}{call(mine[member])}` |")
            else:
                lines.append(f"| | {there} | the same |")
        for member in sorted(set(mine) - set(with_inherited(name, theirs)) - {"__init__"}):
            lines.append(f"| | | `{member}{call(mine[member])}`, of ftcuda alone |")
    return lines


def read(folder: Path, pattern: str) -> dict[str, Thing]:
    found: dict[str, Thing] = {}
    for path in sorted(folder.glob(pattern)):
        found |= things(path)
    return found


def public_names(folder: Path) -> list[str]:
    """What the stubs of a package export."""
    names = []
    for path in sorted(folder.glob("*.pyi")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names += ast.literal_eval(node.value)
    return sorted(names)


def main(folder: Path) -> None:
    (version,) = (path.name.removesuffix(".dist-info").split("-")[1] for path in folder.glob("cuda_core-*.dist-info"))
    (package,) = folder.glob("cuda/core/cu13/graph")
    theirs = read(package, "*.pyi")
    ours = read(OURS / "graph", "*.py*i") | read(OURS / "graph", "*.py")
    lines = rows(theirs, ours, public_names(package))
    head = [
        f"# `cuda.core.graph` {version}, name by name",
        "",
        "Written by `ci/graph_names.py`. Members stand with the class that has them first. "
        "An empty first column is the class above.",
        "",
        "| class | there | here |",
        "| --- | --- | --- |",
    ]
    (ROOT / "docs" / "cuda-core-graph.md").write_text("\n".join([*head, *lines, ""]))
    print(f"{sum('the same' in line for line in lines)} of {len(lines)} the same")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
