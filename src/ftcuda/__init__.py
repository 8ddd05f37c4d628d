"""ftcuda: a CUDA runtime for Python programs that run many threads without the GIL.

Every public object may be shared by any number of threads. Importing the package touches no driver.
"""

import ftcuda._objects.process_bound  # noqa: F401 - what cannot be pickled says so from here on
from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.code.kernel import Kernel
from ftcuda._objects.code.linker import Linker
from ftcuda._objects.code.linker_options import LinkerOptions
from ftcuda._objects.code.object_code import ObjectCode
from ftcuda._objects.code.program import Program, nvrtc_version
from ftcuda._objects.code.program_options import ProgramOptions
from ftcuda._objects.device.device import Device
from ftcuda._objects.immortal import make_immortal
from ftcuda._objects.launch.bound_launch import BoundLaunch
from ftcuda._objects.launch.host_launch import host_launch
from ftcuda._objects.launch.launch import launch
from ftcuda._objects.launch.launch_config import LaunchConfig
from ftcuda._objects.launch.tensor_map import TensorMapDescriptor
from ftcuda._objects.launch.tensor_map_options import (
    TensorMapDataType,
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from ftcuda._objects.memory.account import LimitingMemoryResource, StatisticsMemoryResource
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.cache import CachingMemoryResource
from ftcuda._objects.memory.device_memory import DeviceMemoryResource, SynchronousMemoryResource
from ftcuda._objects.memory.external import ExternalMemoryResource
from ftcuda._objects.memory.graph_memory import GraphMemoryResource
from ftcuda._objects.memory.host_device import HostDeviceBuffer
from ftcuda._objects.memory.managed_memory import ManagedMemoryResource
from ftcuda._objects.memory.pinned_memory import LegacyPinnedMemoryResource, PinnedMemoryResource
from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.memory.staging_pool import StagingPool
from ftcuda._objects.memory.tracking import TrackingMemoryResource
from ftcuda._objects.stream.event import Event
from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream
from ftcuda._objects.support.driver import driver_info
from ftcuda._objects.support.options import (
    DeviceMemoryResourceOptions,
    EventOptions,
    ManagedMemoryResourceOptions,
    PinnedMemoryResourceOptions,
    StreamOptions,
)
from ftcuda.adapter import get_include
from ftcuda.errors import (
    ClosedError,
    ContextPoisonedError,
    CooperativeLaunchError,
    CUDAError,
    CUDAWarning,
    DriverNotFoundError,
    ForkedProcessError,
    ForwardError,
    LinkerError,
    NotSupportedError,
    NVRTCError,
    OutOfMemoryError,
    QueueFullError,
    RequestExpiredError,
    SectionAbandonedError,
)

__version__: str

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "BoundLaunch",
    "Buffer",
    "CUDAError",
    "CUDAWarning",
    "CachingMemoryResource",
    "ClosedError",
    "ContextPoisonedError",
    "CooperativeLaunchError",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "DriverNotFoundError",
    "Event",
    "EventOptions",
    "ExternalMemoryResource",
    "ForkedProcessError",
    "ForwardError",
    "GraphMemoryResource",
    "HostDeviceBuffer",
    "Kernel",
    "LaunchConfig",
    "LegacyPinnedMemoryResource",
    "LimitingMemoryResource",
    "Linker",
    "LinkerError",
    "LinkerOptions",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemoryResource",
    "NVRTCError",
    "NotSupportedError",
    "ObjectCode",
    "OutOfMemoryError",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "Program",
    "ProgramOptions",
    "QueueFullError",
    "RequestExpiredError",
    "SectionAbandonedError",
    "StagingPool",
    "StatisticsMemoryResource",
    "Stream",
    "StreamOptions",
    "StridedMemoryView",
    "SynchronousMemoryResource",
    "TensorMapDataType",
    "TensorMapDescriptor",
    "TensorMapDescriptorOptions",
    "TensorMapInterleave",
    "TensorMapL2Promotion",
    "TensorMapOOBFill",
    "TensorMapSwizzle",
    "TrackingMemoryResource",
    "driver_info",
    "get_include",
    "host_launch",
    "launch",
    "make_immortal",
    "nvrtc_version",
]


def __getattr__(name: str) -> str:
    """Asks the installation for its version when somebody wants to know it. Thread safety: atomic."""
    if name == "__version__":
        from importlib import metadata  # takes longer than all else that `import ftcuda` does

        return metadata.version("ftcuda")
    raise AttributeError(f"module 'ftcuda' has no attribute {name!r}")
