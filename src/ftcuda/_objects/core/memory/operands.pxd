from core.memory.buffer cimport Buffer
from core.completion.deferred_release cimport Retention


cdef extern from "_core/memory/operands.hpp" namespace "ftcuda::core" nogil:
    cppclass Operands:
        Operands()
        Buffer** buffers
        size_t count
        Retention* foreign
