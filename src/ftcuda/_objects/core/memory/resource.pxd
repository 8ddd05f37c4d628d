from libc.stdint cimport uint64_t
from libcpp cimport bool

from core.device.device cimport Context
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/memory/resource.hpp" namespace "ftcuda::core" nogil:
    enum class MemoryKind:
        device
        pinned
        managed

    cppclass CacheFigures "ftcuda::core::Cache::Figures":
        uint64_t in_use_bytes
        uint64_t in_use_count
        uint64_t cached_bytes
        uint64_t cached_count
        uint64_t hits
        uint64_t misses

    cppclass StagingFigures "ftcuda::core::StagingStore::Figures":
        uint64_t in_use_bytes
        uint64_t in_use_count
        uint64_t idle_bytes
        uint64_t idle_count
        uint64_t waiting

    cppclass StagingStore:
        size_t most()
        StagingFigures figures() except +

    cppclass StagingTurn "ftcuda::core::StagingStore::Turn":
        StagingTurn(StagingStore& store) except +

    cppclass MemoryResource:
        @staticmethod
        Status default_pool(Context& context, Ref[MemoryResource]& resource) except +
        @staticmethod
        Status make_pool(Context& context, MemoryKind kind, size_t limit, Ref[MemoryResource]& resource) except +
        @staticmethod
        Status for_graphs(Context& context, Ref[MemoryResource]& resource) except +
        @staticmethod
        Ref[MemoryResource] plain(Context& context, MemoryKind kind) except +
        @staticmethod
        Ref[MemoryResource] staging(Context& context, size_t bytes) except +
        StagingStore* staging_store()
        Context& context()
        MemoryKind kind()
        bool is_pool()
        bool is_owned()
        void* cu_pool()
        void close()
        bool is_closed()
        bool enter()
        void leave()
        void retain()
        void release()
        void keep_forever()
        Status get_attribute(int attribute, uint64_t& value)
        Status set_attribute(int attribute, uint64_t value)
        Status trim(size_t bytes_to_keep) except +
        @staticmethod
        Status cached(MemoryResource& upstream, size_t limit, Ref[MemoryResource]& resource) except +
        bool is_cached()
        CacheFigures cache_figures()
