"""Options of graphs: names and defaults as in cuda.core 1.x."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass
class GraphCompleteOptions:
    """Options of a graph that is completed.

    Attributes
    ----------
    auto_free_on_launch : bool
        Memory that the graph allocated, and did not free, is freed before it is launched again.
    upload_stream : Stream, optional
        Where the graph is uploaded at once; None: with its first launch.
    device_launch : bool
        Kernels may launch it. Not together with `auto_free_on_launch`.
    use_node_priority : bool
        The nodes' own priorities count, and not the stream's.
    max_concurrency : int
        How many launches may run at once, in different streams, up to 256; cuda.core has none such. 1: they run one
        after the other, as CUDA's do. More is for graphs whose launches do not disturb each other: the driver has an
        executable for each, which is made when a stream comes for which there is none, the first two at once. It makes
        no second one of a graph with conditional nodes, or with memory of its own.
    """

    auto_free_on_launch: bool = False
    upload_stream: Any = None
    device_launch: bool = False
    use_node_priority: bool = False
    max_concurrency: int = 1


@dataclass
class GraphDebugPrintOptions:
    """What `GraphBuilder.debug_dot_print` prints of each node, beside its kind.

    Attributes
    ----------
    verbose : bool
        All of it.
    runtime_types : bool
        Structures of the CUDA runtime in place of the driver's.
    kernel_node_params, memcpy_node_params, memset_node_params, host_node_params, event_node_params : bool
        The parameters of nodes of a kind.
    ext_semas_signal_node_params, ext_semas_wait_node_params, batch_mem_op_node_params : bool
        The same.
    kernel_node_attributes : bool
    handles : bool
        Of nodes and functions.
    mem_alloc_node_params, mem_free_node_params, conditional_node_params : bool
        The parameters of nodes of a kind.
    extra_topo_info : bool
        The numbers of edges.
    """

    verbose: bool = False
    runtime_types: bool = False
    kernel_node_params: bool = False
    memcpy_node_params: bool = False
    memset_node_params: bool = False
    host_node_params: bool = False
    event_node_params: bool = False
    ext_semas_signal_node_params: bool = False
    ext_semas_wait_node_params: bool = False
    kernel_node_attributes: bool = False
    handles: bool = False
    mem_alloc_node_params: bool = False
    mem_free_node_params: bool = False
    batch_mem_op_node_params: bool = False
    extra_topo_info: bool = False
    conditional_node_params: bool = False


# CUgraphDebugDot_flags, cuda.h 13.0: the bits stand in the order of the fields.
def debug_flags(options: GraphDebugPrintOptions) -> int:
    """Returns the driver's flags for what is to be printed."""
    return sum(1 << number for number, field in enumerate(fields(options)) if getattr(options, field.name))
