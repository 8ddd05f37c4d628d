"""Graphs: many submissions that are captured once and launched as one, by cuda.core's names."""

from ftcuda._objects.graph.bound_graph import BoundGraph
from ftcuda._objects.graph.executable_node import (
    ExecutableChildGraphNode,
    ExecutableEventRecordNode,
    ExecutableEventWaitNode,
    ExecutableGraphNode,
    ExecutableHostCallbackNode,
    ExecutableKernelNode,
    ExecutableMemcpyNode,
    ExecutableMemsetNode,
)
from ftcuda._objects.graph.graph import Graph
from ftcuda._objects.graph.graph_builder import GraphBuilder
from ftcuda._objects.graph.graph_condition import GraphCondition
from ftcuda._objects.graph.graph_definition import GraphDefinition
from ftcuda._objects.graph.graph_node import (
    AllocNode,
    ChildGraphNode,
    ConditionalNode,
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    GraphNode,
    HostCallbackNode,
    IfElseNode,
    IfNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    SwitchNode,
    WhileNode,
)
from ftcuda._objects.graph.graph_options import GraphCompleteOptions, GraphDebugPrintOptions
from ftcuda._objects.launch.graph_scratch import GraphScratch
from ftcuda._objects.launch.parameter import Parameter

__all__ = [
    "AllocNode",
    "BoundGraph",
    "ChildGraphNode",
    "ConditionalNode",
    "EmptyNode",
    "EventRecordNode",
    "EventWaitNode",
    "ExecutableChildGraphNode",
    "ExecutableEventRecordNode",
    "ExecutableEventWaitNode",
    "ExecutableGraphNode",
    "ExecutableHostCallbackNode",
    "ExecutableKernelNode",
    "ExecutableMemcpyNode",
    "ExecutableMemsetNode",
    "FreeNode",
    "Graph",
    "GraphBuilder",
    "GraphCompleteOptions",
    "GraphCondition",
    "GraphDebugPrintOptions",
    "GraphDefinition",
    "GraphNode",
    "GraphScratch",
    "HostCallbackNode",
    "IfElseNode",
    "IfNode",
    "KernelNode",
    "MemcpyNode",
    "MemsetNode",
    "Parameter",
    "SwitchNode",
    "WhileNode",
]
