"""Graphs: many submissions that are captured once and launched as one, by cuda.core's names."""

from ftcuda._objects.graph.graph import Graph
from ftcuda._objects.graph.graph_builder import GraphBuilder
from ftcuda._objects.graph.graph_condition import GraphCondition
from ftcuda._objects.graph.graph_options import GraphCompleteOptions, GraphDebugPrintOptions

__all__ = ["Graph", "GraphBuilder", "GraphCompleteOptions", "GraphCondition", "GraphDebugPrintOptions"]
