// The state of the simulated driver. One lock guards all of it: the simulator is to be obviously right, not fast.
//
// Work is queued under the lock and run without it, by one thread for each stream that ever had work. Threads that wait
// for progress (a synchronisation, a dependency between streams) wait on one condition.
#pragma once

#include "../ptx/ptx.hpp"
#include "foreign_abi.hpp"
#include "handles.hpp"

#include <array>
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
struct Executable;
struct Graph;
struct Node;

// ---- Work ----------------------------------------------------------------------------------------------------------

struct Queue;

// What comes before a piece of work: for each queue, by its id, up to which position. See checkers/races.hpp.
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
    std::int64_t takes = 0;              // nanoseconds of simulated time from when it begins
    std::function<CUresult()> run;       // without the lock; a failure poisons the context
    std::function<void()> finish;        // under the lock, once it has run
    std::function<void()> let_go;        // without the lock, whatever came of it
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
    std::vector<std::shared_ptr<Node>> captured;  // what the next node that is captured here comes after
    std::vector<CUgraphNode> shown;               // the same, as cuStreamGetCaptureInfo showed it
    std::vector<CUgraphEdgeData> shown_edges;     // to each of them, all alike

    Point latest() const { return {queue, queue->submitted, queue->clock}; }
};

struct Event {
    Context* context = nullptr;
    unsigned flags = 0;
    Point point;                                  // of the latest record
    std::shared_ptr<double> reached_at;           // milliseconds, set by the record's work
    std::shared_ptr<Capture> capture;             // recorded in a capturing stream
    std::vector<std::shared_ptr<Node>> captured;  // what it is recorded behind there
};

// Something of the program's that graphs keep: `destroy` is called once nobody has a reference to it any more.
struct UserObject {
    void* data = nullptr;
    CUhostFn destroy = nullptr;
    std::uint64_t references = 0;
};

struct Capture {
    std::shared_ptr<Stream> origin;
    std::uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    std::uint64_t thread = 0;
    int mode = 0;
    bool invalidated = false;
    std::vector<std::shared_ptr<Stream>> joined;
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
    bool is_unloaded = false;
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

struct Allocation;

// Of an allocation at an address that a graph has reserved.
struct GraphMemory {
    std::uint64_t nodes = 0;                      // that allocate it: the graph's, and one of each executable
    bool is_mapped = false;                       // there is memory behind the address
    bool is_allocated = false;                    // by what was submitted so far
    bool is_freed_inside = false;                 // the graph has a node that frees it
    bool is_freed_outside = false;                // another graph has
    void (*on_last_node)(Allocation&) = nullptr;  // is called when there is none any more
};

// How much memory graphs have on a device.
struct GraphMemoryUse {
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
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
    std::optional<GraphMemory> of_graph;
};

// ---- The state of the driver ---------------------------------------------------------------------------------------

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
    std::vector<GraphMemoryUse> graph_memory;
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
    Handles<UserObject> user_objects{10};
    Handles<Node> nodes{11};
    Handles<Executable> executables{12};
    std::uint64_t next_node_id = 1;

    std::map<std::uint64_t, Allocation> allocations;  // by begin
    std::uint64_t next_allocation_id = 1;

    std::vector<std::shared_ptr<Capture>> captures;
    std::uint64_t capture_count = 0;

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

// The context behind current_context, or the error that the driver gives without one.
CUresult current(Context*& context);

}  // namespace ftcuda::sim
