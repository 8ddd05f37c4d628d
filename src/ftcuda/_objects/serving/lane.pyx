"""Lanes, and the threads that compute in those without graphs."""

from libcpp.vector cimport vector

cimport core.graph.graph as graphs
cimport core.memory.buffer as buffers
cimport core.stream.stream as streams
from core.sync.ref cimport Shared
from ftcuda._objects.graph.graph cimport Graph
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.deferred_release cimport foreign_reference, shared


cdef class Lane:
    """Where the batches of a batcher are computed, one at a time."""

    def __dealloc__(self):
        if self._lane != NULL:
            self._lane.release()

    @staticmethod
    cdef Lane of(object parts, RowSizes& inputs, RowSizes& outputs):
        cdef vector[Ref[buffers.Buffer]] ins, outs
        cdef vector[Ref[graphs.Graph]] made
        for each in parts.inputs:
            ins.push_back(Ref[buffers.Buffer]((<BufferHandle>each)._buffer[0]))
        for each in parts.outputs:
            outs.push_back(Ref[buffers.Buffer]((<BufferHandle>each)._buffer[0]))
        for each in parts.graphs:
            made.push_back(Ref[graphs.Graph]((<Graph>each)._graph[0]))
        cdef Lane lane = Lane.__new__(Lane)
        cdef Ref[streams.Stream] stream = Ref[streams.Stream]((<Stream>parts.stream)._stream[0])
        lane._lane = new DeviceLane(stream, ins, outs, inputs, outputs, made)
        return lane

    def compute(self, forward, device, batches):
        """What a thread runs: computes each batch by `forward`, until there are none any more."""
        cdef size_t size
        cdef Ref[Shared] cause
        device.set_current()
        while True:
            with nogil:
                size = self._lane.take()
            if size == 0:
                return
            cause = Ref[Shared]()
            try:
                forward(batches[size])
            except BaseException as error:
                cause = shared(foreign_reference(error))
            with nogil:
                self._lane.computed(cause)
                cause = Ref[Shared]()
