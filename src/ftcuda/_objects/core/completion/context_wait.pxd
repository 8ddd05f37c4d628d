from core.device.device cimport Context
from core.sync.limit cimport Limit
from core.sync.reason cimport Status


cdef extern from "_core/completion/context_wait.hpp" namespace "ftcuda::core" nogil:
    Status synchronize(Context& context) except +
    Status synchronize(Context& context, const Limit& limit) except +
