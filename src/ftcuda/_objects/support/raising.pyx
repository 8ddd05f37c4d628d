"""The one place that turns a status of the core into an exception."""

import re
import warnings

from core.device.deferred_errors cimport DeferredError, any_deferred_error, pop, pop_dropped
from core.driver.status cimport describe, error_name, error_text
from core.sync.may_wait cimport may_wait
from core.sync.reason cimport Reason, Status
from ftcuda._objects.support.deferred_release cimport release_done
from ftcuda._objects.support.waiting cimport pass_on

from ftcuda.errors import (
    CUDAError,
    CUDAWarning,
    ClosedError,
    ContextPoisonedError,
    CooperativeLaunchError,
    ForkedProcessError,
    ForwardError,
    NotSupportedError,
    OutOfMemoryError,
    QueueFullError,
    RequestExpiredError,
    SectionAbandonedError,
)

# What to do about the codes that have a usual cause. CUresult, cuda.h 13.5.
NEXT_STEPS = {
    1: "check the arguments",
    2: "free buffers that are not needed, or allocate less",
    100: "check that the system has a CUDA device and that CUDA_VISIBLE_DEVICES does not hide it",
    101: "ftcuda.Device.get_all_devices() lists the devices there are",
    200: "check that the image is PTX, a cubin or a fatbin",
    201: "the device's context was destroyed by other code in this process",
    209: "compile for this device's architecture, or to PTX",
    218: "the log of the exception says which instruction or line",
    222: "the PTX is newer than the driver; compile with an older NVRTC or update the driver",
    400: "check that the object belongs to this device and was not destroyed by other code",
    600: "synchronise first",
    700: (
        "a kernel or a copy touched memory that it must not: out of bounds, or before the stream of its allocation got "
        "there, which other streams have to wait for (docs/guide/streams.md); compute-sanitizer finds the place"
    ),
    701: "use smaller blocks or less shared memory",
    716: "a kernel made an access that is not aligned to its size",
    719: "compute-sanitizer finds the place",
    720: "use fewer blocks: all blocks of a cooperative launch must fit on the device at once",
    801: "Device.features says what this device and driver offer",
    900: "this call is not allowed while a stream of this thread or context is captured",
    904: "join the parts that split() made before end_building()",
    901: "a forbidden call ended the capture; end it and capture again",
    906: "do not use the legacy default stream while a blocking stream is captured",
}

# What each reason is raised as: the exception; its text after the attempt, with what is in braces asked of the Failure;
# and what else the exception is told of the failure.
TOLD = ("code", "name", "entry_point")
OUTCOMES = {
    <int>Reason.driver: (CUDAError, "{0.name} ({0.meaning}{0.deferred}); {0.next_step}", TOLD),
    <int>Reason.absent: (
        NotSupportedError,
        "the driver has no {0.entry_point}; drivers of CUDA {0.since} and newer have it",
        ("entry_point",),
    ),
    <int>Reason.in_host_function: (
        CUDAError,
        "the calling thread is in a function that a stream waits for, and such a function must make no call of the "
        "driver: each could wait for the other for ever; functions for when_done() may",
        TOLD,
    ),
    <int>Reason.poisoned: (
        ContextPoisonedError,
        "the device's context ended with {0.name} ({0.meaning}), first reported by {0.entry_point}; {0.next_step}; "
        "restart the process",
        TOLD,
    ),
    <int>Reason.closed: (ClosedError, "{0.what_is_closed}", ()),
    <int>Reason.timed_out: (TimeoutError, "it was not done in time; the work goes on, and what it uses is kept", ()),
    <int>Reason.abandoned: (
        SectionAbandonedError,
        "the thread or task in the stream's exclusive section ended, or lost the section, before its end; the section "
        "is over now, and the stream works again",
        (),
    ),
    <int>Reason.other_task: (
        RuntimeError,
        "another asyncio task of this thread is in the stream's exclusive section, and awaits there. Do not await "
        "between the section's enter and exit",
        (),
    ),
    <int>Reason.not_building: (
        RuntimeError,
        "a graph builder takes work only after its begin_building() and before its end_building()",
        (),
    ),
    <int>Reason.begun: (
        RuntimeError, "it has begun before, and builds one graph; make another builder for another graph", (),
    ),
    <int>Reason.unended: (RuntimeError, "it has no graph yet; call end_building() first", ()),
    <int>Reason.body_unended: (
        RuntimeError, "the body of one of its conditional nodes is still building; end that first", (),
    ),
    <int>Reason.spoilt: (
        RuntimeError,
        "a part, or the body of a conditional node, was closed or lost half built, or the driver failed amid an "
        "addition; close this builder, and build the graph anew",
        (),
    ),
    <int>Reason.has_parameters: (
        NotSupportedError,
        "its launches replace arguments, and the driver knows their places in a graph that stays as it is; build it "
        "without a Parameter and scratch memory",
        (),
    ),
    <int>Reason.other_attributes: (
        ValueError,
        "a LaunchConfig in place of another one must have the same cluster, is_cooperative and "
        "programmatic_stream_serialization: the driver changes only grid, block and shmem_size",
        (),
    ),
    <int>Reason.only_instance: (
        NotSupportedError,
        "the driver makes one executable at a time of a graph with conditional nodes or memory nodes; complete it "
        "with max_concurrency=1, and close the graph that it made before",
        (),
    ),
    <int>Reason.no_builder: (
        RuntimeError,
        "a graph allocates it, and so a graph builder that builds must be the stream; DeviceMemoryResource allocates "
        "in other streams",
        (),
    ),
    <int>Reason.in_builder: (
        RuntimeError,
        "what is allocated in a graph builder is the graph's; GraphMemoryResource allocates that, or allocate in "
        "another stream and capture the buffer",
        (),
    ),
    <int>Reason.in_body: (
        NotSupportedError,
        "the driver neither allocates nor frees memory in the body of a conditional node; do so in the builder around "
        "it",
        (),
    ),
    <int>Reason.memory_of_others: (
        RuntimeError,
        "it is the memory of another graph, which frees it, or is freed with it; close it without a stream",
        (),
    ),
    <int>Reason.memory_of_buffer: (
        RuntimeError,
        "a buffer has that memory, which its builder allocated, and frees it; close it while the builder builds",
        (),
    ),
    <int>Reason.other_kernel: (RuntimeError, "another thread gave it another kernel", ()),
    <int>Reason.has_memory: (
        NotSupportedError, "it allocates memory: such a graph is neither part of another one nor updated", (),
    ),
    <int>Reason.unlaunched: (
        RuntimeError, "a graph allocates it when it is launched, which it never was; launch the graph before", (),
    ),
    <int>Reason.unfreed: (
        RuntimeError,
        "memory that it allocated in a launch before is not freed; close the buffers in the builder, as the last thing "
        "that it captures, or complete it with auto_free_on_launch",
        (),
    ),
    <int>Reason.gone: (
        ClosedError, "a node that takes part was destroyed, or a graph within a node that was destroyed or updated", (),
    ),
    <int>Reason.other_graph: (ValueError, "a node that takes part is of another graph definition", ()),
    <int>Reason.stays: (
        RuntimeError,
        "a graph with a max_concurrency was made of the definition, and makes more executables of it; close that graph "
        "first, or build another definition",
        (),
    ),
    <int>Reason.updated: (
        RuntimeError, "its nodes are no more those that it was made of, since its update(); instantiate another graph",
        (),
    ),
    <int>Reason.too_small: (ValueError, "a buffer in it is smaller than what is read or written", ()),
    <int>Reason.unplaced: (
        RuntimeError,
        "it has a condition without a conditional node, and the driver launches no such graph; build it anew",
        (),
    ),
    <int>Reason.unjoined: (RuntimeError, "join the parts that split() made before end_building()", ()),
    <int>Reason.builders: (
        RuntimeError,
        "it is a graph builder's: what is captured does not run, so that nobody waits for it or asks about it; ask the "
        "stream in which the graph is launched",
        (),
    ),
    <int>Reason.other_capture: (
        RuntimeError,
        "a graph builder's work waits only for work of the same capture, by events that its own stream made, and "
        "nobody else waits for that; split() and join() order what a builder captures, and launches of its graph the "
        "rest",
        (),
    ),
    <int>Reason.captured_event: (
        RuntimeError,
        "a capture that goes on has recorded this event, and only streams of that capture record it again; use another "
        "event",
        (),
    ),
    <int>Reason.cancelled: (RuntimeError, "it was cancelled", ()),
    <int>Reason.expired: (RequestExpiredError, "its deadline came before it was begun", ()),
    <int>Reason.queue_full: (QueueFullError, "as many rows wait as may; ask again later, or with a timeout", ()),
    <int>Reason.raised: (ForwardError, "forward has raised an exception", ()),
    <int>Reason.forked: (
        ForkedProcessError,
        "this process was forked from one that used CUDA, which does not survive a fork; start workers with "
        "multiprocessing's 'spawn' method",
        (),
    ),
    <int>Reason.wrong_device: (ValueError, "the objects in this call belong to different devices", ()),
    <int>Reason.not_found: (KeyError, "no such symbol in the image", ()),
    <int>Reason.capturing: (CUDAError, "a stream that takes part is being captured; end the capture first", ()),
    <int>Reason.not_supported: (
        NotSupportedError, "this device or driver mode does not offer it; see Device.features", (),
    ),
}
# Answers of the driver that have an exception of their own.
ANSWERS = {2: OutOfMemoryError, 720: CooperativeLaunchError}


cdef str decode(const char* text):
    return text.decode("utf-8", "replace")


cdef str version_text(int version):
    return f"{version // 1000}.{version % 1000 // 10}"


cdef class Failure:
    """What the texts of OUTCOMES say of an attempt that failed; asked only for what the text has in it."""

    cdef Status _status       # constant, as all of them
    cdef str _attempt
    cdef object _subject
    cdef tuple _involved

    @property
    def code(self):
        return self._status.code()

    @property
    def name(self):
        return decode(error_name(self._status.code()))

    @property
    def meaning(self):
        return decode(error_text(self._status.code()))

    @property
    def entry_point(self):
        return decode(describe(self._status.entry()).symbol)

    @property
    def since(self):
        return version_text(describe(self._status.entry()).version)

    @property
    def deferred(self):
        return ", deferred: the failure is of work submitted earlier" if self._status.code() in STICKY else ""

    @property
    def next_step(self):
        usual = "see the CUDA driver API reference"
        if self._status.reason() == Reason.poisoned:
            usual = "compute-sanitizer finds the place"
        return NEXT_STEPS.get(self._status.code(), usual)

    @property
    def what_is_closed(self):
        """Names the closed one of the objects in a call: it stays closed, and is found though the core only said that
        one was.
        """
        for name, thing in (*self._involved, (noun_of(self._subject), self._subject)):
            if getattr(thing, "is_closed", False):
                text = repr(thing)
                return f"{name} is closed" if text in self._attempt else f"{name}, {text}, is closed"
        return "another thread closed what it needs"  # a resource behind the resource


cdef str noun_of(object thing):
    return "the " + re.sub("(?<!^)(?=[A-Z])", " ", type(thing).__name__).lower()


cdef int raise_status(Status status, str verb, object subject, tuple involved=()) except -1:
    """Raises what `status`, which is not a success, means for the attempt to `verb` the `subject`.

    `involved`: pairs of a name and an object, for what may be closed beside the subject.
    """
    cdef Reason reason = status.reason()
    cdef Failure failure
    if reason == Reason.interrupted:
        pass_on()  # what a signal's handler raised while the core waited
    error, text, told = OUTCOMES[<int>reason]
    if reason == Reason.driver:
        error = ANSWERS.get(status.code(), error)
    failure = Failure.__new__(Failure)
    failure._status, failure._attempt = status, f"cannot {verb} {subject}"
    failure._subject, failure._involved = subject, involved
    raise error(f"{failure._attempt}: {text.format(failure)}", **{each: getattr(failure, each) for each in told})


cdef int refuse_to_wait(str verb, object subject) except -1:
    """Raises in a forked child, and in a function that a stream waits for: for calls that lock something, or wait,
    before the core looks whether it may go on.
    """
    cdef Status status = may_wait()
    return 0 if status.ok() else raise_status(status, verb, subject)


cdef int refuse_in_forked_child(str verb, object subject) except -1:
    """For calls that only tell others."""
    cdef Status status = may_wait()
    return raise_status(status, verb, subject) if status.reason() == Reason.forked else 0


cdef int refuse_in_host_function(str verb, object subject) except -1:
    """Raises in a function that a stream waits for."""
    cdef Status status = may_wait()
    return raise_status(status, verb, subject) if status.reason() == Reason.in_host_function else 0


# Failures that the driver finds while it works and reports from whichever call comes next.
STICKY = frozenset({214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719})


cdef int release_and_warn() except -1:
    """What waits for a caller: objects whose work is done go, and failures of destructors become warnings."""
    release_done()
    return warn_of_errors()


cdef int warn_of_errors() except -1:
    """Warns of the failures of destructors since the last time."""
    cdef DeferredError error
    cdef size_t dropped
    if not any_deferred_error():
        return 0
    while pop(error):
        code = error.status.code()
        entry = decode(describe(error.status.entry()).symbol)
        warnings.warn(
            f"cannot {decode(error.verb)} {decode(error.object)}: {decode(error_name(code))} "
            f"({decode(error_text(code))}) from {entry}, while a destructor ran",
            CUDAWarning,
            stacklevel=2,
        )
    dropped = pop_dropped()
    if dropped:
        warnings.warn(f"{dropped} more failures of destructors were not kept", CUDAWarning, stacklevel=2)
    return 0
