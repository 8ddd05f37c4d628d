"""Objects to which nobody counts references."""

from ftcuda._objects.launch.tensor_map import TensorMapDescriptor
from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.code.kernel import Kernel
from ftcuda._objects.code.object_code import ObjectCode
from ftcuda._objects.device.device import Device
from ftcuda._objects.graph.bound_graph import BoundGraph
from ftcuda._objects.graph.graph import Graph
from ftcuda._objects.launch.bound_launch import BoundLaunch
from ftcuda._objects.launch.launch_config import LaunchConfig
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.serving.batcher import Batcher
from ftcuda._objects.stream.event import Event
from ftcuda._objects.stream.stream import Stream

cdef extern from "_objects/support/immortal.hpp" namespace "ftcuda::objects":
    bint become_immortal "ftcuda::objects::make_immortal"(object wanted)

KINDS = (Batcher, BoundGraph, BoundLaunch, Buffer, Device, Event, Graph, Kernel, LaunchConfig, MemoryResource,
         ObjectCode, Stream, StridedMemoryView, TensorMapDescriptor)


def make_immortal(*objects):
    """Keeps objects of ftcuda for as long as the process runs, and ends the counting of references to them.

    Without the GIL every use of an object in a thread that did not make it writes its reference count, so that threads
    which share kernels, configurations and weights wait for each other's writes in every call. Not of immortal objects:
    for what lives long and is used by many threads in a loop. Devices, and the memory resources that come with them,
    are immortal already.

    Buffers, streams, graphs and batchers may still be closed, and give their memory back then; the Python objects are
    never freed. With the GIL there is nothing to gain, and nothing is done.

    Parameters
    ----------
    *objects
        Devices, streams, events, buffers, views, tensor maps, memory resources, object code, kernels, configurations,
        bound launches, graphs, bound graphs and batchers.

    Thread safety: atomic; only the thread that made an object may make it immortal, while others use it or before.

    Raises
    ------
    TypeError
        For other objects.
    RuntimeError
        In another thread than the one that made the object. Objects before it in `objects` are immortal then.
    """
    for each in objects:
        if not issubclass(type(each), KINDS):  # and not what a proxy says of itself
            raise TypeError(f"cannot make {each!r} immortal: it is not an object of ftcuda that threads share")
    for each in objects:
        if not become_immortal(each):
            raise RuntimeError(f"cannot make {each!r} immortal: only the thread that made it may")
