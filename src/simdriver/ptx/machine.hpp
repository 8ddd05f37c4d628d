// The interpreter's state: a launch, its blocks, their warps.
#pragma once

#include "code.hpp"

#include <cstring>

namespace ftcuda::sim::ptx {

constexpr std::uint32_t all_lanes = ~std::uint32_t{0};
constexpr std::uint32_t blank_element = ~std::uint32_t{0};  // "_" in a vector

// One call of a function by some lanes of a warp. The lanes of the frame below that did not call wait for its end.
struct Frame {
    const Function* function = nullptr;
    const CallSite* site = nullptr;  // null for the kernel itself
    std::size_t row_base = 0;
    std::uint64_t local_base = 0;
    std::uint32_t callers = 0;  // lanes that made the call
    std::uint32_t live = 0;     // those still in it
    std::uint32_t pc[lanes] = {};
};

struct Barrier {
    unsigned arrived = 0;   // threads
    unsigned expected = 0;  // threads, 0 = all of the block
    unsigned votes = 0;     // of bar.red: threads whose predicate held
};

constexpr std::uint8_t cluster_barrier = 16;  // in Warp::barrier_of; the block's own are 0 to 15

// An address in the shared memory of a cluster: above the place in a block stands the block's rank plus one, and 0 for
// the block that has the address.
constexpr unsigned block_shift = 24;

struct Machine;
struct Block;

struct Warp {
    Machine* machine = nullptr;
    Block* block = nullptr;
    unsigned first_thread = 0;
    std::vector<Frame> frames;
    std::vector<std::uint64_t> registers;
    std::uint64_t* rows = nullptr;  // of the top frame
    const std::uint64_t* constants = nullptr;
    std::vector<std::byte> local;  // lane by lane, `local_stride` bytes each
    std::uint64_t local_stride = 0;
    std::uint32_t exited = 0;
    std::uint32_t waiting = 0;  // lanes at a barrier of the block
    std::uint32_t parked = 0;   // lanes at a warp-wide instruction whose other lanes have not come yet
    std::uint32_t carry = 0;    // condition code, a bit for each lane
    bool insisted = false;      // nobody else can come: a warp-wide instruction runs with the lanes there are
    unsigned loops = 0;         // backward branches since another group ran
    std::uint8_t barrier_of[lanes] = {};
    std::uint32_t cluster_arrived = 0;       // lanes that arrived at the cluster's barrier and did not wait there yet
    std::uint32_t cluster_phase = 0;         // by lane: the phase of it in which it arrived
    const Instruction* reduction = nullptr;  // the bar.red that lanes wait at
    Extent extent;                           // of the latest global access
    std::uint64_t extent_generation = 0;

    Frame& frame() noexcept { return frames.back(); }
};

// Blocks that share a barrier and reach each other's shared memory.
struct Cluster {
    Block* blocks = nullptr;  // by rank
    unsigned size = 1;
    unsigned arrived = 0;  // threads, in this phase of the barrier
    bool phase = false;
};

struct Block {
    std::array<unsigned, 3> index{};
    Cluster* cluster = nullptr;
    unsigned rank = 0;
    std::vector<std::byte> shared;
    std::vector<Warp> warps;
    Barrier barriers[16];
    unsigned threads = 0;
    unsigned exited = 0;
};

inline bool finished(const Block& block) noexcept { return block.exited == block.threads; }

struct Machine {
    const Code* code = nullptr;
    const Launch* launch = nullptr;
    const Function* kernel = nullptr;
    std::vector<std::uint64_t> constants;  // rows
    std::uint64_t shared_bytes = 0;
    Outcome outcome;
    std::uint64_t budget = 0;

    bool failed() const noexcept { return outcome.fault != Fault::none; }
};

inline const std::uint64_t* in(const Warp& warp, RowRef row) noexcept {
    return (row.constant ? warp.constants : warp.rows) + std::size_t{row.index} * lanes;
}

inline std::uint64_t* out(Warp& warp, RowRef row) noexcept { return warp.rows + std::size_t{row.index} * lanes; }

template <class Body>
inline void each(std::uint32_t mask, Body body) {
    if (mask == all_lanes) {
        for (unsigned lane = 0; lane < lanes; ++lane) body(lane);
        return;
    }
    for (; mask != 0; mask &= mask - 1) body(static_cast<unsigned>(__builtin_ctz(mask)));
}

template <class Value>
inline Value get(std::uint64_t bits) noexcept {
    Value value;
    std::memcpy(&value, &bits, sizeof value);  // little-endian
    return value;
}

template <class Value>
inline std::uint64_t put(Value value) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

inline std::uint32_t predicate_mask(const std::uint64_t* row) noexcept {
    std::uint32_t mask = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) mask |= static_cast<std::uint32_t>(row[lane] & 1) << lane;
    return mask;
}

// Ends the launch: `lane` of `warp` did what cannot be done.
void fail(Warp& warp, const Instruction& instruction, unsigned lane, Fault fault, std::uint64_t address = 0,
          std::size_t bytes = 0, Access access = Access::read);

// Where a lane may touch [address, address + size) of `space`, or null after fail().
std::byte* reach(Warp& warp, const Instruction& instruction, unsigned lane, Space space, std::uint64_t address,
                 std::size_t size, Access access);

inline std::uint64_t tag_of(unsigned rank) noexcept { return (std::uint64_t{rank} + 1) << block_shift; }

// An address in the block's shared memory with its rank, where the block is not alone, and without it.
inline std::uint64_t cluster_address(const Block& block, std::uint64_t address) noexcept {
    return block.cluster->size > 1 && address >> block_shift == 0 ? address | tag_of(block.rank) : address;
}
inline std::uint64_t block_address(const Block& block, std::uint64_t address) noexcept {
    const std::uint64_t tag = tag_of(block.rank);
    return block.cluster->size > 1 && address >> block_shift == tag >> block_shift ? address - tag : address;
}

// The block whose shared memory `block` means by an address; null for one that has exited or never was.
Block* block_behind(const Block& block, std::uint64_t address) noexcept;

std::array<unsigned, 3> thread_index(const Machine& machine, unsigned thread) noexcept;
void run_blocks(Machine& machine);
bool release_cluster(Cluster& cluster);  // lets the threads go on whose phase of the cluster's barrier is over
void leave_cluster(Warp& warp, std::uint32_t mask);  // of lanes that exit
// Tells a barrier in the same block as `target`, both in instruction.space, of bytes that came there.
void report_bytes(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t target,
                  std::uint64_t barrier, std::uint64_t bytes);
bool run_warp(Warp& warp, unsigned slice);  // false when it is blocked
bool push_frame(Warp& warp, const Function& function, const CallSite* site, std::uint32_t mask);

// ---- Handlers, found by the decoder
// ------------------------------------------------------------------------------------

// Null when there is no such instruction; `option` and types are in `instruction`.
Handler arithmetic_handler(std::string_view base, const Instruction& instruction);
Handler compare_handler(std::string_view comparison, Type type);
void select_by_predicate(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void convert(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void move(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void move_local_address(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void pack(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void unpack(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void read_timer(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void to_generic(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void from_generic(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void is_in_space(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void nothing(Warp& warp, const Instruction& instruction, std::uint32_t mask);

void load(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void store(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void atomic(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void copy_async(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void copy_bulk(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void copy_tile(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void change_mbarrier(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void test_mbarrier(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void pending_of_mbarrier(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void arrive_at_cluster(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void wait_for_cluster(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void map_to_block(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void rank_of_address(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void store_async(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void reduce_async(Warp& warp, const Instruction& instruction, std::uint32_t mask);

void branch(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void leave(Warp& warp, const Instruction& instruction, std::uint32_t mask);   // ret
void finish(Warp& warp, const Instruction& instruction, std::uint32_t mask);  // exit
void call(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void trap(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void breakpoint(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void barrier(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void shuffle(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void vote(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void match(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void reduce(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void active_mask(Warp& warp, const Instruction& instruction, std::uint32_t mask);
void warp_barrier(Warp& warp, const Instruction& instruction, std::uint32_t mask);

bool print_formatted(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t format,
                     std::uint64_t arguments, std::string& text);

}  // namespace ftcuda::sim::ptx
