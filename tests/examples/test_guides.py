"""The program in the guide to allocators runs."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "allocators.md"


@pytest.mark.thread_unsafe(reason="another thread may be the one that gives the memory back")
def test_the_allocator_of_the_guide(device, stream):
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names = {}
    exec(compile(program, GUIDE.name, "exec"), names)
    resource = names["Leased"]()
    with resource.allocate(64, stream=stream) as buffer:
        buffer.fill(7, stream=stream)
        stream.sync()
        assert bytes(memoryview(buffer)) == b"\7" * 64
    device.sync()
    assert not resource._live
