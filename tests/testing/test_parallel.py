"""The tests in several threads, with what tests/parallel.py adds to pytest-run-parallel."""

from pathlib import Path

CONFTEST = """
from tests.parallel import report_warnings

report_warnings()
"""
# Of an installation that is the working tree: its loader is there before pytest looks.
EDITABLE = "ignore:Module already imported so cannot be rewritten"
TESTS = """
import warnings


def test_that_warns():
    warnings.warn("a destructor failed", RuntimeWarning)


def test_that_is_quiet():
    pass
"""


def test_a_warning_in_a_thread_fails_its_test(tmp_path, run_python):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    arguments = ["-q", "-W", "error", "-W", EDITABLE, "--parallel-threads=2", "--rootdir", str(tmp_path), str(tmp_path)]
    output = run_python(f"import sys, pytest; sys.exit(pytest.main({arguments}))", expect=1, PYTHONPATH=str(Path(__file__).parents[2]))
    assert "AssertionError: RuntimeWarning: a destructor failed" in output and "1 passed, 1 error" in output
