from libcpp cimport bool

from core.completion.completion cimport Awaited
from core.device.device cimport Context, CUevent
from core.stream.capture_session cimport CaptureSession
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    unsigned CU_EVENT_BLOCKING_SYNC
    unsigned CU_EVENT_DISABLE_TIMING


cdef extern from "_core/stream/event.hpp" namespace "ftcuda::core" nogil:
    cppclass Event(Awaited):
        @staticmethod
        Status create(Context& context, unsigned flags, CaptureSession* session, Ref[Event]& event) except +
        @staticmethod
        Status elapsed(Event& start, Event& end, float& milliseconds)
        Context& context()
        CUevent cu_event()
        CUevent share_cu_event()
        bool is_known_done()
        unsigned flags()
        void close()
        bool is_closed()
        void release()
        Status synchronize(const Limit& limit)
        Status query(bool& done)
