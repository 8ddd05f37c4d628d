"""Edges that are added, taken away and replaced."""

from common import Bench, graph

bench = Bench()
definition = graph.GraphDefinition()
one, two, three = (definition.launch(bench.one, bench.append, bench.memory, value) for value in (1, 2, 3))
two.pred.add(one)
two.succ.add(three)
assert definition.edges() == {(one, two), (two, three)} and one in two.pred and len(three.pred) == 1
graph_of_three = definition.instantiate()
bench.run(graph_of_three)
assert bench.written() == [1, 2, 3]
one.succ = {three}
three.succ.update({two})
two.pred.discard(one)
three.pred.discard(two)
two.succ.clear()
assert definition.edges() == {(one, three), (three, two)}
bench.run(definition.instantiate())
assert bench.written() == [1, 3, 2]
three.destroy()
assert not three.is_valid and definition.nodes() == {one, two} and definition.edges() == set()
bench.run(graph_of_three)
assert bench.written() == [1, 2, 3]
graph_of_three.close()
