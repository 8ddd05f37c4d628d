"""The hazard in docs/stress.md runs as it stands, and finds what the page says that it finds."""

import re

import pytest

from tests.conftest import simulated_only
from tests.testing.test_stress import ROOT, stress

pytest.importorskip("rich", reason="the harness prints with rich")
pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="each test is a process that uses all cores")]


@pytest.fixture
def example():
    (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "stress.md").read_text(), re.DOTALL)
    return text


@pytest.mark.parametrize("how", [("--seeds", 20), ("--seeds", 200, "--sched", "pct:3")])
def test_the_example_is_clean(example, tmp_path, how):
    (tmp_path / "my_cache.py").write_text(example)
    said = stress(tmp_path, "my_cache.py", *how)
    assert re.search(rf"my_cache.py │ {how[1]} +│ .* clean", said)


def test_the_example_finds_the_missing_lock(example, tmp_path):
    without = example.replace("        with self._lock:\n", "        if True:\n")
    assert without != example
    (tmp_path / "my_cache.py").write_text(without)
    said = stress(tmp_path, "my_cache.py", "--seeds", 200, "--sched", "pct:3", expect=1)
    assert re.search(r"^AssertionError: key \d has [2-8] buffers$", said, re.MULTILINE)
    assert re.search(r"^repeat with: python -m ftcuda.stress .* --hazard my_cache.py ", said, re.MULTILINE)
