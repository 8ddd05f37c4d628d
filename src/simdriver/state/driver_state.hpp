// The state of the simulated driver. One lock guards all of it: the simulator is to be obviously right, not fast.
//
// Work is queued under the lock and run without it, by one thread for each stream that ever had work. Threads that wait
// for progress (a synchronisation, a dependency between streams) wait on one condition.
#pragma once

#include "../control.hpp"
#include "foreign_abi.hpp"
#include "../ptx/ptx.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ftcuda::sim {

using namespace abi;

struct Capture;
struct Context;

// ---- Work ----------------------------------------------------------------------------------------------------------

struct Queue;

// What comes before a piece of work: for each queue, by its id, up to which position. See races.hpp.
using Clock = std::map<std::uint64_t, std::uint64_t>;

// A point in a queue: everything up to the `position`-th piece of work.
struct Point {
    std::shared_ptr<Queue> queue;
    std::uint64_t position = 0;
    std::shared_ptr<const Clock> clock;  // null unless races are watched

    bool reached() const noexcept;
};

struct Work {
    std::vector<Point> after;            // other streams' work that must be done first
    std::vector<std::uint64_t> touches;  // allocations by their begin, pending until this is done
    std::function<CUresult()> run;       // without the lock; a failure poisons the context
    std::uint64_t frees = 0;             // an allocation by its begin, freed when this is done
    std::string what;                    // for reports of races
    std::shared_ptr<const Clock> clock;
};

struct Queue {
    std::uint64_t id = 0;  // its stream's
    Context* context = nullptr;
    std::deque<Work> waiting;
    std::uint64_t submitted = 0;
    std::uint64_t completed = 0;
    std::condition_variable arrived;
    bool has_worker = false;
    bool closed = false;                 // its stream is destroyed: the worker ends with the last work
    std::shared_ptr<const Clock> clock;  // of the latest work
};

// ---- Objects -------------------------------------------------------------------------------------------------------

struct Context {
    int device = 0;
    CUcontext handle = nullptr;
    int retained = 0;
    CUresult failure = CUDA_SUCCESS;
    std::shared_ptr<struct Stream> legacy;
    std::unordered_map<std::uint64_t, std::shared_ptr<struct Stream>> per_thread;
    std::vector<std::weak_ptr<struct Stream>> streams;
    std::vector<Point> lingering;  // work of destroyed streams
};

struct Stream {
    Context* context = nullptr;
    CUstream handle = nullptr;
    std::shared_ptr<Queue> queue;
    unsigned flags = 0;
    int priority = 0;
    std::uint64_t id = 0;
    std::shared_ptr<Capture> capture;

    Point latest() const { return {queue, queue->submitted, queue->clock}; }
};

struct Event {
    Context* context = nullptr;
    unsigned flags = 0;
    Point point;                         // of the latest record
    std::shared_ptr<double> reached_at;  // milliseconds, set by the record's work
    std::shared_ptr<Capture> capture;    // recorded in a capturing stream
};

struct Capture {
    std::shared_ptr<Stream> origin;
    std::uint64_t thread = 0;
    int mode = 0;
    bool invalidated = false;
    std::vector<std::shared_ptr<Stream>> joined;
    std::uint64_t nodes = 0;
};

struct Graph {
    std::uint64_t nodes = 0;
};

struct Pool {
    CUmemoryPool handle = nullptr;  // null once it is destroyed
    int device = 0;
    int location = CU_MEM_LOCATION_TYPE_DEVICE;
    int allocation_type = CU_MEM_ALLOCATION_TYPE_PINNED;
    bool is_default = false;
    std::uint64_t limit = 0;
    std::uint64_t threshold = 0;
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
    int reuse[3] = {1, 1, 1};
};

struct Module {
    Context* context = nullptr;
    CUlibrary library = nullptr;  // that it is of; null for one that was loaded by itself
    std::shared_ptr<const ptx::Program> program;
    std::vector<std::uint64_t> addresses;  // of Program::variables()
    std::vector<CUfunction> functions;
};

// What a program may set.
struct Attributes {
    std::optional<int> max_dynamic_shared;
    std::optional<int> carveout;
    std::optional<bool> non_portable_cluster;
    std::optional<std::array<unsigned, 3>> cluster;  // that launches must have; zeros for none
};

constexpr Attributes default_attributes = {48 * 1024, -1, false, std::array<unsigned, 3>{}};

struct Function {
    std::shared_ptr<Module> module;
    CUmodule module_handle = nullptr;
    std::size_t entry = 0;
    Attributes own;                               // as set on the function itself, which comes first
    std::shared_ptr<const Attributes> of_kernel;  // as set on the kernel; null without one

    Attributes effective() const {
        const Attributes& others = of_kernel ? *of_kernel : default_attributes;
        return {own.max_dynamic_shared ? own.max_dynamic_shared : others.max_dynamic_shared,
                own.carveout ? own.carveout : others.carveout,
                own.non_portable_cluster ? own.non_portable_cluster : others.non_portable_cluster,
                own.cluster ? own.cluster : others.cluster};
    }
};

// A program for all contexts; a module in each that asks for it.
struct Library {
    std::shared_ptr<const ptx::Program> program;
    std::vector<std::uint64_t> managed;  // by variable: the address of a managed one, shared by all modules
    std::unordered_map<CUcontext, CUmodule> modules;
    std::vector<CUkernel> kernels;  // by entry, null until asked for
};

struct Kernel {
    CUlibrary library = nullptr;
    std::size_t entry = 0;
    std::vector<std::shared_ptr<Attributes>> attributes;  // by device
};

// ---- Memory --------------------------------------------------------------------------------------------------------

enum class Kind : unsigned char {
    device,
    pinned,
    managed,
    registered
};  // registered: pinned memory of the program's own

// What some work did to a part of an allocation.
struct Past {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    ptx::Access access = ptx::Access::read;
    std::uint64_t queue = 0;
    std::uint64_t position = 0;
    std::string what;
};

struct Allocation {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t in_use = 0;     // how much of it is somebody's, for work submitted from now on
    std::uint64_t reachable = 0;  // the same, as of the work done so far; 0 while it is set aside
    std::byte* bytes = nullptr;   // where the simulator may touch it
    Kind kind = Kind::device;
    int device = 0;
    std::shared_ptr<Pool> pool;  // null for plain allocations
    unsigned flags = 0;          // of pinned memory
    std::uint64_t id = 0;        // never given twice
    bool module_owned = false;
    bool freeing = false;       // a stream-ordered free is queued, or the memory is set aside
    std::uint64_t pending = 0;  // queued or running work that touches it
    std::vector<Past> past;     // while races are watched
};

// ---- Handles -------------------------------------------------------------------------------------------------------

// Opaque values that lead to objects. Values are used again like the driver's, last freed first, so that code which
// keeps a stale one is bitten; a value that leads nowhere is a violation.
template <class Object>
class Handles {
public:
    explicit Handles(std::uint64_t tag) noexcept : base_(0x5eed'0000'0000 | (tag << 24)) {}

    std::uint64_t add(std::shared_ptr<Object> object) {
        std::uint64_t value;
        if (free_.empty()) {
            value = base_ + 0x40 * ++issued_;
        } else {
            value = free_.back();
            free_.pop_back();
        }
        live_.emplace(value, std::move(object));
        return value;
    }

    std::shared_ptr<Object> find(const void* handle) const {
        const auto found = live_.find(reinterpret_cast<std::uintptr_t>(handle));
        return found == live_.end() ? nullptr : found->second;
    }

    std::shared_ptr<Object> remove(const void* handle) {
        const auto found = live_.find(reinterpret_cast<std::uintptr_t>(handle));
        if (found == live_.end()) return nullptr;
        std::shared_ptr<Object> object = std::move(found->second);
        free_.push_back(found->first);
        live_.erase(found);
        return object;
    }

    std::size_t size() const noexcept { return live_.size(); }

private:
    const std::uint64_t base_;
    std::uint64_t issued_ = 0;
    std::vector<std::uint64_t> free_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Object>> live_;
};

// ---- The state of the driver
// -----------------------------------------------------------------------------------------------

struct DriverState {
    std::mutex mutex;
    std::condition_variable progress;

    std::atomic<bool> initialised{false};            // release: the tables below are filled; acquire at every entry
    bool held = false;                               // the clock stands still
    std::vector<std::shared_ptr<Context>> contexts;  // by device, made by cuInit
    std::vector<std::shared_ptr<Pool>> default_pools;
    std::vector<std::shared_ptr<Pool>> current_pools;  // what cuMemAllocAsync allocates from
    std::vector<std::uint64_t> memory_limits;
    std::vector<std::uint64_t> memory_used;
    std::uint64_t next_stream_id = 1;

    Handles<Context> context_handles{1};
    Handles<Stream> streams{2};
    Handles<Event> events{3};
    Handles<Module> modules{4};
    Handles<Function> functions{5};
    Handles<Pool> pools{6};
    Handles<Graph> graphs{7};
    Handles<Library> libraries{8};
    Handles<Kernel> kernels{9};

    std::map<std::uint64_t, Allocation> allocations;  // by begin
    std::uint64_t next_allocation_id = 1;

    std::vector<std::shared_ptr<Capture>> captures;

    std::vector<std::string> violations;
    std::uint64_t violation_count = 0;
    std::string last_fault;
};

DriverState& driver_state() noexcept;
using Guard = std::unique_lock<std::mutex>;

std::uint64_t this_thread() noexcept;

// What the calling thread has current; null when nothing.
extern thread_local CUcontext current_context;
extern thread_local int capture_mode;

// Takes the top off the calling thread's stack of contexts; what is below becomes current.
void pop_context();

void violation(const std::string& text);  // under the lock

// The context behind current_context, or the error that the driver gives without one.
CUresult current(Context*& context);

// A null handle is the legacy stream; 1 and 2 are the tokens. Counts a violation for a stale handle.
CUresult find_stream(CUstream handle, std::shared_ptr<Stream>& stream);
CUresult find_event(CUevent handle, std::shared_ptr<Event>& event);

// ---- Timeline: submitting and waiting ------------------------------------------------------------------------------

// Queues `work` in `stream`, ordered after the legacy stream or before it as CUDA says. Work in a capturing stream is
// counted as a node instead. Returns the point behind it.
Point submit(Stream& stream, Work work);

// Waits until `point` is reached or the context fails. Releases the lock while it waits.
CUresult wait_for(Guard& lock, const Context& context, const Point& point);
// What a query of it answers.
CUresult ask(const Point& point);

// The stream exists no more: what was submitted runs on, then its worker ends.
void retire_queue(const Stream& stream);

double now_milliseconds() noexcept;

// ---- Capture -------------------------------------------------------------------------------------------------------

// For the calls that the driver forbids while a capture is under way that the calling thread's
// mode minds. Invalidates it.
CUresult forbid_during_capture();
// For calls that wait for or ask about a stream: an error, and the end of the capture, if it captures.
CUresult forbid_on_capturing(const Stream& stream);
CUresult forbid_context_wait(const Context& context);

// ---- Memory
// ----------------------------------------------------------------------------------------------------------

CUresult allocate(int device, Kind kind, std::uint64_t size, std::shared_ptr<Pool> pool, std::uint64_t& begin);
// The live allocation with this address in it, else null.
Allocation* allocation_at(std::uint64_t address);
// The same if it holds all of [address, address + size), and has it in use.
Allocation* find_allocation(std::uint64_t address, std::uint64_t size);
void release(Allocation& allocation);
// With the lock held: so much of an allocation may be touched from here on, and its bytes are garbage.
void set_reachable(std::uint64_t begin, std::uint64_t bytes);

void begin_touch(std::uint64_t address, std::vector<std::uint64_t>& touches);
void end_touches(const std::vector<std::uint64_t>& touches);
ptx::Memory& kernel_memory() noexcept;

}  // namespace ftcuda::sim
