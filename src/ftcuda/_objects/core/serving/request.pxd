from libcpp cimport bool
from libcpp.memory cimport unique_ptr

from core.completion.completion cimport Waiter
from core.serving.rows cimport Rows, RowSizes
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from core.sync.ref cimport Ref, Shared


cdef extern from "_core/serving/request.hpp" namespace "ftcuda::core::serving::Request" nogil:
    cppclass Time:
        pass


cdef extern from "_core/serving/request.hpp" namespace "ftcuda::core::serving" nogil:
    cppclass Request(Shared):
        @staticmethod
        Request* make(size_t rows, const RowSizes& results, double deadline) except +
        size_t rows()
        const Rows& results()
        bool is_over()
        bool is_cancelled()
        Status status()
        Shared* cause()
        Shared& attach(Ref[Shared] what)
        Shared* attached()
        Status wait(const Limit& limit)
        void tell(unique_ptr[Waiter] waiter) except +
        void retain()
        void release()
