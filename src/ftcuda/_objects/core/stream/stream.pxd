from libc.stdint cimport uint64_t
from libcpp cimport bool

from core.completion.deferred_release cimport ForeignReference
from core.completion.completion cimport Awaited
from core.device.device cimport Context, CUevent
from core.stream.capture_session cimport CaptureSession
from core.stream.event cimport Event
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    ctypedef void* CUstream
    CUstream CU_STREAM_LEGACY
    CUstream CU_STREAM_PER_THREAD
    unsigned CU_STREAM_DEFAULT
    unsigned CU_STREAM_NON_BLOCKING


cdef extern from "_core/stream/stream.hpp" namespace "ftcuda::core" nogil:
    cppclass Stream(Awaited):
        @staticmethod
        Status create(Context& context, unsigned flags, int priority, Ref[Stream]& stream) except +
        @staticmethod
        Status wrap(CUstream cu_stream, Ref[Stream]& stream) except +
        @staticmethod
        Status find_default(Context& context, CUstream token, Stream*& stream) except +
        void keep_owner(Ref[ForeignReference] owner)
        Context& context()
        CUstream cu_stream()
        CUstream share_cu_stream()
        unsigned flags()
        int priority()
        bool is_default()
        uint64_t id()
        CaptureSession* session()
        void close()
        bool is_closed()
        bool enter()
        void leave()
        void retain()
        void release()
        Status synchronize(const Limit& limit)
        Status wait(Context& context, CUevent event)
        Status query(bool& done)
        Status record(Event& event)
        Status wait(Event& event)
        Status wait(Stream& other)


cdef extern from "_core/stream/exclusive_section.hpp" namespace "ftcuda::core::ExclusiveSection" nogil:
    struct Tasks:
        uint64_t (*running)() noexcept nogil
        bool (*has_ended)(uint64_t task) noexcept nogil

    void learn_of_tasks_by(const Tasks& tasks)


cdef extern from "_core/stream/section_holder.hpp" namespace "ftcuda::core" nogil:
    cppclass SectionHolder:
        SectionHolder(Stream& stream)
        Status begin(uint64_t task) except +
        bool end()


cdef extern from "_core/stream/held_sections.hpp" namespace "ftcuda::core::held_sections" nogil:
    uint64_t next_task()
    void give_up(uint64_t task)
