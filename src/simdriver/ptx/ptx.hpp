// The PTX front end and interpreter, as the rest of the simulated driver sees it.
//
// A `Program` is one PTX text, parsed and decoded: immutable after `load`, shared by any number of launches. `run`
// interprets one launch on the calling thread, a warp at a time, and reports what happened. All device memory that a
// kernel can reach through global addresses is behind the `Memory` interface, so that every access is checked by the
// owner of the allocations.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ftcuda::sim::ptx {

// What the device is, as far as PTX text depends on it.
struct Target {
    int compute_capability = 90;  // 10 * major + minor
    int ptx_version = 90;         // newest `.version` accepted, 10 * major + minor
};

enum class LoadError {
    none,
    syntax,             // the text is not PTX
    unsupported,        // an instruction, modifier or directive outside the interpreter's set
    newer_ptx_version,  // `.version` is newer than the simulated driver
    newer_target,       // `.target` is newer than the simulated device
    unresolved_symbol,
};

struct Parameter {
    std::size_t offset = 0;
    std::size_t size = 0;
    std::size_t alignment = 1;
};

struct Entry {
    std::string name;
    std::vector<Parameter> parameters;
    std::size_t parameter_bytes = 0;
    std::size_t static_shared_bytes = 0;
    std::size_t local_bytes = 0;                 // per thread
    unsigned registers = 0;                      // 32-bit registers per thread, estimated
    unsigned max_threads = 1024;                 // .maxntid / .reqntid, else the architecture's limit
    std::array<unsigned, 3> required_block{};    // .reqntid, zeros when absent
    std::array<unsigned, 3> required_cluster{};  // .reqnctapercluster, zeros when absent
    unsigned max_cluster = 0;                    // .maxclusterrank: blocks, 0 when absent
    bool explicit_cluster = false;               // .explicitcluster: a launch must say how large clusters are
};

// A module-scope variable in .global or .const space.
struct Variable {
    std::string name;
    std::size_t size = 0;
    std::size_t alignment = 1;
    bool constant = false;           // .const
    bool managed = false;            // .attribute(.managed)
    std::vector<std::byte> initial;  // `size` bytes

    // Places in `initial` that hold the address of another symbol, to be filled in when addresses are known.
    struct Relocation {
        std::size_t offset;
        std::string symbol;
        std::int64_t addend;
    };
    std::vector<Relocation> relocations;
};

enum class Access : std::uint8_t { read, write, atomic };

// The part of an allocation that an address fell in. `bytes` is where the simulator may touch [begin, end).
struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::byte* bytes = nullptr;
};

// Device memory. Implementations are called from several interpreting threads at once.
class Memory {
public:
    virtual ~Memory() = default;

    // Finds the live allocation that holds all of [address, address + size). False when there is none.
    virtual bool find(std::uint64_t address, std::size_t size, Extent& extent) = 0;

    // Grows whenever an allocation goes away: an extent found earlier must be looked up again.
    virtual std::uint64_t generation() const noexcept = 0;
};

enum class Fault : std::uint8_t {
    none,
    illegal_address,
    misaligned_address,
    trap,                     // trap instruction
    breakpoint,               // brkpt instruction
    assertion,                // __assertfail
    invalid_program_counter,  // call through a bad function address
    barrier_misuse,           // more arrivals at an mbarrier than it expects, or one that was not initialised
    cluster_barrier_misuse,   // a thread that arrives twice at the barrier of its cluster
    absent_block,             // access to the shared memory of a block of the cluster that has exited, or of none
    no_tensor_map,            // a tile is copied by what is no tensor map, or one of another rank
    tile_place,               // a tile begins where the hardware copies none
    tensor_map_mode,          // a tile is copied by a map in a mode that is not simulated
    no_conditional_handle,    // cudaGraphSetConditional in what no graph with such handles launched
    barrier_deadlock,         // some threads wait at a barrier that the others can never reach
    stack_overflow,           // recursion deeper than the simulated stack
    aborted,                  // Launch::abort was set
    out_of_budget,            // Launch::instruction_budget was used up
};

struct Outcome {
    Fault fault = Fault::none;
    std::uint64_t address = 0;  // for address faults
    std::size_t access_bytes = 0;
    Access access = Access::read;
    const char* detail = nullptr;  // what more there is to say of the fault
    int line = 0;                  // line of the PTX text
    std::array<unsigned, 3> block{};
    std::array<unsigned, 3> thread{};
    std::string message;             // one line for a person, naming kernel, instruction and place
    std::uint64_t instructions = 0;  // lane instructions executed
};

struct Launch {
    std::string_view entry;
    std::array<unsigned, 3> grid{1, 1, 1};
    std::array<unsigned, 3> block{1, 1, 1};
    std::array<unsigned, 3> cluster{1, 1, 1};  // blocks; the grid is a multiple
    bool is_explicit_cluster = false;
    std::size_t dynamic_shared_bytes = 0;
    const std::byte* parameters = nullptr;  // Entry::parameter_bytes, laid out as Entry::parameters says
    bool cooperative = false;               // all blocks resident at once

    Memory* memory = nullptr;
    // Address of each module-scope variable, in the order of Program::variables().
    const std::uint64_t* variable_addresses = nullptr;
    // Zeroed workspace of a cooperative launch (its address is what %envreg1:%envreg2 hold).
    std::uint64_t workspace = 0;

    const std::atomic<bool>* abort = nullptr;              // polled between slices
    std::uint64_t instruction_budget = ~std::uint64_t{0};  // lane instructions
    std::uint64_t seed = 0;                                // order of blocks and warps; 0 = ascending
    std::function<std::uint64_t()> nanoseconds;            // %globaltimer and %clock64
    std::function<void(std::string_view)> print;           // device printf, one call per formatted string
    // cudaGraphSetConditional; empty where there is nothing to set.
    std::function<void(std::uint64_t handle, std::uint32_t value)> set_conditional;
    std::function<void()> slice;  // called between slices of instructions
    std::function<void(std::uint64_t address, std::size_t size, Access access)> touched;  // every global access, if set
};

class Program {
public:
    // Parses and decodes. On failure returns null, sets `error` and writes lines like "ptx line 12: unsupported
    // instruction 'wmma.load'" to `log`.
    static std::unique_ptr<const Program> load(std::string_view text, const Target& target, LoadError& error,
                                               std::string& log);

    virtual ~Program() = default;
    virtual const std::vector<Entry>& entries() const noexcept = 0;
    virtual const std::vector<Variable>& variables() const noexcept = 0;
    virtual Outcome run(const Launch& launch) const = 0;
};

}  // namespace ftcuda::sim::ptx
