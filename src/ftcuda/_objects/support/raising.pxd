from core.sync.reason cimport Status

cdef extern from "_objects/support/only_made.hpp" namespace "ftcuda::objects":
    void refuse_to_make(object type)

cdef int raise_status(Status status, str verb, object subject, tuple involved=*) except -1


cdef inline int check(Status status, str verb, object subject) except -1:
    """Raises what `status` means unless it is a success. Where the subject is yet to be put into words, raise_status()
    fits.
    """
    return 0 if status.ok() else raise_status(status, verb, subject)


cdef int refuse_to_wait(str verb, object subject) except -1
cdef int refuse_in_forked_child(str verb, object subject) except -1
cdef int refuse_in_host_function(str verb, object subject) except -1
cdef str noun_of(object thing)
cdef int release_and_warn() except -1
cdef int warn_of_errors() except -1
