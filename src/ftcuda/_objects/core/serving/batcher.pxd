from libc.stdint cimport uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from core.serving.request cimport Request
from core.serving.rows cimport Rows, RowSizes
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/serving/statistics.hpp" namespace "ftcuda::core::serving" nogil:
    cpdef enum class Count:
        requests
        rows
        rejected
        done
        failed
        cancelled
        expired
        batches
        batch_rows
        padding
        left_full
        left_by_delay
        left_by_idleness
        left_by_drain

    const size_t buckets "ftcuda::core::serving::Histogram::buckets"

    cppclass Histogram:
        uint64_t count(size_t bucket)
        uint64_t sum()

    cppclass Statistics:
        uint64_t operator[](Count count)
        Histogram total, device, waiting


cdef extern from "_core/serving/batcher.hpp" namespace "ftcuda::core::serving" nogil:
    cppclass Policy:
        Policy()
        vector[size_t] sizes
        size_t max_queued
        size_t in_flight
        size_t priorities
        size_t patience
        size_t lanes()
        void set_times(double max_delay, double time_limit)

    cppclass Batcher:
        Status submit(Request& request, const Rows& rows, size_t priority, const Limit& limit) except +
        void close()
        void abandon()
        bool is_closed()
        Status wait_for_rest(const Limit& limit)
        bool cancel(Request& request)
        const Statistics& statistics()
        bool is_lost()
        size_t queued()

ctypedef vector[Ref[Batcher]] Batchers  # one for each device
