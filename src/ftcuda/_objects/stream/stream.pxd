cimport core.stream.stream as core
from core.device.device cimport Context
from ftcuda._objects.device.device_handle cimport DeviceHandle


cdef class Stream:
    cdef core.Stream* _stream      # constant; null for the default streams of "whatever device is asked for"
    cdef core.CUstream _token      # constant; which default stream that is
    cdef object __weakref__

    cdef core.Stream* on(self, Context* context) except NULL
    cdef size_t share(self) noexcept
    cdef size_t number(self) noexcept  # the handle, also of a closed stream
    @staticmethod
    cdef Stream adopt(core.Stream* made)
    @staticmethod
    cdef Stream create(DeviceHandle device, object obj, object options)
    @staticmethod
    cdef Stream default_of(DeviceHandle device, bint per_thread)


cdef class StreamSource:
    """What has a stream of ours, by which it is meant wherever a stream is wanted: a graph builder."""
    cdef Stream _stream            # constant
    cdef object __weakref__

    cdef int launch_named(self, object config, object kernel, tuple values) except -1
    cdef int check_host_function(self) except -1


cdef Stream as_stream(object stream)


cdef inline core.Stream* core_stream(Stream stream, Context* context) except NULL:
    """`stream.on(context)`, without a call for what is no default stream."""
    return stream._stream if stream._stream != NULL else stream.on(context)


cdef inline Stream quick_stream(object stream):
    """`as_stream(stream)`, without a call for what is a Stream."""
    return <Stream>stream if type(stream) is Stream else as_stream(stream)
