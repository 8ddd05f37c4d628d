from core.driver.status cimport Status

cdef extern from "_objects/support/only_made.hpp" namespace "ftcuda::objects":
    void refuse_to_make(object type)

cdef int raise_status(Status status, str verb, object subject, tuple involved=*) except -1
cdef str noun_of(object thing)
cdef int deliver_mail() except -1
