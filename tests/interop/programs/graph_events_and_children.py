"""Events in a graph, and a child graph that is replaced."""

from common import Bench, graph

bench = Bench()
event = bench.device.create_event()
first, second = graph.GraphDefinition(), graph.GraphDefinition()
first.launch(bench.one, bench.append, bench.memory, 1)
second.launch(bench.one, bench.append, bench.memory, 2)
definition = graph.GraphDefinition()
child = definition.embed(first)
recorded = child.record(event)
waited = recorded.wait(event)
assert isinstance(recorded, graph.EventRecordNode) and isinstance(waited, graph.EventWaitNode)
assert len(child.child_graph.nodes()) == 1 and child.graph == definition
made = definition.instantiate()
bench.run(made)
assert bench.written() == [1] and event.is_done
made[child].update(second)
bench.run(made)
assert bench.written() == [2]
made.close()
