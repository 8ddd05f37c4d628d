"""Conditional nodes: in a definition, and captured."""

from common import Bench, core, graph

bench = Bench()
definition = graph.GraphDefinition()
chosen = definition.if_then(definition.create_condition(default_value=1))
chosen.then.launch(bench.one, bench.append, bench.memory, 1)
passed_over = chosen.if_then(definition.create_condition(default_value=0))
passed_over.then.launch(bench.one, bench.append, bench.memory, 2)
passed_over.launch(bench.one, bench.append, bench.memory, 3)
assert isinstance(chosen, graph.IfNode) and len(chosen.branches) == 1
made = definition.instantiate()
bench.run(made)
assert bench.written() == [1, 3]
made.close()
builder = bench.device.create_graph_builder().begin_building()
body = builder.if_then(builder.create_condition(default_value=1)).begin_building()
core.launch(body, bench.one, bench.append, bench.memory, 4)
body.end_building()
made = builder.end_building().complete()
bench.run(made)
assert bench.written() == [4]
made.close()
