"""What pytest-run-parallel leaves out."""

import functools

from pytest_run_parallel import plugin


def report_warnings():
    """Makes a Warning that a test raises in one of several threads a failure.

    pytest-run-parallel ignores it, though warnings are errors here: a destructor that failed would pass unnoticed.
    """
    wrap = plugin.wrap_function_parallel

    def wrap_reporting(function, *counts):
        @functools.wraps(function)
        def reporting(*arguments, **keywords):
            try:
                return function(*arguments, **keywords)
            except Warning as warning:
                raise AssertionError(f"{type(warning).__name__}: {warning}") from warning

        return wrap(reporting, *counts)

    plugin.wrap_function_parallel = wrap_reporting
