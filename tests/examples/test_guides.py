"""The programs in the guides run: so far that of an allocator."""

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guide"


def programs():
    for path in sorted(GUIDES.glob("*.md")):
        for number, text in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)):
            if "import" in text:  # the others are lines of a program, not a program
                yield pytest.param(text, id=f"{path.stem} {number}")


@pytest.mark.parametrize("text", list(programs()))
def test_program(text, device, stream):
    names = {}
    exec(compile(text, "guide", "exec"), names)
    resource = names["Leased"]()
    with resource.allocate(64, stream=stream) as buffer:
        buffer.fill(7, stream=stream)
        stream.sync()
        assert bytes(memoryview(buffer)) == b"\7" * 64
    device.sync()
    assert not resource._live
