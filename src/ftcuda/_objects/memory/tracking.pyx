"""The resource that remembers what is allocated through it."""

import atexit
import sys
import traceback
import weakref
from collections import namedtuple

from ftcuda._objects.memory.resource cimport allocate_from
from ftcuda._objects.memory.wrapped cimport WrappedMemoryResource

LiveAllocation = namedtuple("LiveAllocation", ("buffer", "size", "stack"), module=__name__)
LiveAllocation.__doc__ = "A buffer that was not closed yet, its bytes, and the lines that led to its allocation."


cdef class TrackingMemoryResource(WrappedMemoryResource):
    """Remembers which buffers live and where they were allocated.

    Parameters
    ----------
    upstream : MemoryResource
    capture_stacks : bool
        Keep the lines that led to each allocation, which costs some microseconds each.
    report_at_exit : bool
        Write what was not closed to the standard error stream when the interpreter ends.
    """

    # Constant; by a record's id. Its own steps are atomic, which is all that is asked of it.
    cdef dict _live
    cdef bint _capture_stacks    # constant

    def __init__(self, upstream, *, capture_stacks=True, report_at_exit=False):
        super().__init__(upstream)
        self._live = {}
        self._capture_stacks = capture_stacks
        if report_at_exit:
            atexit.register(self._report)

    cdef object allocate_for(self, object size, object stream, object reported):
        buffer = allocate_from(self._upstream, size, stream, reported)
        live = self._live
        record = [None, buffer.size, traceback.extract_stack() if self._capture_stacks else None]
        key = id(record)

        def forget(_):
            live.pop(key, None)

        record[0] = weakref.ref(buffer, forget)
        live[key] = record
        return buffer

    @property
    def live_allocations(self):
        """The buffers that are neither closed nor collected, oldest first, as `LiveAllocation`. Thread safety: shared.
        """
        found = []
        for key, (reference, size, stack) in list(self._live.items()):
            buffer = reference()
            if buffer is None or buffer.is_closed:
                self._live.pop(key, None)
            else:
                found.append(LiveAllocation(buffer, size, stack))
        return found

    def report(self):
        """Returns a text on what lives: bytes, and the lines of each allocation. Thread safety: shared."""
        live = self.live_allocations
        parts = [f"{len(live)} buffers of {sum(each.size for each in live)} bytes from {self} are not closed"]
        for each in live:
            parts.append(f"{each.buffer}" + (", allocated at" if each.stack else ""))
            if each.stack:
                parts.append("".join(traceback.format_list(each.stack)).rstrip())
        return "\n".join(parts)

    def _report(self):
        if self.live_allocations:
            print(self.report(), file=sys.stderr)
