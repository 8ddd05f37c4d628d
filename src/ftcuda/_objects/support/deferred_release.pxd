from core.device.device cimport Context, CUevent
from core.completion.deferred_release cimport ForeignReference, Retention
from core.sync.ref cimport Ref, Shared

cdef Retention* retain(Retention& retention, object wanted) except NULL
cdef Ref[ForeignReference] foreign_reference(object wanted) except *
cdef Ref[Shared] shared(Ref[ForeignReference] reference) noexcept
cdef object object_of(Shared* reference)
cdef int release_after(Context* context, CUevent event, object wanted) except -1
cdef int release_done() except -1
cdef int write_unraisable(object error, object function) except -1
cdef int release_holder(Context* context, void* holder, CUevent event, bint closing) except -1
cdef int make_call(PendingCall wanted, bint closing) except -1
cdef bint amid_collection() noexcept nogil
cdef int give_way() except -1
cdef bint give_back(double seconds) except -1


cdef class PendingCall:
    """A call of others' code, which comes once. Memory that is given back to a resource is held by one."""

    # By whoever is about to call.
    cdef Context* _context
    cdef CUevent _event      # what it comes after, which call() takes over; null where that is reached

    cdef int call(self) except -1
