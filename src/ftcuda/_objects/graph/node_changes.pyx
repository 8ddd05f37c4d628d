"""What nodes are told to do: of arguments that callers give to what the core takes.

What is None stays as it is.
"""

import ctypes

from libcpp cimport bool
from libcpp.utility cimport move
from libcpp.vector cimport vector

cimport core.code.kernel as kernels
cimport core.graph.node_change as core
from core.completion.deferred_release cimport ForeignReference, Retention
from core.graph.node_change cimport NodeMemory
from core.launch.bound_launch cimport BoundArguments
from core.launch.launch cimport LaunchShape
from core.sync.ref cimport Ref
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.launch.bound_launch cimport bind_all
from ftcuda._objects.launch.launch_config cimport LaunchConfig
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.memory.copy cimport Pattern, pattern_of
from ftcuda._objects.stream.event cimport Event
from ftcuda._objects.support.deferred_release cimport foreign_reference
from ftcuda._objects.support.host_function cimport HostFunction, host_function

from ftcuda._objects.support.handles import checked_handle
from ftcuda._objects.support.options import integer
from ftcuda.errors import NotSupportedError
from ftcuda.typing import GraphMemoryType


cdef unique_ptr[NodeChange] kernel_change(object config, object kernel, object args, const Kept* expected) except *:
    """`expected`: what the node is to keep still when it is changed; null: whatever."""
    cdef core.KernelChange* made
    cdef const LaunchShape* shape = NULL
    cdef kernels.Kernel* called = NULL
    cdef Ref[ForeignReference] configuration
    cdef Ref[BoundArguments] arguments
    if config is not None:
        if not isinstance(config, LaunchConfig):
            raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
        if config.cluster is not None or config.is_cooperative or config.programmatic_stream_serialization:
            raise NotSupportedError(f"a kernel node has no cluster and is not cooperative, unlike {config}; capture it "
                                    "in a GraphBuilder")
        shape = (<LaunchConfig>config)._shape
        configuration = foreign_reference(config)
    if kernel is not None:
        if not isinstance(kernel, KernelHandle):
            raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
        (<KernelHandle>kernel).require_layout()
        called = (<KernelHandle>kernel)._kernel
    if args is not None:
        arguments = bind_all(kernel, tuple(args), None)
    made = new core.KernelChange(shape, move(configuration), called, move(arguments))
    if expected != NULL:
        made.expect(expected[0])
    return unique_ptr[NodeChange](made)


cdef int memory_of(object value, object owner, str name, NodeMemory& memory) except -1:
    cdef BufferHandle buffer = None
    if isinstance(value, BufferHandle):
        if owner is not None:
            raise ValueError(f"{name}_owner is for an address; {name} is a Buffer, which is kept itself")
        buffer = value
        memory.pointer = buffer._buffer.pointer()
    else:
        memory.pointer = checked_handle(value, name)
        if isinstance(owner, BufferHandle):
            buffer = owner
        elif owner is not None:
            memory.owner = foreign_reference(owner)
    if buffer is None:
        return 0
    memory.buffer = buffer._buffer
    if buffer._buffer.holder() != NULL:  # which the collector would end before the graph
        memory.owner = foreign_reference(buffer)
    return 0


cdef size_t number_of(object value, str name, size_t least) except? 99:
    number = integer(value, name)
    if not least <= number < 2**63:
        raise ValueError(f"{name} must be from {least} to 2**63 - 1, not {number}")
    return number


cdef unique_ptr[NodeChange] fill_change(object dst, object value, object width, object height, object pitch,
                                        object dst_owner) except *:
    cdef core.FillChange* change = new core.FillChange()
    cdef unique_ptr[NodeChange] made = unique_ptr[NodeChange](change)
    cdef Pattern pattern
    if dst is not None:
        change.has_destination = True
        memory_of(dst, dst_owner, "dst", change.destination)
    elif dst_owner is not None:
        raise ValueError("dst_owner is for an address that is given as dst")
    if value is not None:
        pattern = pattern_of(value)
        change.has_value, change.value, change.element_size = True, pattern.value, pattern.width
    if width is not None:
        change.has_width, change.width = True, number_of(width, "width", 1)
    if height is not None:
        change.has_height, change.height = True, number_of(height, "height", 1)
    if pitch is not None:
        change.has_pitch, change.pitch = True, number_of(pitch, "pitch", 0)
    return move(made)


cdef unique_ptr[NodeChange] copy_change(object dst, object src, object size, object dst_owner,
                                        object src_owner) except *:
    cdef core.CopyChange* change = new core.CopyChange()
    cdef unique_ptr[NodeChange] made = unique_ptr[NodeChange](change)
    for place, owner, name in ((dst, dst_owner, "dst"), (src, src_owner, "src")):
        if place is None and owner is not None:
            raise ValueError(f"{name}_owner is for an address that is given as {name}")
    if dst is not None:
        change.has_destination = True
        memory_of(dst, dst_owner, "dst", change.destination)
    if src is not None:
        change.has_source = True
        memory_of(src, src_owner, "src", change.source)
    if size is not None:
        change.has_size, change.size = True, number_of(size, "size", 1)
    return move(made)


cdef unique_ptr[NodeChange] event_change(int type, object event) except *:
    if not isinstance(event, Event):
        raise TypeError(f"event must be an Event, not {event.__class__.__name__}")
    return unique_ptr[NodeChange](new core.EventChange(type, (<Event>event)._event[0], foreign_reference(event)))


cdef unique_ptr[NodeChange] host_change(object fn, object user_data) except *:
    cdef Retention retention
    cdef Ref[ForeignReference] called
    cdef HostFunction found = host_function(fn, user_data, retention)
    if not isinstance(fn, ctypes._CFuncPtr):
        called = foreign_reference(fn)
    return unique_ptr[NodeChange](new core.HostChange(found.function, found.user_data, move(retention), move(called)))


cdef unique_ptr[NodeChange] child_change(GraphDefinition& child, bool lasts) except *:
    return unique_ptr[NodeChange](new core.ChildChange(child, lasts))


cdef dict ALLOCATION_KINDS = {
    GraphMemoryType.DEVICE: <int>core.AllocationKind.device,
    GraphMemoryType.HOST: <int>core.AllocationKind.host,
    GraphMemoryType.MANAGED: <int>core.AllocationKind.managed,
}


cdef unique_ptr[NodeChange] allocation_change(object size, object memory_type, object peer_access) except *:
    cdef vector[int] reached_by
    cdef size_t bytes_of_it = number_of(size, "size", 1)
    cdef int kind = ALLOCATION_KINDS[GraphMemoryType(memory_type)]
    for device in () if peer_access is None else peer_access:
        reached_by.push_back(as_device(device).context_of().device().ordinal())
    return unique_ptr[NodeChange](
        new core.AllocationChange(bytes_of_it, <core.AllocationKind>kind, reached_by))


cdef unique_ptr[NodeChange] free_change(object dptr) except *:
    return unique_ptr[NodeChange](new core.FreeChange(checked_handle(dptr, "dptr")))
