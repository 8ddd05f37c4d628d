"""Devices."""

import uuid
from collections import namedtuple

from cpython.object cimport PyObject

from core.completion.context_wait cimport synchronize
from core.device.device cimport Context
from core.device.device cimport Device as CoreDevice
from core.memory.staging cimport Staging
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from ftcuda._objects.device.device_handle cimport DeviceHandle, device_at, known
from ftcuda._objects.graph.graph_builder cimport GraphBuilder
from ftcuda._objects.memory.default_resource cimport allocate_on, choose_resource, default_resource
from ftcuda._objects.stream.event cimport Event
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.driver cimport require_driver
from ftcuda._objects.support.public_class cimport stand_above
from ftcuda._objects.support.raising cimport check, release_and_warn
from ftcuda._objects.support.waiting cimport limit_of

from ftcuda._objects.device.device_features import DeviceFeatures, DeviceProperties

cdef extern from "Python.h":
    int PyArg_ParseTupleAndKeywords(PyObject* arguments, PyObject* keywords, const char* format, char** names,
                                    ...) except 0
    ctypedef object (*newfunc)(PyTypeObject* type, PyObject* arguments, PyObject* keywords)
    ctypedef struct PyTypeObject:
        newfunc tp_new
        void* tp_vectorcall

ComputeCapability = namedtuple("ComputeCapability", ("major", "minor"), module=__name__)


cdef class Device(DeviceHandle):
    """A CUDA device. There is one object for each, which lives as long as the process: ``Device(0) is Device(0)``.

    Threads that share it do not count references to it.

    Nothing in ftcuda needs a current device: streams, events, buffers and kernels know theirs.

    Parameters
    ----------
    device_id : int or Device, optional
        Ordinal of the device. None is the device whose context the calling thread has current, else device 0.

    Thread safety: atomic.
    """

    @classmethod
    def get_all_devices(cls):
        """Returns all devices of the system.

        Thread safety: atomic.
        """
        cdef int count = 0
        cdef Status status
        require_driver()
        with nogil:
            status = CoreDevice.count(count)
        check(status, "count", "the devices")
        return tuple(cls(ordinal) for ordinal in range(count))

    @property
    def device_id(self):
        """The ordinal. Thread safety: atomic."""
        return self._ordinal

    @property
    def name(self):
        """The marketing name. Thread safety: atomic."""
        return self.device().name().decode("utf-8", "replace")

    @property
    def pci_bus_id(self):
        """The PCI address, ``domain:bus:device.function``. Thread safety: atomic."""
        return self.device().pci_bus_id().decode()

    @property
    def uuid(self):
        """The UUID, of the MIG instance where the device is one. Thread safety: atomic."""
        return str(uuid.UUID(bytes=(<const char*>self.device().uuid().bytes)[:16]))

    @property
    def total_memory(self):
        """Bytes of device memory. Thread safety: atomic."""
        return self.device().total_memory()

    @property
    def compute_capability(self):
        """``(major, minor)``. Thread safety: atomic."""
        return ComputeCapability(*divmod(self.device().compute_capability(), 10))

    @property
    def arch(self):
        """The compute capability as NVRTC writes it, for instance ``"90"``. Thread safety: atomic."""
        return str(self.device().compute_capability())

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
        return Stream.default_of(self, False)

    @property
    def memory_resource(self):
        """The resource behind :meth:`allocate`: a `CachingMemoryResource` in front of the device's pool.

        It is in front of plain allocations where there are no pools.

        Another `MemoryResource` may be set, for the device in all threads: ``DeviceMemoryResource(device)``, say, is
        the plain pool. The device's own cannot be closed.

        Thread safety: atomic.
        """
        return default_resource(self)

    @memory_resource.setter
    def memory_resource(self, resource):
        choose_resource(self, resource)

    @property
    def memory_info(self):
        """``(free, total)`` bytes at the moment of the call, which asks the driver. Thread safety: atomic."""
        cdef size_t free = 0, total = 0
        cdef Status status
        cdef Context* context = self.context_of()
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
        cdef Context* context = self.context_of()
        with nogil:
            status = Staging.of(context[0]).trim()
        check(status, "free the staging memory of", self)

    def set_current(self):
        """Makes the device's context the calling thread's, for other libraries and for ``Device()``.

        Thread safety: atomic; each thread has its own current context.
        """
        cdef Status status
        with nogil:
            status = self.device().make_current()
        check(status, "make current", self)

    def sync(self, timeout=None):
        """Waits for all work on the device.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to give up, 0.01 at least: the driver cannot be asked whether a device is done, only a
            thread that waits for it. None waits for ever.

        Thread safety: atomic. Blocks detached from the interpreter. In the main thread a signal's handler runs
        meanwhile, and what it raises, `KeyboardInterrupt` say, ends the wait. However the wait ends, the work goes on,
        and what it uses is kept.

        Raises
        ------
        TimeoutError
            The work is not done yet.
        CUDAError
            Also for failures of earlier work.
        """
        cdef Status status
        cdef Limit limit = limit_of(timeout)
        cdef Context* context = self.context_of()
        with nogil:
            status = synchronize(context[0], limit)
        check(status, "synchronise", self)
        release_and_warn()

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
        release_and_warn()
        return Stream.create(self, obj, options)

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
        release_and_warn()
        return Event.create(self, options, NULL)

    def create_graph_builder(self):
        """Creates a builder of graphs on the device.

        Returns
        -------
        GraphBuilder

        Thread safety: atomic.
        """
        release_and_warn()
        return GraphBuilder.create(self, 0)

    cdef object graph_builder(self, int priority):
        return GraphBuilder.create(self, priority)

    def allocate(self, size, *, stream=None):
        """Allocates device memory from :attr:`memory_resource`.

        Parameters
        ----------
        size : int
            Bytes. Zero is allowed.
        stream : Stream
            The memory may be used in this stream's order from here on, and in others that wait for it. None is allowed
            where allocation is not stream-ordered, else the device's legacy default stream is taken.

        Returns
        -------
        Buffer

        Thread safety: shared.

        Raises
        ------
        OutOfMemoryError
            After unused memory was collected and given back, and the allocation tried again.
        """
        return allocate_on(self, size, stream)

    def __int__(self):
        return self._ordinal

    def __index__(self):
        return self._ordinal

    def __eq__(self, other):
        return isinstance(other, Device) and (<Device>other)._ordinal == self._ordinal

    def __hash__(self):
        return hash((Device, self._ordinal))

    def __reduce__(self):
        return Device, (self._ordinal,)

    def __repr__(self):
        return f"<Device {self._ordinal} ({self.name})>"


cdef PyTypeObject* device_type = <PyTypeObject*>Device
cdef newfunc make_device = device_type.tp_new  # constant


cdef char* NAMES[2]  # of the arguments, and null
NAMES[0] = b"device_id"


cdef object find_device(PyTypeObject* type, PyObject* arguments, PyObject* keywords):
    """In place of `__new__`: the one object of a device; of a subclass, whose objects may differ, a new one."""
    cdef PyObject* device_id = NULL
    PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:Device", NAMES, &device_id)
    cdef int ordinal = known(None if device_id == NULL else <object>device_id)
    if type == device_type:
        return device_at(ordinal)
    cdef Device made = make_device(type, arguments, keywords)
    made._ordinal = ordinal
    return made


stand_above(Device, DeviceHandle)
device_type.tp_new = find_device
device_type.tp_vectorcall = NULL  # which would make objects without asking tp_new
