from libc.stdint cimport uint64_t
from libcpp.list cimport list as cpp_list

from core.completion.completion cimport Waiter
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/completion/inbox.hpp" namespace "ftcuda::core::Inbox" nogil:
    cppclass Finished:
        uint64_t number
        Status status


cdef extern from "_core/completion/inbox.hpp" namespace "ftcuda::core" nogil:
    cppclass Inbox:
        @staticmethod
        int open(Ref[Inbox]& inbox) except +
        int descriptor()
        void put(cpp_list[Finished]& finished)
        cpp_list[Finished] take()
        void close()
        void release()

    cppclass InboxWaiter(Waiter):
        InboxWaiter(Ref[Inbox] inbox, uint64_t number) except +
