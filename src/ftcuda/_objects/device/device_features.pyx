"""What devices and their drivers offer."""

import sys

from ftcuda._objects.device.device_handle cimport DeviceHandle

from ftcuda._objects.device.device_properties import FLAGS, INTEGERS
from ftcuda._objects.support.driver import driver_info


class DeviceProperties:
    """Attributes of a device by cuda.core's names, for instance ``multiprocessor_count``. Constant."""

    __slots__ = ("_device",)

    def __init__(self, device):
        self._device = device

    def __getattr__(self, name):
        if name in INTEGERS:
            return _attribute(self._device, INTEGERS[name])
        if name in FLAGS:
            return bool(_attribute(self._device, FLAGS[name]))
        raise AttributeError(f"devices have no property {name!r}")

    def __dir__(self):
        return sorted([*INTEGERS, *FLAGS])

    def __repr__(self):
        return f"<properties of {self._device!r}>"


def _attribute(DeviceHandle device not None, int number):
    return device.device().attribute(number)


def _driver_version(DeviceHandle device not None):
    return driver_info().version


def _driver_model(DeviceHandle device not None):
    if device.device().attribute(FLAGS["tcc_driver"]):
        return "tcc"
    return "wddm" if sys.platform == "win32" else "linux"


def _memory_pools(DeviceHandle device not None):
    return device.device().has_memory_pools()


def _host_pools(DeviceHandle device not None):
    return device.device().has_host_pools()


def _managed_pools(DeviceHandle device not None):
    return device.device().has_managed_pools()


def _tensor_maps(DeviceHandle device not None):
    return device.device().has_tensor_maps()


def _stream_values(DeviceHandle device not None):
    return device.device().has_stream_values()


def _graphs(DeviceHandle device not None):
    return device.device().has_graphs()


def _conditional_graphs(DeviceHandle device not None):
    return device.device().has_conditional_graphs()


def _flag(str attribute):
    """How to read the feature that one attribute of the device tells, and what that is called."""
    return lambda device: bool(_attribute(device, FLAGS[attribute])), f"CU_DEVICE_ATTRIBUTE_{attribute.upper()}"


# Each feature: how it is read, and from what.
FEATURES = {
    "driver_version": (_driver_version, "cuDriverGetVersion"),
    "driver_model": (_driver_model, "the operating system and the attribute CU_DEVICE_ATTRIBUTE_TCC_DRIVER"),
    "memory_pools": (
        _memory_pools, "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED and the entry point cuMemAllocFromPoolAsync"),
    "host_pools": (_host_pools, "memory_pools and CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED (CUDA 13)"),
    "managed_pools": (
        _managed_pools, "memory_pools, a driver of CUDA 13 and CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS"),
    "managed_memory": _flag("managed_memory"),
    "concurrent_managed_access": _flag("concurrent_managed_access"),
    "virtual_memory_management": _flag("virtual_memory_management_supported"),
    "ipc_events": _flag("ipc_event_supported"),
    "cooperative_launch": _flag("cooperative_launch"),
    "cluster_launch": _flag("cluster_launch"),
    "graphs": (_graphs, "the entry points cuUserObjectCreate and cuGraphInstantiateWithFlags (drivers of CUDA 11.4)"),
    "conditional_graphs": (
        _conditional_graphs, "the entry point cuStreamBeginCaptureToGraph (drivers of CUDA 12.3)"),
    "stream_values": (
        _stream_values, "the entry point cuStreamWriteValue32 (drivers of CUDA 11.7) and "
        "CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS"),
    "tensor_maps": (
        _tensor_maps, "the entry point cuTensorMapEncodeTiled (drivers of CUDA 12) and a compute capability of 9.0"),
}


class DeviceFeatures:
    """What varies between devices, drivers and driver modes. Constant; every answer was read from the device.

    Attributes
    ----------
    driver_version : str
    driver_model : str
        ``"linux"``, ``"tcc"`` or ``"wddm"`` (WDDM or MCDM, which the driver API cannot tell apart).
    memory_pools, host_pools, managed_pools : bool
        Stream-ordered allocation of device, pinned and managed memory.
    managed_memory, concurrent_managed_access : bool
    virtual_memory_management, ipc_events, cooperative_launch, cluster_launch : bool
    graphs, conditional_graphs : bool
        Graphs can be built and launched; they can have conditional nodes.
    stream_values : bool
        Streams write words, by which waits learn that work is done. Otherwise they ask for events.
    tensor_maps : bool
        Tensor maps can be made and used.
    """

    __slots__ = ("_device",)

    def __init__(self, device):
        self._device = device

    def __getattr__(self, name):
        read, _ = _feature(name)
        return read(self._device)

    def __dir__(self):
        return sorted([*FEATURES, "as_dict", "why"])

    def why(self, name):
        """Returns one sentence on what `name` was read from."""
        _, reason = _feature(name)
        return reason

    def as_dict(self):
        """Returns all features by name."""
        return {name: getattr(self, name) for name in FEATURES}

    def __repr__(self):
        return f"<features of {self._device!r}: {self.as_dict()}>"


def _feature(str name):
    if name not in FEATURES:
        raise AttributeError(f"devices have no feature {name!r}")
    return FEATURES[name]
