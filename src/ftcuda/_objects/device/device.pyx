"""Devices, and the loading of the driver at first use."""

import atexit
import os
import sys
import time
import uuid
from collections import namedtuple

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libcpp.string cimport string

cimport core.device.device as core
from core.device.process cimport begin_exit, watch_forks
from core.driver.loader cimport candidates, load, loaded, loaded_driver
from core.driver.status cimport Status
from core.memory.staging cimport Staging
from core.sync.limit cimport Limit
from ftcuda._objects.support.raising cimport check, deliver_mail, raise_status
from ftcuda._objects.support.waiting cimport limit_of

from ftcuda._objects.device.device_properties import FLAGS, INTEGERS
from ftcuda._objects.support.installed import installed
from ftcuda.errors import DriverNotFoundError

cdef extern from "Python.h":
    ctypedef object (*newfunc)(PyTypeObject* type, PyObject* arguments, PyObject* keywords)
    ctypedef struct PyTypeObject:
        newfunc tp_new
        void* tp_vectorcall

cdef extern from "_objects/support/immortal.hpp" namespace "ftcuda::objects":
    bint make_immortal(object wanted)

ComputeCapability = namedtuple("ComputeCapability", ("major", "minor"), module=__name__)
DriverInfo = namedtuple("DriverInfo", ("path", "version", "simulated"), module=__name__)

SIMULATED_DRIVER = "ftcuda_simdriver.dll" if sys.platform == "win32" else "libftcuda_simdriver.so"


cdef int require_driver() except -1:
    """Loads the driver that FTCUDA_DRIVER names, unless one is loaded."""
    cdef string problem, choice, simulated
    cdef bint found
    if loaded():
        return 0
    choice = os.environ.get("FTCUDA_DRIVER", "cuda").encode()
    simulated = os.fsencode(installed(SIMULATED_DRIVER))
    with nogil:
        found = load(candidates(choice, simulated), problem)
    if not found:
        raise DriverNotFoundError(
            f"no usable CUDA driver (FTCUDA_DRIVER={choice.decode()}): {problem.decode('utf-8', 'replace')}. "
            "Install NVIDIA's driver, or set FTCUDA_DRIVER=sim to run on the simulated driver"
        )
    watch_forks()
    atexit.register(_begin_exit)
    return 0


def _begin_exit():
    """Runs at exit, in the thread that ends the process."""
    # CPython 3.13 frees the states of daemon threads while one of them may just be detaching from the interpreter, which then
    # crashes (gh-124878). So they call the driver, for which they detach, a hundred times a second from now on, and soon none
    # of them is on its way there.
    slowly = sys.version_info < (3, 14)
    is_first = begin_exit(slowly)  # threads that load the driver at once all register this
    if is_first and slowly and len(sys._current_frames()) > 1:
        time.sleep(0.02)  # two of their waits


def driver_info():
    """Returns the loaded driver, loading it if this is its first use.

    Thread safety: atomic.

    Returns
    -------
    DriverInfo
        ``path`` of the library, ``version`` as ``"major.minor"``, ``simulated``.
    """
    require_driver()
    version = loaded_driver().version
    return DriverInfo(
        loaded_driver().path.decode("utf-8", "replace"), f"{version // 1000}.{version % 1000 // 10}",
        loaded_driver().simulated,
    )


cdef AllocateOn allocate_on = NULL  # constant once ftcuda is imported


cdef int provide_allocate_on(AllocateOn function) except -1:
    global allocate_on
    allocate_on = function
    return 0


cdef class Device:
    """A CUDA device. There is one object for each, which lives as long as the process: ``Device(0) is Device(0)``.

    Threads that share it do not count references to it.

    Nothing in ftcuda needs a current device: streams, events, buffers and kernels know theirs.

    Parameters
    ----------
    device_id : int or Device, optional
        Ordinal of the device. None is the device whose context the calling thread has current, else device 0.

    Thread safety: atomic.
    """

    def __cinit__(self, device_id=None):
        cdef int ordinal = 0
        cdef Status status
        require_driver()
        if device_id is None:
            with nogil:
                status = core.Device.current(ordinal)
            check(status, "find", "the current device")
        elif isinstance(device_id, Device):
            ordinal = (<Device>device_id)._device.ordinal()
        elif isinstance(device_id, int) and not isinstance(device_id, bool):
            if not 0 <= device_id < 2**31:
                raise ValueError(f"device_id must be an ordinal from 0 up, not {device_id}")
            ordinal = device_id
        else:
            raise TypeError(f"device_id must be an int, a Device or None, not {type(device_id).__name__}")
        with nogil:
            status = core.Device.get(ordinal, self._device)
        if not status.ok():
            raise_status(status, "open", f"device {ordinal}")

    cdef core.Context* context_of(self) except NULL:
        """The device's primary context, retained at the first call."""
        cdef core.Context* context = NULL
        cdef Status status
        with nogil:
            status = self._device.context(context)
            if status.ok():
                status = context.usable()
        check(status, "use", self)
        return context

    @classmethod
    def get_all_devices(cls):
        """Returns all devices of the system.

        Thread safety: atomic.
        """
        cdef int count = 0
        cdef Status status
        require_driver()
        with nogil:
            status = core.Device.count(count)
        check(status, "count", "the devices")
        return tuple(cls(ordinal) for ordinal in range(count))

    @property
    def device_id(self):
        """The ordinal. Thread safety: atomic."""
        return self._device.ordinal()

    @property
    def name(self):
        """The marketing name. Thread safety: atomic."""
        return self._device.name().decode("utf-8", "replace")

    @property
    def pci_bus_id(self):
        """The PCI address, ``domain:bus:device.function``. Thread safety: atomic."""
        return self._device.pci_bus_id().decode()

    @property
    def uuid(self):
        """The UUID, of the MIG instance where the device is one. Thread safety: atomic."""
        return str(uuid.UUID(bytes=(<const char*>self._device.uuid().bytes)[:16]))

    @property
    def total_memory(self):
        """Bytes of device memory. Thread safety: atomic."""
        return self._device.total_memory()

    @property
    def compute_capability(self):
        """``(major, minor)``. Thread safety: atomic."""
        return ComputeCapability(*divmod(self._device.compute_capability(), 10))

    @property
    def arch(self):
        """The compute capability as NVRTC writes it, for instance ``"90"``. Thread safety: atomic."""
        return str(self._device.compute_capability())

    @property
    def properties(self):
        """The device's attributes, by cuda.core's names. Thread safety: atomic."""
        return DeviceProperties(self)

    @property
    def features(self):
        """What the device and its driver offer, and why. Thread safety: atomic."""
        return DeviceFeatures(self)

    @property
    def default_stream(self):
        """The device's legacy default stream. Thread safety: atomic."""
        return _stream.Stream._default_of(self, False)

    @property
    def memory_resource(self):
        """The resource behind :meth:`allocate`: a `CachingMemoryResource` in front of the device's pool, or of plain allocations
        where there are no pools.

        Another `MemoryResource` may be set, for the device in all threads: ``DeviceMemoryResource(device)``, say, is the plain
        pool. The device's own cannot be closed.

        Thread safety: atomic.
        """
        return _memory.default_resource(self)

    @memory_resource.setter
    def memory_resource(self, resource):
        _memory.choose_resource(self, resource)

    @property
    def memory_info(self):
        """``(free, total)`` bytes at the moment of the call, which asks the driver. Thread safety: atomic."""
        cdef size_t free = 0, total = 0
        cdef Status status
        cdef core.Context* context = self.context_of()
        with nogil:
            status = context.memory_info(free, total)
        check(status, "ask for the memory of", self)
        return free, total

    def trim_staging(self):
        """Frees the pinned memory that is kept for copies of pageable memory, as far as no copy uses it.

        At most 128 MiB, and 4 MiB for each thread that copies at the same moment, are kept otherwise.

        Thread safety: atomic.
        """
        cdef Status status
        cdef core.Context* context = self.context_of()
        with nogil:
            status = Staging.of(context[0]).trim()
        check(status, "free the staging memory of", self)

    def set_current(self):
        """Makes the device's context the calling thread's, for other libraries and for ``Device()``.

        Thread safety: atomic; each thread has its own current context.
        """
        cdef Status status
        with nogil:
            status = self._device.make_current()
        check(status, "make current", self)

    def sync(self, timeout=None):
        """Waits for all work on the device.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to give up, 0.01 at least: the driver cannot be asked whether a device is done, only a thread
            that waits for it. None waits for ever.

        Thread safety: atomic. Blocks detached from the interpreter. In the main thread a signal's handler runs meanwhile, and
        what it raises, `KeyboardInterrupt` say, ends the wait. However the wait ends, the work goes on, and what it uses is kept.

        Raises
        ------
        TimeoutError
            The work is not done yet.
        CUDAError
            Also for failures of earlier work.
        """
        cdef Status status
        cdef Limit limit = limit_of(timeout)
        cdef core.Context* context = self.context_of()
        with nogil:
            status = context.synchronize(limit)
        check(status, "synchronise", self)
        deliver_mail()

    def create_stream(self, obj=None, options=None):
        """Creates a stream on the device, or wraps one.

        Parameters
        ----------
        obj : object with ``__cuda_stream__``, optional
            A foreign stream to wrap; it is kept alive.
        options : StreamOptions or dict, optional

        Returns
        -------
        Stream

        Thread safety: atomic.
        """
        deliver_mail()
        return _stream.Stream._create(self, obj, options)

    def create_event(self, options=None):
        """Creates an event on the device.

        Parameters
        ----------
        options : EventOptions or dict, optional

        Returns
        -------
        Event

        Thread safety: atomic.
        """
        deliver_mail()
        return _event.Event._create(self, options)

    def allocate(self, size, *, stream=None):
        """Allocates device memory from :attr:`memory_resource`.

        Parameters
        ----------
        size : int
            Bytes. Zero is allowed.
        stream : Stream
            The memory may be used in this stream's order from here on, and in others that wait for it.
            None is allowed where allocation is not stream-ordered, else the device's legacy default stream is taken.

        Returns
        -------
        Buffer

        Thread safety: shared.

        Raises
        ------
        OutOfMemoryError
            After unused memory was collected and the allocation tried once more.
        """
        return allocate_on(self, size, stream)

    def __int__(self):
        return self._device.ordinal()

    def __index__(self):
        return self._device.ordinal()

    def __eq__(self, other):
        return isinstance(other, Device) and (<Device>other)._device == self._device

    def __hash__(self):
        return hash((Device, self._device.ordinal()))

    def __reduce__(self):
        return Device, (self._device.ordinal(),)

    def __repr__(self):
        return f"<Device {self._device.ordinal()} ({self.name})>"


cdef PyTypeObject* device_type = <PyTypeObject*>Device
cdef newfunc make_device = device_type.tp_new  # constant


cdef object only_device(PyTypeObject* type, PyObject* arguments, PyObject* keywords):
    """In place of `__new__`: the object of a device that was there before, or the one just made."""
    cdef Device made = make_device(type, arguments, keywords)
    if type != device_type:  # a subclass, whose objects may differ
        return made
    if made._device.offer_object(<void*>made):
        Py_INCREF(made)  # the core's, for ever
        make_immortal(made)
        return made
    return <object>made._device.object()


device_type.tp_new = only_device
device_type.tp_vectorcall = NULL  # which would make objects without asking tp_new


cdef Device device_of(core.Context* context):
    return Device(context.device().ordinal())


cdef Device as_device(object device):
    """`device` as a Device: itself, an ordinal, or the calling thread's for None."""
    return device if isinstance(device, Device) else Device(device)


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


def _attribute(Device device not None, int number):
    return device._device.attribute(number)


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
    tensor_maps : bool
        Tensor maps can be made and used.
    """

    __slots__ = ("_device",)

    NAMES = (
        "driver_version", "driver_model", "memory_pools", "host_pools", "managed_pools", "managed_memory",
        "concurrent_managed_access", "virtual_memory_management", "ipc_events", "cooperative_launch", "cluster_launch",
        "tensor_maps",
    )
    FLAGS = {
        "managed_memory": "managed_memory",
        "concurrent_managed_access": "concurrent_managed_access",
        "virtual_memory_management": "virtual_memory_management_supported",
        "ipc_events": "ipc_event_supported",
        "cooperative_launch": "cooperative_launch",
        "cluster_launch": "cluster_launch",
    }

    def __init__(self, device):
        self._device = device

    @property
    def driver_version(self):
        return driver_info().version

    @property
    def driver_model(self):
        if self._device.properties.tcc_driver:
            return "tcc"
        return "wddm" if sys.platform == "win32" else "linux"

    @property
    def memory_pools(self):
        return _pools(self._device)[0]

    @property
    def host_pools(self):
        return _pools(self._device)[1]

    @property
    def managed_pools(self):
        return _pools(self._device)[2]

    @property
    def tensor_maps(self):
        return _has_tensor_maps(self._device)

    def __getattr__(self, name):
        if name in DeviceFeatures.FLAGS:
            return bool(getattr(self._device.properties, DeviceFeatures.FLAGS[name]))
        raise AttributeError(f"devices have no feature {name!r}")

    def why(self, name):
        """Returns one sentence on what `name` was read from."""
        reasons = {
            "driver_version": "cuDriverGetVersion",
            "driver_model": "the operating system and the attribute CU_DEVICE_ATTRIBUTE_TCC_DRIVER",
            "memory_pools": "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED and the entry point cuMemAllocFromPoolAsync",
            "host_pools": "memory_pools and CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED (CUDA 13)",
            "tensor_maps": "the entry point cuTensorMapEncodeTiled (drivers of CUDA 12) and a compute capability of 9.0",
            "managed_pools": "memory_pools, a driver of CUDA 13 and CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS",
        }
        if name in DeviceFeatures.FLAGS:
            return f"CU_DEVICE_ATTRIBUTE_{DeviceFeatures.FLAGS[name].upper()}"
        if name not in reasons:
            raise AttributeError(f"devices have no feature {name!r}")
        return reasons[name]

    def as_dict(self):
        """Returns all features by name."""
        return {name: getattr(self, name) for name in DeviceFeatures.NAMES}

    def __repr__(self):
        return f"<features of {self._device!r}: {self.as_dict()}>"


def _pools(Device device not None):
    return device._device.has_memory_pools(), device._device.has_host_pools(), device._device.has_managed_pools()


def _has_tensor_maps(Device device not None):
    return device._device.has_tensor_maps()


# At the end: these modules need Device, and Device needs them only when it is used.
import ftcuda._objects.memory.memory as _memory  # noqa: E402
import ftcuda._objects.stream.event as _event  # noqa: E402
import ftcuda._objects.stream.stream as _stream  # noqa: E402
