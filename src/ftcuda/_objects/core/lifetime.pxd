cdef extern from "_core/lifetime.hpp" namespace "ftcuda::core" nogil:
    cppclass Ref[Object]:
        Ref()
        Object* get()
        Object* detach()
