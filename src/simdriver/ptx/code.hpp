// A parsed and decoded PTX program.
#pragma once

#include "ptx.hpp"
#include "text.hpp"

#include <map>
#include <optional>

namespace ftcuda::sim::ptx {

enum class Type : std::uint8_t {
    none,
    pred,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    b8,
    b16,
    b32,
    b64,
    f16,
    bf16,
    f16x2,
    bf16x2,
    f32,
    f64
};

unsigned size_of(Type type) noexcept;
bool is_float(Type type) noexcept;
bool is_signed(Type type) noexcept;
bool parse_type(std::string_view word, Type& type) noexcept;  // without the leading dot

// What an instruction does to a barrier in memory.
enum class MbarrierChange : std::uint8_t { init, inval, arrive, drop, expect, complete };

// cluster: the shared memory of any block of the cluster, "shared::cluster".
enum class Space : std::uint8_t { generic, global, constant, shared, local, param, cluster };

// The generic address space: windows for what has no place in global memory. User addresses stay below 2^47.
constexpr std::uint64_t shared_window = std::uint64_t{1} << 48;
constexpr std::uint64_t local_window = std::uint64_t{2} << 48;
constexpr std::uint64_t param_window = std::uint64_t{3} << 48;
constexpr std::uint64_t function_window = std::uint64_t{4} << 48;
constexpr std::uint64_t window_mask = ~std::uint64_t{0} << 48;

constexpr unsigned lanes = 32;
using Row = std::uint64_t[lanes];  // one value for each lane of a warp

// Rows that every frame begins with; filled when a warp starts.
enum Special : std::uint32_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    lane_id,
    warp_id,
    number_of_warps,
    sm_id,
    number_of_sms,
    grid_id,
    envreg1,
    envreg2,
    zero,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    dynamic_smem_size,
    total_smem_size,
    clock_low,
    clock_high,
    clock_64,
    timer_low,
    timer_high,
    timer_64,  // read anew at every use
    special_count,
};

// ---- What the parser makes -----------------------------------------------------------------------------------------

struct Symbol {
    Space space = Space::global;
    std::uint64_t offset = 0;  // in shared, local, param; index into variables for global and constant
    std::size_t size = 0;
};

struct Operand {
    enum class Kind : std::uint8_t { none, reg, immediate, symbol, memory, vector, label } kind = Kind::none;
    bool negated = false;   // !p
    bool is_float = false;  // 0f.. or 0d..
    std::uint32_t reg = 0;  // row; of a memory operand its base, if has_base
    bool has_base = false;
    std::uint64_t value = 0;  // immediate bits, or the offset of a memory operand
    std::string symbol;       // symbol or label; of a memory operand its base symbol
    bool resolved = false;    // the symbol is of the function's scope, and `place` is where
    Symbol place;
    std::vector<Operand> elements;  // of a vector; p|q is a vector of two
};

struct Statement {
    std::string opcode;  // the whole word, for messages
    int line = 0;
    bool has_guard = false;
    bool guard_negated = false;
    std::uint32_t guard = 0;
    std::vector<Operand> operands;
    // call: results, arguments and, for an indirect one, nothing more: types are checked by nobody.
    bool is_call = false;
    std::vector<Operand> results, arguments;
};

struct Function;
struct Code;
struct Warp;
struct Instruction;

using Handler = void (*)(Warp& warp, const Instruction& instruction, std::uint32_t mask);

// ---- What the decoder makes ----------------------------------------------------------------------------------------

// A source or target row: in the frame's registers, or among the program's constants.
struct RowRef {
    std::uint32_t index = 0;
    bool constant = false;
};

struct Instruction {
    Handler handler = nullptr;
    std::uint32_t guard = 0;
    bool has_guard = false;
    bool guard_negated = false;
    bool control = false;  // may move program counters or stop lanes
    bool ftz = false, saturate = false;
    std::uint8_t rounding = 0;  // 0 nearest even, 1 zero, 2 down, 3 up
    Type type = Type::none, type2 = Type::none;
    Space space = Space::generic;
    Space space2 = Space::generic;  // of a copy: where it reads
    std::uint8_t option = 0;        // meaning depends on the handler
    std::uint8_t option2 = 0;
    std::uint8_t count = 1;       // elements of a vector access
    bool frame_relative = false;  // the address is an offset in this frame's local memory
    RowRef d, d2, a, b, c, e;
    std::uint32_t elements[8] = {};  // rows of a vector's elements; ~0 = "_"
    bool element_constant[8] = {};
    std::int64_t offset = 0;   // of a memory operand
    std::uint32_t target = 0;  // branch: instruction; call: index into Code::calls
    int line = 0;
};

struct CallSite {
    bool indirect = false;
    std::uint32_t function = 0;  // of a direct call
    RowRef pointer;              // of an indirect one
    enum class Builtin : std::uint8_t { none, vprintf, assertfail, set_conditional } builtin = Builtin::none;
    std::vector<std::uint64_t> arguments, results;  // offsets in the caller's local memory
};

struct Function {
    std::string name;
    bool is_entry = false;
    bool is_defined = false;
    int line = 0;
    Entry entry;                              // of a kernel
    std::vector<Symbol> parameters, results;  // of a device function: places in its local memory
    std::uint64_t local_bytes = 0;
    std::uint32_t registers = special_count;
    std::vector<Statement> statements;
    std::map<std::string, std::uint32_t> labels;  // to the statement they stand before
    std::vector<Instruction> instructions;
    std::vector<std::uint32_t> references;  // functions that it calls or takes the address of
    std::optional<Refusal> refusal;         // what in it is not supported, which matters if a kernel reaches it
};

struct Code final : Program {
    std::vector<Entry> entry_list;
    std::vector<Variable> variable_list;
    std::vector<Function> functions;
    std::vector<CallSite> calls;
    std::map<std::string, Symbol> symbols;  // module scope
    std::map<std::string, std::uint32_t> function_index;
    std::uint64_t shared_bytes = 0;        // all static shared memory of the module
    std::vector<std::uint64_t> constants;  // one value a row
    std::vector<std::pair<std::uint32_t, std::uint32_t>>
        variable_constants;  // constant row, variable: filled at launch

    const std::vector<Entry>& entries() const noexcept override { return entry_list; }
    const std::vector<Variable>& variables() const noexcept override { return variable_list; }
    Outcome run(const Launch& launch) const override;
};

void parse(std::string_view text, const Target& target, Code& code, LoadError& error);
void decode(Code& code);

}  // namespace ftcuda::sim::ptx
