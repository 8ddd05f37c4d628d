"""The same calls by ftcuda and by other libraries: one class ``Backend`` in each module.

A backend is made with the image of kernels.cu. Each of its methods is a case: it makes what thread `index` needs,
and returns what repeats the call so many times. Nothing here imports ftcuda but the module about it: the others may run
in another interpreter.
"""

import time

BURST = 500  # calls between two synchronisations
GRAPH_BURST = 8  # the same, of graphs
NODES = 20  # kernels in a graph
FEW_NODES = 4  # of another one
WIDTHS = (64, 512, 512, 10)  # of the worker's perceptron
WEIGHT = 1 / 128  # each of the worker's, so that an answer is exactly an eighth of the sum of the inputs


def bursts(synchronise, repeat, *things, size=BURST):
    """Returns a loop over what ``repeat(count, *things)`` calls so often, as a program would write it.

    `things` are what the calls need, as arguments: CPython 3.13t takes a lock for each look at a variable of an
    enclosing function.
    """

    def loop(count):
        done = 0
        while done < count:
            part = min(size, count - done)
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


def rebound_sum(kernels, launches):
    """What so many launches of kernels add up to: launch n has the arguments n, n + 1 and n + 2."""
    return kernels * sum(n * (n + 1) + n + 2 for n in range(launches)) % 2**32


class Counting:
    """A loop over launches of one graph, or of a kernel, each of whose kernels adds to a counter.

    `counter` has ``read()``, and ``expected(launches)``: what so many launches add up to. Threads that launch the same
    graph have a loop each, and one counter; or one of its own each thread.
    """

    def __init__(self, counter, synchronise, repeat, *things, size=GRAPH_BURST):
        self._counter, self._launches = counter, 0
        self._loop = bursts(synchronise, repeat, *things, size=size)

    def __call__(self, count):
        self._loop(count)
        self._launches += count

    def check(self, loops):
        """Raises unless every kernel counted. `loops` are those of all threads, which are over."""
        expected = self._counter.expected(sum(each._launches for each in loops if each._counter is self._counter))
        if (counted := self._counter.read()) != expected:
            raise RuntimeError(f"the kernels of a graph counted to {counted}, and not to {expected}")


def wrong(pixels, answer):
    """What to raise for an answer of the worker that is not an eighth of its input."""
    return RuntimeError(f"the answer to {pixels[0]} is {answer[-1]}, and not {pixels[0] / 8}")
