cdef extern from "_core/sync/ref.hpp" namespace "ftcuda::core" nogil:
    cppclass Shared:
        pass

    cppclass Ref[Object]:
        Ref()
        Ref(Object& object)
        @staticmethod
        Ref[Object] adopt(Object* object)
        Object* get()
        Object* detach()
