from libc.stdint cimport uint32_t, uint64_t

from core.device.device cimport Context
from core.memory.buffer cimport Buffer
from core.completion.deferred_release cimport Retention
from core.stream.stream cimport Stream
from core.sync.reason cimport Status


cdef extern from "_core/memory/copy.hpp" namespace "ftcuda::core" nogil:
    enum class Location:
        unknown
        device
        pinned
        managed

    cppclass Place:
        Place()
        uint64_t pointer
        Buffer* buffer

    Status locate(Context& context, uint64_t pointer, Location& location, int& ordinal)
    Status copy(Place destination, Place source, size_t bytes, Stream& stream, Retention* foreign) except +
    Status upload(Place destination, const void* source, size_t bytes, Stream& stream, Retention* foreign) except +
    Status download(void* destination, Place source, size_t bytes, Stream& stream, Retention* foreign) except +
    Status fill(Buffer& buffer, uint32_t value, unsigned width, Stream& stream, Retention* foreign) except +
