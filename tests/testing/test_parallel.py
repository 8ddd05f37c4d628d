"""The tests in several threads, with what tests/parallel.py adds to pytest-run-parallel."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = """
from tests.parallel import report_warnings

report_warnings()
"""
TESTS = """
import warnings


def test_that_warns():
    warnings.warn("a destructor failed", RuntimeWarning)


def test_that_is_quiet():
    pass
"""


def test_a_warning_in_a_thread_fails_its_test(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "--parallel-threads=2", "--rootdir", tmp_path, tmp_path],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "AssertionError: RuntimeWarning: a destructor failed" in done.stdout and "1 passed, 1 error" in done.stdout
