"""A test does not sleep: it would be slow, and rely on luck. Another thread's turn is `time.sleep(0)`. Nor does it take for hung
what is slow: without the GIL, CPython 3.13 needs a minute to start where four busy threads share its core."""

import ast
import re
import tomllib
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
SLEEP = re.compile(r"\btime\.sleep\((?!0\))|\bfrom time import [^\n]*\bsleep\b")
# Who waits can only be guessed on a real driver; and a test of tests that sleep.
ALLOWED = {"conftest.py": 1, "testing/races/behaviour.py": 1}


def test_no_test_sleeps():
    found = {str(path.relative_to(TESTS)): len(SLEEP.findall(path.read_text())) for path in TESTS.rglob("*.py")}
    assert {name: count for name, count in found.items() if count} == ALLOWED


def test_what_a_sleep_is():
    call = "time" + ".sleep"
    assert all(SLEEP.search(f"{call}({span})") for span in ("0.1", "pause", "00")) and not SLEEP.search(f"{call}(0)")
    imported = "from time " + "import monotonic"
    assert SLEEP.search(f"{imported}, sleep") and not SLEEP.search(imported)


def limits_of_processes(text):
    """The limits in seconds of `subprocess.run`, where they are numbers."""
    for call in ast.walk(ast.parse(text)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "subprocess.run":
            yield from (each.value.value for each in call.keywords if each.arg == "timeout" and isinstance(each.value, ast.Constant))


def test_processes_have_time():
    """More than a slow machine takes, and less than pytest gives the test, so that what they said is told."""
    most = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["timeout"]
    limits = [(path.name, limit) for path in TESTS.rglob("*.py") for limit in limits_of_processes(path.read_text())]
    assert limits and [each for each in limits if not 240 <= each[1] < most] == []


def test_what_a_limit_is():
    assert list(limits_of_processes("subprocess.run(['a'], timeout=60)\nsubprocess.run(b, timeout=c)\nother.run(timeout=1)")) == [60]
