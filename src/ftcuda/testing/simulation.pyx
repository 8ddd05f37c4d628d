"""Looking into the simulated driver, and steering it. Needs FTCUDA_DRIVER=sim."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp.atomic cimport atomic, memory_order_acquire, memory_order_release
from libcpp.string cimport string

import difflib
import functools
import os
from contextlib import contextmanager

from ftcuda import driver_info

cdef extern from "_driver/library.hpp" namespace "ftcuda::driver" nogil:
    cppclass Library:
        Library()
        @staticmethod
        Library open(const string& path, string& error) except +
        void* symbol(const char* name)

cdef extern from "../simdriver/control.hpp" nogil:
    cdef struct FtcudaSimFault:
        const char* entry
        uint64_t nth
        uint64_t thread
        int action
        int value

    cdef struct FtcudaSimControl:
        int version
        uint64_t (*violation_count)() noexcept nogil
        size_t (*violation_text)(uint64_t index, char* text, size_t capacity) noexcept
        void (*clear_violations)() noexcept nogil
        uint64_t (*live)(int object) noexcept
        uint64_t (*live_bytes)(int object) noexcept
        uint64_t (*calls)(const char* entry) noexcept nogil
        const char* (*entry)(uint64_t index) noexcept
        void (*hold)() noexcept nogil
        void (*release)() noexcept nogil
        uint64_t (*this_thread)() noexcept nogil
        uint64_t (*add_fault)(const FtcudaSimFault* fault) noexcept
        void (*release_fault)(uint64_t id) noexcept nogil
        uint64_t (*fault_hits)(uint64_t id) noexcept nogil
        uint64_t (*fault_waiting)(uint64_t id) noexcept nogil
        void (*clear_faults)() noexcept nogil
        void (*limit_memory)(int device, uint64_t bytes) noexcept
        size_t (*last_fault_text)(char* text, size_t capacity) noexcept
        void (*watch_races)(int on) noexcept nogil
        int (*schedule_begin)(int kind, unsigned depth, uint64_t seed, unsigned threads) noexcept nogil
        int (*schedule_wait)(uint64_t milliseconds) noexcept nogil
        size_t (*schedule_report)(char* text, size_t capacity) noexcept
        uint64_t (*schedule_steps)() noexcept
        uint64_t (*schedule_trace)() noexcept
        void (*schedule_enter)(uint64_t index) noexcept nogil
        void (*schedule_leave)() noexcept nogil
        int (*schedule_is_on)() noexcept
        void (*schedule_point)(const char* where) noexcept nogil
        int (*schedule_park)(const void* key, const char* where) noexcept nogil
        int (*schedule_park_for_holder)(const void* key, const char* where) noexcept nogil
        void (*schedule_unpark)(const void* key) noexcept nogil
        void (*schedule_hold)(const void* key) noexcept nogil
        void (*schedule_let_go)(const void* key) noexcept nogil
        void (*schedule_abandon)() noexcept nogil
        void (*schedule_set_detachment)(void* (*detach)() noexcept nogil,
                                        void (*attach)(void*) noexcept nogil) noexcept nogil
        int (*clock_begin)() noexcept nogil
        void (*clock_end)() noexcept nogil
        int64_t (*clock_now)() noexcept nogil
        uint64_t (*clock_waiting)() noexcept nogil
        int (*clock_wait)(unsigned threads, uint64_t milliseconds) noexcept nogil
        int (*clock_advance)(int64_t nanoseconds, uint64_t milliseconds) noexcept nogil
        int (*clock_delay)(void* stream, int64_t nanoseconds) noexcept nogil

cdef extern from *:
    """
    #ifdef FTCUDA_SCHEDULE_POINTS
    static constexpr bool built_with_schedule_points = true;
    #else
    static constexpr bool built_with_schedule_points = false;
    #endif

    // For the scheduler: a thread that waits for its turn lets go of the interpreter, if it has it.
    static void* detach_from_interpreter() {
        return PyThreadState_GetUnchecked() != nullptr ? PyEval_SaveThread() : nullptr;
    }
    static void attach_to_interpreter(void* state) { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }
    """
    const bint built_with_schedule_points
    void* detach_from_interpreter() noexcept nogil
    void attach_to_interpreter(void* state) noexcept nogil

OBJECTS = (
    "context", "stream", "event", "module", "pool", "device_allocation", "pinned_allocation", "managed_allocation",
    "registered_memory", "library", "graph", "executable",
)
ACTIONS = {"fail": 0, "hold": 1, "poison": 2, "hold after": 3}

ctypedef const FtcudaSimControl* Control
ctypedef Control (*GetControl)() noexcept nogil

# Stored with release by whoever looks first; constant from then on.
cdef atomic[Control] loaded


cdef Control control() except NULL:
    """The control surface of the loaded driver, loading it if this is its first use."""
    cdef string error
    cdef Library library
    cdef Control found = loaded.load(memory_order_acquire)
    if found != NULL:
        return found
    info = driver_info()
    if not info.simulated:
        raise RuntimeError(
            f"{info.path} is not the simulated driver: set FTCUDA_DRIVER=sim before the first use of ftcuda"
        )
    library = Library.open(os.fsencode(info.path), error)
    found = (<GetControl>library.symbol("ftcuda_sim_control"))()
    loaded.store(found, memory_order_release)
    return found


cdef Control control_if_simulated() except? NULL:
    """The same; NULL on a real driver."""
    return control() if driver_info().simulated else NULL


def violations():
    """Returns what was done that correct programs never do, oldest first (256 at most are kept). Thread safety: shared.
    """
    cdef Control sim = control()
    cdef char[512] text
    cdef uint64_t index
    texts = []
    for index in range(min(sim.violation_count(), <uint64_t>256)):
        sim.violation_text(index, text, sizeof(text))
        texts.append((<const char*>text).decode())
    return texts


def clear_violations():
    """Forgets the violations. Thread safety: atomic."""
    control().clear_violations()


def live():
    """Returns the number of live driver objects by kind. Thread safety: shared."""
    cdef Control sim = control()
    return {name: sim.live(index) for index, name in enumerate(OBJECTS)}


def live_bytes():
    """Returns the bytes of live memory by kind. Thread safety: shared."""
    cdef Control sim = control()
    return {name: sim.live_bytes(index) for index, name in enumerate(OBJECTS)
            if name.endswith(("_allocation", "_memory"))}


@functools.cache
def entries():
    """Returns the names of all driver functions. Thread safety: atomic."""
    cdef uint64_t index = 0
    names = []
    while control().entry(index) != NULL:
        names.append(control().entry(index).decode())
        index += 1
    return tuple(names)


def calls(entry=None):
    """Returns how often a driver function, or any, was called. Thread safety: atomic."""
    cdef bytes name
    if entry is None:
        return control().calls(NULL)
    name = known(entry).encode()
    return control().calls(name)


def known(entry):
    """Returns the name of a driver function. Raises ValueError, with the names most like it, if there is
    none of that name.
    """
    names = entries()
    if entry in names:
        return entry
    like = difflib.get_close_matches(entry, names, cutoff=0.7)
    raise ValueError(
        f"the simulated driver has no entry {entry!r}{'; there is ' + ', '.join(like) if like else ''}: see "
        "simulation.entries()"
    )


def last_fault():
    """Returns the text of the latest kernel fault, empty if there was none. Thread safety: atomic."""
    cdef char[512] text
    control().last_fault_text(text, sizeof(text))
    return (<const char*>text).decode()


def this_thread():
    """Returns the simulated driver's number of the calling thread. Thread safety: atomic."""
    return control().this_thread()


def limit_memory(uint64_t size, int device=0):
    """Lets the device hand out `size` bytes in all; 0 lifts the limit. Thread safety: atomic."""
    control().limit_memory(device, size)


@contextmanager
def held_clock():
    """For its block, streams accept work but run none of it."""
    control().hold()
    try:
        yield
    finally:
        control().release()


@contextmanager
def watched_races():
    """For its block, work of two streams on the same bytes without an order between them becomes a violation.

    Not only where it went wrong: also where this run happened to do one after the other. Both are named. Work counts
    from the beginning of the block; the host's own accesses to pinned memory are not seen.
    """
    control().watch_races(1)
    try:
        yield
    finally:
        control().watch_races(0)


def release_clock():
    """Lets streams run again inside a `held_clock` block. Thread safety: atomic."""
    control().release()


def add_fault(entry, nth, thread, action, value):
    """Behind `ftcuda.testing.faults`, where what is impossible is refused."""
    cdef FtcudaSimFault fault
    cdef bytes name = known(entry).encode()
    fault.entry = name
    fault.nth = nth
    fault.thread = thread
    fault.action = ACTIONS[action]
    fault.value = value
    return control().add_fault(&fault)


def release_fault(uint64_t number):
    cdef Control sim = control()
    with nogil:
        sim.release_fault(number)


def fault_hits(uint64_t number):
    return control().fault_hits(number)


def fault_waiting(uint64_t number):
    return control().fault_waiting(number)


cdef uint64_t in_milliseconds(double seconds):
    return <uint64_t>(min(max(seconds, 0.0), 1e9) * 1e3)


ENDINGS = ("finished", "deadlock", "stuck", "late")


def has_schedule_points():
    """Whether ftcuda was built with ``-Dschedule_points=true``: schedules switch inside its core
    then. Thread safety: atomic.
    """
    return bool(built_with_schedule_points)


def schedule_begin(int kind, unsigned depth, uint64_t seed, unsigned threads):
    """Behind `ftcuda.testing.Schedule`."""
    cdef Control sim = control()
    cdef bint begun
    with nogil:
        sim.schedule_set_detachment(detach_from_interpreter, attach_to_interpreter)
        begun = sim.schedule_begin(kind, depth, seed, threads)
    if not begun:
        raise RuntimeError("a scheduled session is under way: sessions do not nest")


def schedule_wait(double timeout):
    """Returns how the session ended. Unless it finished, its threads stand where they are until `schedule_abandon`."""
    cdef Control sim = control()
    cdef uint64_t milliseconds = in_milliseconds(timeout)
    cdef int ending
    with nogil:
        ending = sim.schedule_wait(milliseconds)
    return ENDINGS[ending]


def schedule_abandon():
    cdef Control sim = control()
    with nogil:
        sim.schedule_abandon()


def schedule_report():
    cdef bytearray text = bytearray(control().schedule_report(NULL, 0) + 1)
    control().schedule_report(text, len(text))
    return text.rstrip(b"\0").decode()


def schedule_trace():
    return control().schedule_steps(), control().schedule_trace()


def schedule_enter(uint64_t index):
    cdef Control sim = control()
    with nogil:
        sim.schedule_enter(index)


def schedule_leave():
    cdef Control sim = control()
    with nogil:
        sim.schedule_leave()


def schedule_is_on():
    """Whether the calling thread is scheduled; never so on a real driver."""
    cdef Control sim = control_if_simulated()
    return sim != NULL and bool(sim.schedule_is_on())


def schedule_point():
    cdef Control sim = control()
    with nogil:
        sim.schedule_point("test")


def schedule_park(key):
    cdef Control sim = control()
    cdef const void* address = <const void*>key
    with nogil:
        sim.schedule_park(address, "test waits")


def schedule_park_for_holder(key):
    """As `schedule_park`, where somebody has `key`: who is not scheduled lets it go without being waited for."""
    cdef Control sim = control()
    cdef const void* address = <const void*>key
    with nogil:
        sim.schedule_park_for_holder(address, "test waits")


def schedule_unpark(key):
    """Lets those go who parked on `key`; nobody did on a real driver."""
    cdef Control sim = control_if_simulated()
    cdef const void* address = <const void*>key
    if sim != NULL:
        with nogil:
            sim.schedule_unpark(address)


def schedule_hold(key):
    """Says that this thread has what others park for, with `key`; nobody asks on a real driver."""
    cdef Control sim = control_if_simulated()
    cdef const void* address = <const void*>key
    if sim != NULL:
        with nogil:
            sim.schedule_hold(address)


def schedule_let_go(key):
    """Says that this thread no longer has it."""
    cdef Control sim = control_if_simulated()
    cdef const void* address = <const void*>key
    if sim != NULL:
        with nogil:
            sim.schedule_let_go(address)


def clock_begin():
    """Behind `ftcuda.testing.simulated_clock`."""
    if not control().clock_begin():
        raise RuntimeError("a simulated clock is under way: its blocks do not nest")


def clock_end():
    control().clock_end()


def clock_now():
    return control().clock_now()


def clock_waiting():
    return control().clock_waiting()


def clock_wait(unsigned threads, double timeout):
    cdef Control sim = control()
    cdef uint64_t milliseconds = in_milliseconds(timeout)
    cdef bint came
    with nogil:
        came = sim.clock_wait(threads, milliseconds)
    return came


def clock_advance(int64_t nanoseconds, double timeout):
    cdef Control sim = control()
    cdef uint64_t milliseconds = in_milliseconds(timeout)
    cdef int settled
    with nogil:
        settled = sim.clock_advance(nanoseconds, milliseconds)
    if settled < 0:
        raise ValueError("the clock ends after nine billion seconds")
    return settled != 0


def clock_delay(uintptr_t stream, int64_t nanoseconds):
    cdef int code = control().clock_delay(<void*>stream, nanoseconds)
    if code != 0:
        raise ValueError(f"cannot delay the stream: the driver answers {code}")
