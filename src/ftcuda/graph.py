"""Graphs: many submissions that are captured once and launched as one, by cuda.core's names."""

from ftcuda._objects.graph.bound_graph import BoundGraph
from ftcuda._objects.graph.graph import Graph
from ftcuda._objects.graph.graph_builder import GraphBuilder
from ftcuda._objects.graph.graph_condition import GraphCondition
from ftcuda._objects.graph.graph_options import GraphCompleteOptions, GraphDebugPrintOptions
from ftcuda._objects.launch.parameter import Parameter

__all__ = [
    "BoundGraph",
    "Graph",
    "GraphBuilder",
    "GraphCompleteOptions",
    "GraphCondition",
    "GraphDebugPrintOptions",
    "Parameter",
]
