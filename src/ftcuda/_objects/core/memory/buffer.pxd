from libc.stdint cimport uint64_t
from libcpp cimport bool

from core.device.device cimport Context, CUevent
from core.memory.account cimport Account
from core.memory.resource cimport MemoryResource, StagingTurn
from core.stream.stream cimport Stream
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/memory/buffer.hpp" namespace "ftcuda::core" nogil:
    cppclass ReleasedHolder "ftcuda::core::Buffer::ReleasedHolder":
        ReleasedHolder()
        void* holder
        CUevent event

    cppclass Buffer:
        @staticmethod
        Status allocate(MemoryResource& resource, size_t bytes, Stream* stream, Ref[Buffer]& buffer) except +
        @staticmethod
        Status allocate_where_memory_is_short(
            MemoryResource& resource, size_t bytes, Stream* stream, Ref[Buffer]& buffer
        ) except +
        @staticmethod
        Status lease(
            MemoryResource& resource, size_t bytes, const StagingTurn& turn, Limit limit, Ref[Buffer]& buffer
        ) except +
        @staticmethod
        Ref[Buffer] wrap(Context& context, uint64_t pointer, size_t bytes, void* holder) except +
        void* holder()
        void close_window()
        void leave_credit_to_holder()
        void credit()
        uint64_t pointer()
        size_t size()
        Context& context()
        Status close(Stream* stream, bool idle, bool collected, ReleasedHolder& released) except +
        bool is_of_graph()
        Status close_in_graph(Stream* stream) except +
        @staticmethod
        Status close_in_graph_at(Stream& stream, uint64_t pointer) except +
        @staticmethod
        void end_collection()
        bool is_closed()
        void release_attached()
        bool enter()
        void leave(ReleasedHolder& released)
        void retain()
        Status charge_to(Account& account) except +
        Status order_before(Stream& consumer) except +
        bool announce_close()
