"""What objects say that are asked to go to another process and cannot: all that are handles of the driver or of memory.
"""

from ftcuda._objects.memory.account import (
    AccountingMemoryResource,
    LimitingMemoryResource,
    StatisticsMemoryResource,
)
from ftcuda._objects.code.kernel import Kernel, KernelAttributes, KernelOccupancy
from ftcuda._objects.launch.bound_launch import BoundLaunch
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.support.hooks import Hook
from ftcuda._objects.memory.host_device import HostDeviceBuffer
from ftcuda._objects.stream.event import Event
from ftcuda._objects.memory.cache import CachingMemoryResource
from ftcuda._objects.memory.device_memory import DeviceMemoryResource, SynchronousMemoryResource
from ftcuda._objects.memory.managed_memory import ManagedMemoryResource
from ftcuda._objects.memory.pinned_memory import LegacyPinnedMemoryResource, PinnedMemoryResource
from ftcuda._objects.memory.resource import MemoryPoolAttributes, MemoryResource
from ftcuda._objects.memory.tracking import TrackingMemoryResource
from ftcuda._objects.memory.wrapped import WrappedMemoryResource
from ftcuda._objects.launch.tensor_map import TensorMapDescriptor
from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.stream.stream import ExclusiveSection, Stream

cdef extern from "_objects/support/process_bound.hpp" namespace "ftcuda::objects":
    int refuse_to_pickle(object type, str advice) except -1

ELSEWHERE = {
    "send what it holds, as an array": (Buffer, HostDeviceBuffer, StridedMemoryView),
    "make one there": (
        MemoryResource, AccountingMemoryResource, CachingMemoryResource, DeviceMemoryResource,
        LegacyPinnedMemoryResource, LimitingMemoryResource, ManagedMemoryResource, PinnedMemoryResource,
        StatisticsMemoryResource, SynchronousMemoryResource, TrackingMemoryResource, WrappedMemoryResource,
    ),
    "make one there, with Device.create_stream()": (Stream,),
    "make one there, with Device.create_event()": (Event,),
    "send its ObjectCode, and get the kernel of that there": (Kernel,),
    "send the kernel's ObjectCode, and bind its kernel there": (BoundLaunch,),
    "make one there, of a tensor of that process": (TensorMapDescriptor,),
    "ask for what it tells, and send the answers": (KernelAttributes, KernelOccupancy, MemoryPoolAttributes),
    "register the function there": (Hook,),
    "enter one there, of a stream of that process": (ExclusiveSection,),
}

for advice, kinds in ELSEWHERE.items():
    for kind in kinds:
        refuse_to_pickle(kind, advice)
