"""What objects say that are asked to go to another process and cannot: all that are handles of the driver or of memory.
"""

from ftcuda._objects.memory.account import (
    AccountingMemoryResource,
    LimitingMemoryResource,
    StatisticsMemoryResource,
)
from ftcuda._objects.code.kernel import Kernel, KernelAttributes, KernelOccupancy
from ftcuda._objects.graph.bound_graph import BoundGraph
from ftcuda._objects.graph.executable_node import ExecutableGraphNode
from ftcuda._objects.graph.graph import Graph
from ftcuda._objects.graph.graph_builder import GraphBuilder
from ftcuda._objects.graph.graph_definition import GraphDefinition
from ftcuda._objects.graph.graph_node import GraphNode
from ftcuda._objects.launch.bound_launch import BoundLaunch
from ftcuda._objects.launch.graph_scratch import GraphScratch
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.support.hooks import Hook
from ftcuda._objects.memory.host_device import HostDeviceBuffer
from ftcuda._objects.stream.event import Event
from ftcuda._objects.memory.cache import CachingMemoryResource
from ftcuda._objects.memory.device_memory import DeviceMemoryResource, SynchronousMemoryResource
from ftcuda._objects.memory.graph_memory import GraphMemoryResource, GraphMemoryResourceAttributes
from ftcuda._objects.memory.managed_memory import ManagedMemoryResource
from ftcuda._objects.memory.pinned_memory import LegacyPinnedMemoryResource, PinnedMemoryResource
from ftcuda._objects.memory.resource import MemoryPoolAttributes, MemoryResource
from ftcuda._objects.memory.staging_pool import StagingPool
from ftcuda._objects.memory.tracking import TrackingMemoryResource
from ftcuda._objects.memory.wrapped import WrappedMemoryResource
from ftcuda._objects.launch.tensor_map import TensorMapDescriptor
from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.serving.batch_future import BatchFuture
from ftcuda._objects.serving.batcher import Batcher
from ftcuda._objects.stream.stream import ExclusiveSection, Stream

cdef extern from "_objects/support/process_bound.hpp" namespace "ftcuda::objects":
    int refuse_to_pickle(object type, str advice) except -1

ELSEWHERE = {
    "send what it holds, as an array": (Buffer, HostDeviceBuffer, StridedMemoryView),
    "make one there": (
        MemoryResource, AccountingMemoryResource, CachingMemoryResource, DeviceMemoryResource, GraphMemoryResource,
        LegacyPinnedMemoryResource, LimitingMemoryResource, ManagedMemoryResource, PinnedMemoryResource,
        StagingPool, StatisticsMemoryResource, SynchronousMemoryResource, TrackingMemoryResource, WrappedMemoryResource,
        Batcher,
    ),
    "make one there, with Device.create_stream()": (Stream,),
    "make one there, with Device.create_event()": (Event,),
    "send its ObjectCode, and get the kernel of that there": (Kernel,),
    "send the kernel's ObjectCode, and bind its kernel there": (BoundLaunch,),
    "make one there, of a tensor of that process": (TensorMapDescriptor,),
    "ask for what it tells, and send the answers": (
        GraphMemoryResourceAttributes, KernelAttributes, KernelOccupancy, MemoryPoolAttributes,
    ),
    "build the graph there": (
        BoundGraph, ExecutableGraphNode, Graph, GraphBuilder, GraphDefinition, GraphNode, GraphScratch,
    ),
    "register the function there": (Hook,),
    "send its result": (BatchFuture,),
    "enter one there, of a stream of that process": (ExclusiveSection,),
}

for advice, kinds in ELSEWHERE.items():
    for kind in kinds:
        refuse_to_pickle(kind, advice)
