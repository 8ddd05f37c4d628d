from libcpp cimport bool as cpp_bool
from libcpp.memory cimport unique_ptr

from core.completion.completion cimport Awaited, Waiter
from core.device.device cimport Context
from core.sync.reason cimport Status


cdef extern from "_core/completion/reactor.hpp" namespace "ftcuda::core::Reactor" nogil:
    cdef enum class Pace:
        adapted
        spinning
        sleeping


cdef extern from "_core/completion/reactor.hpp" namespace "ftcuda::core" nogil:
    cppclass Reactor:
        @staticmethod
        Reactor& only()
        void set_pace(Pace pace)
        Status begin(Awaited& awaited, Context& context, unique_ptr[Waiter] waiter) except +
        Status begin(Awaited& awaited, Context& context, unique_ptr[Waiter] waiter, cpp_bool& is_over) except +
        size_t pending()
