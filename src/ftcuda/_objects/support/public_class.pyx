"""How a public class stands above its handle.

Objects make each other in both directions: a device makes streams, and a stream says which device it is on. So the
lower side knows a handle, a class with the fields that it works with, and the public class is derived from it and
stands above all that its methods need. Both say so once, while ftcuda is imported:

    cdef const PublicClass* views = declare_handle(ViewHandle)    # in the module of the handle
    stand_above(StridedMemoryView, ViewHandle)                    # in the module of the public class

From the second line on ``unmade(views)`` gives objects of the public class to those that stand below it.
"""

from libc.stdlib cimport calloc

# The declared handles. Written while ftcuda is imported, which one thread does; constant afterwards.
cdef PublicClass* declared = NULL


cdef const PublicClass* register(object handle, Completion complete) except NULL:
    global declared
    cdef PublicClass* made = <PublicClass*>calloc(1, sizeof(PublicClass))
    if made == NULL:
        raise MemoryError()
    made.handle = made.type = <PyTypeObject*>handle
    made.make = made.type.tp_new  # which refuses
    made.complete = complete
    made.next = declared
    declared = made
    return made


cpdef int stand_above(object public, object handle) except -1:
    """Says which class is the public one of a handle. Once for each handle, by the module of the public class, before
    it changes how others make objects of the class.
    """
    cdef PublicClass* above = declared
    while above != NULL and above.handle != <PyTypeObject*>handle:
        above = above.next
    if above == NULL:
        raise TypeError(f"{handle!r} was not declared as a handle")
    if above.type != above.handle:
        raise TypeError(f"{<object><PyObject*>above.type!r} stands above {handle!r} already")
    if public is handle or not issubclass(public, handle):
        raise TypeError(f"{public!r} is not derived from {handle!r}")
    above.type = <PyTypeObject*>public
    above.make = above.type.tp_new
    if above.complete != NULL:
        above.complete(above)
    return 0


def public_classes():
    """The public class of each handle that was declared."""
    cdef PublicClass* above = declared
    found = {}
    while above != NULL:
        found[<object><PyObject*>above.handle] = <object><PyObject*>above.type
        above = above.next
    return found
