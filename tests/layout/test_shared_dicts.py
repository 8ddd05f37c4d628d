"""A dict that all threads read is not asked by `get`, for which CPython 3.13 takes its lock. Reads sources."""

from pathlib import Path

OBJECTS = Path(__file__).resolve().parents[2] / "src" / "ftcuda" / "_objects"


def test_nobody_locks_the_modules():
    found = [path.name for path in OBJECTS.rglob("*.pyx") if "sys.modules.get(" in path.read_text()]
    assert found == [], "found_in() of stream/awaiting.pyx takes no lock"
