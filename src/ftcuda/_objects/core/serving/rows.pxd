from libcpp.vector cimport vector


cdef extern from "<cstddef>" namespace "std" nogil:
    cppclass byte:
        pass


cdef extern from "_core/serving/rows.hpp" namespace "ftcuda::core::serving" nogil:
    ctypedef vector[size_t] RowSizes

    cppclass Rows:
        Rows()
        Rows(vector[byte*] arrays) except +
        byte* array(size_t index)
        @staticmethod
        size_t bytes(const RowSizes& sizes, size_t count)
