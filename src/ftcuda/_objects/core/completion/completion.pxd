cdef extern from "_core/completion/completion.hpp" namespace "ftcuda::core" nogil:
    cppclass Awaited:
        pass

    cppclass Waiter:
        pass
