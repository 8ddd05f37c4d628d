from libcpp cimport bool

from core.completion.completion cimport Awaited
from core.device.device cimport Context
from core.sync.reason cimport Status


cdef extern from "_core/completion/polled.hpp" namespace "ftcuda::core" nogil:
    cppclass PolledCompletion:
        @staticmethod
        bool is_wanted()
        PolledCompletion(Context& context) except +
        Status begin(Awaited& awaited) except +
        Status ask()
