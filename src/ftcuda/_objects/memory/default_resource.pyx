"""The resource of each device, which `Device.allocate` takes."""

from ftcuda._objects.device.device_handle cimport DeviceHandle
from ftcuda._objects.memory.buffer cimport checked_buffer
from ftcuda._objects.memory.cache cimport CachingMemoryResource
from ftcuda._objects.memory.device_memory cimport uncached
from ftcuda._objects.memory.resource cimport MemoryResource, allocate

cdef extern from "_objects/support/immortal.hpp" namespace "ftcuda::objects":
    void make_immortal(object wanted)


# The resource of each device, by ordinal. A dict's own steps are atomic, which is all that is asked of them.
cdef dict RESOURCES = {}


cdef int choose_resource(DeviceHandle device, object resource) except -1:
    """Makes `resource` the one that `Device.allocate` takes."""
    if not isinstance(resource, MemoryResource):
        raise TypeError(f"memory_resource must be a MemoryResource, not {type(resource).__name__}")
    if not resource.is_device_accessible or resource.device_id not in (-1, device._ordinal):
        raise ValueError(f"{resource} gives no memory that {device} can use")
    RESOURCES[device._ordinal] = resource
    return 0


cdef object allocate_on(DeviceHandle device, object size, object stream):
    """Behind `Device.allocate`."""
    cdef MemoryResource resource = default_resource(device)
    if type(resource) is CachingMemoryResource:
        return allocate(resource, size, stream, resource)
    return checked_buffer(resource, resource.allocate(size, stream=stream),
                          size)  # which a subclass may have written anew


cdef MemoryResource default_resource(DeviceHandle device):
    """The resource that `Device.allocate` takes: what was set, else a cache of the device's own."""
    cdef int ordinal = device._ordinal
    cdef MemoryResource found = RESOURCES.get(ordinal)
    cdef MemoryResource made
    if found is not None:
        return found
    made = CachingMemoryResource(uncached(device))
    made._resource.keep_forever()  # every thread allocates from it
    make_immortal(made)
    return RESOURCES.setdefault(ordinal, made)  # one for all who come at once, and not in place of one that was set
