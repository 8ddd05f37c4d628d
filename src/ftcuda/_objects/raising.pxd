from core.status cimport Status

cdef int raise_status(Status status, str verb, object subject) except -1
cdef int deliver_mail() except -1
