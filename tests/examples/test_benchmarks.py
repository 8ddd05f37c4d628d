"""The benchmarks look at what comes of the calls that they time."""

import pytest

from benchmarks.backends import NODES, Counting
from benchmarks.measure import measure


class Graph:
    """Its kernels count, but `lost` of them."""

    def __init__(self, lost=0):
        self.counter = -lost

    def read_counter(self):
        return self.counter


class Backend:
    def __init__(self, lost=0):
        self.shared = Graph(lost)
        self._lost = lost

    def _launches_of(self, graph):
        def repeat(count):
            graph.counter += NODES * count

        return Counting(graph, lambda: None, repeat)

    def shared_graph(self, index):
        return self._launches_of(self.shared)

    def graph(self, index):
        return self._launches_of(Graph(self._lost))


@pytest.mark.parametrize(("case", "threads"), [("graph", 3), ("shared_graph", 1)])
def test_a_kernel_that_is_lost_is_missed(case, threads):
    assert measure(Backend(), case, threads, 20)["rate"] > 0
    with pytest.raises(RuntimeError, match="counted to 799, and not to 800"):
        measure(Backend(lost=1), case, threads, 20)


def test_threads_of_one_graph_are_added_up():
    shared = Graph()
    loops = [Counting(shared, lambda: None, lambda count: None) for _ in range(2)]
    for loop in loops:
        loop(3)
    shared.counter = 2 * 3 * NODES
    loops[0].check(loops)
    shared.counter -= 1
    with pytest.raises(RuntimeError, match="counted to 119, and not to 120"):
        loops[1].check(loops)
