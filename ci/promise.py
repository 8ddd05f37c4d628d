"""Writes the table of docs/promise.md from docs/promise.toml: `python ci/promise.py`. tests/layout compares the two."""

import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
MARK = "<!-- the table below is written by ci/promise.py -->"


def table() -> str:
    """Returns the table: one row for each class and level."""
    lines = ["| object | atomic | shared |", "| --- | --- | --- |"]
    for name, section in tomllib.loads((DOCS / "promise.toml").read_text()).items():
        members = section["members"]
        cells = [
            ", ".join(f"`{member}`" for member, (level, _) in members.items() if level == wanted)
            for wanted in ("atomic", "shared")
        ]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def document() -> str:
    """Returns docs/promise.md as it should be."""
    head = (DOCS / "promise.md").read_text().partition(MARK)[0]
    return f"{head}{MARK}\n\n{table()}\n"


if __name__ == "__main__":
    (DOCS / "promise.md").write_text(document())
