"""The same calls by ftcuda and by other libraries: one class ``Backend`` in each module.

A backend is made with the image of kernels.cu. Each of its methods is a case: it makes what thread `index` needs,
and returns what repeats the call so many times. Nothing here imports ftcuda but the module about it: the others may run
in another interpreter.
"""

import time

BURST = 500  # calls between two synchronisations
WIDTHS = (64, 512, 512, 10)  # of the worker's perceptron


def bursts(synchronise, repeat, *things):
    """Returns a loop over what ``repeat(count, *things)`` calls so often, as a program would write it.

    `things` are what the calls need, as arguments: CPython 3.13t takes a lock for each look at a variable of an
    enclosing function.
    """

    def loop(count):
        done = 0
        while done < count:
            part = min(BURST, count - done)
            repeat(part, *things)
            synchronise()
            done += part

    return loop


def timed(request, *things):
    """Returns a loop over ``request(*things)`` that returns the milliseconds of each."""

    def loop(count):
        milliseconds = []
        for _ in range(count):
            begin = time.perf_counter_ns()
            request(*things)
            milliseconds.append((time.perf_counter_ns() - begin) / 1e6)
        return milliseconds

    return loop
