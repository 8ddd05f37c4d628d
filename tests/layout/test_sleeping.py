"""A test does not sleep: it would be slow, and rely on luck. Another thread's turn is `time.sleep(0)`."""

import re
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
