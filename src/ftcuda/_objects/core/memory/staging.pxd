from core.device.device cimport Context
from core.sync.reason cimport Status


cdef extern from "_core/memory/staging.hpp" namespace "ftcuda::core" nogil:
    cppclass Staging:
        @staticmethod
        Staging& of(Context& context) except +
        Status trim() except +
