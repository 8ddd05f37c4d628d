// PTX text to statements: declarations get their places, registers their rows; opcodes are left to the decoder.
#include "code.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim::ptx {

namespace {

constexpr struct {
    std::string_view name;
    Type type;
    unsigned size;
} types[] = {
    {"pred", Type::pred, 1}, {"u8", Type::u8, 1},     {"u16", Type::u16, 2},   {"u32", Type::u32, 4},       {"u64", Type::u64, 8},
    {"s8", Type::s8, 1},     {"s16", Type::s16, 2},   {"s32", Type::s32, 4},   {"s64", Type::s64, 8},       {"b8", Type::b8, 1},
    {"b16", Type::b16, 2},   {"b32", Type::b32, 4},   {"b64", Type::b64, 8},   {"f16", Type::f16, 2},       {"bf16", Type::bf16, 2},
    {"f16x2", Type::f16x2, 4}, {"bf16x2", Type::bf16x2, 4}, {"f32", Type::f32, 4}, {"f64", Type::f64, 8},
};

constexpr struct {
    std::string_view name;
    Special row;
} specials[] = {
    {"%tid.x", tid_x}, {"%tid.y", tid_y}, {"%tid.z", tid_z}, {"%ntid.x", ntid_x}, {"%ntid.y", ntid_y}, {"%ntid.z", ntid_z},
    {"%ctaid.x", ctaid_x}, {"%ctaid.y", ctaid_y}, {"%ctaid.z", ctaid_z}, {"%nctaid.x", nctaid_x}, {"%nctaid.y", nctaid_y},
    {"%nctaid.z", nctaid_z}, {"%laneid", lane_id}, {"%warpid", warp_id}, {"%nwarpid", number_of_warps}, {"%smid", sm_id},
    {"%nsmid", number_of_sms}, {"%gridid", grid_id}, {"%envreg1", envreg1}, {"%envreg2", envreg2}, {"%lanemask_eq", lanemask_eq},
    {"%lanemask_le", lanemask_le}, {"%lanemask_lt", lanemask_lt}, {"%lanemask_ge", lanemask_ge}, {"%lanemask_gt", lanemask_gt},
    {"%dynamic_smem_size", dynamic_smem_size}, {"%total_smem_size", total_smem_size}, {"%clock", clock_low}, {"%clock64", clock_64},
    {"%globaltimer_lo", timer_low}, {"%globaltimer", timer_64}, {"%clusterid.x", zero}, {"%cluster_ctarank", zero},
};

constexpr std::size_t size_limit = std::size_t{1} << 31;   // of one variable
constexpr std::uint32_t register_limit = 1 << 20;          // of one function

std::uint64_t align(std::uint64_t value, std::uint64_t alignment) noexcept { return (value + alignment - 1) / alignment * alignment; }

class Parser {
public:
    Parser(std::string_view text, const Target& target, Code& code, LoadError& error) : text_(text), target_(target), code_(code), error_(error) {}

    void module();

private:
    struct Declaration {
        Type type = Type::none;
        std::size_t alignment = 0;
        std::string name;
        std::size_t size = 0;
        bool is_array = false, unsized = false, managed = false;
    };

    [[noreturn]] void newer(LoadError error, const std::string& what) const {
        error_ = error;
        throw Refusal{false, text_.peek().line, what};
    }

    long long integer() {
        const bool negative = text_.accept("-");
        long long value = 0;
        if (!parse_integer(text_.peek().text, value)) text_.refuse("expected an integer, found '" + std::string(text_.peek().text) + "'");
        text_.next();
        return negative ? -value : value;
    }

    void version();
    void target();
    Declaration declaration();
    void variable(Space space, bool is_extern);
    void initialise(Variable& variable, Type type);
    void function(bool is_entry);
    void formal_parameters(std::vector<Symbol>& places, Function& function);
    void entry_parameters(Function& function);
    void body(Function& function);
    void registers(Function& function);
    void local_variable(Function& function, Space space);
    void statement(Function& function);
    void call(Function& function, Statement& statement);
    Operand operand(Function& function);
    Operand simple_operand(Function& function);
    Operand memory_operand(Function& function);
    Operand word_operand(Function& function, const Token& token);
    Operand number(std::string_view word);
    const Symbol* local(const std::string& name) const;

    Text text_;
    const Target& target_;
    Code& code_;
    LoadError& error_;
    std::vector<std::map<std::string, std::uint32_t>> register_scopes_;
    std::vector<std::map<std::string, Symbol>> symbol_scopes_;
};

void Parser::version() {
    const std::string_view word = text_.next().text;
    const std::size_t dot = word.find('.');
    long long major = 0;
    long long minor = 0;
    if (dot == std::string_view::npos || !parse_integer(word.substr(0, dot), major) || !parse_integer(word.substr(dot + 1), minor)) {
        text_.refuse("expected a PTX version, found '" + std::string(word) + "'");
    }
    if (10 * major + minor > target_.ptx_version) {
        newer(LoadError::newer_ptx_version, "PTX version " + std::string(word) + " is newer than this driver's " +
                                                std::to_string(target_.ptx_version / 10) + "." + std::to_string(target_.ptx_version % 10));
    }
}

void Parser::target() {
    do {
        std::string_view word = text_.next().text;
        if (word.substr(0, 3) != "sm_") continue;   // "debug", "texmode_independent"
        word.remove_prefix(3);
        const bool exact = !word.empty() && (word.back() == 'a' || word.back() == 'f');
        if (exact) word.remove_suffix(1);
        long long capability = 0;
        if (!parse_integer(word, capability)) text_.refuse("bad target 'sm_" + std::string(word) + "'");
        if (capability > target_.compute_capability || (exact && capability != target_.compute_capability)) {
            newer(LoadError::newer_target, "the code is for sm_" + std::string(word) + ", the device is sm_" + std::to_string(target_.compute_capability));
        }
    } while (text_.accept(","));
}

void Parser::module() {
    text_.expect(".version");
    version();
    while (!text_.peek().text.empty()) {
        bool is_extern = false;
        while (text_.peek().text == ".visible" || text_.peek().text == ".extern" || text_.peek().text == ".weak" || text_.peek().text == ".common") {
            is_extern = text_.next().text == ".extern" || is_extern;
        }
        const std::string_view word = text_.peek().text;
        if (text_.accept(".target")) {
            target();
        } else if (text_.accept(".address_size")) {
            if (integer() != 64) text_.refuse("only 64-bit addresses are supported");
        } else if (text_.accept(".file") || text_.accept(".loc")) {
            text_.skip_line();
        } else if (text_.accept(".section")) {
            text_.next();
            text_.skip_braces();
        } else if (text_.accept(".pragma")) {
            while (!text_.accept(";") && !text_.peek().text.empty()) text_.next();
        } else if (text_.accept(".global")) {
            variable(Space::global, is_extern);
        } else if (text_.accept(".const")) {
            variable(Space::constant, is_extern);
        } else if (text_.accept(".shared")) {
            variable(Space::shared, is_extern);
        } else if (text_.accept(".entry")) {
            function(true);
        } else if (text_.accept(".func")) {
            function(false);
        } else if (text_.accept(";")) {
            continue;
        } else {
            throw Refusal{true, text_.peek().line, "unsupported directive '" + std::string(word) + "'"};
        }
    }
}

// From behind the space: ".align 4 .b8 name[12]", ".attribute(.managed) .u32 name", ".f32 name".
Parser::Declaration Parser::declaration() {
    Declaration result;
    for (;;) {
        if (text_.accept(".align")) {
            result.alignment = static_cast<std::size_t>(integer());
        } else if (text_.accept(".attribute")) {
            text_.expect("(");
            while (!text_.accept(")")) {
                const std::string_view word = text_.next().text;
                if (word == ".managed") result.managed = true;
                if (word.empty()) text_.refuse("an attribute list without its ')'");
            }
        } else if (text_.accept(".ptr")) {
            while (text_.peek().text == ".global" || text_.peek().text == ".const" || text_.peek().text == ".shared" ||
                   text_.peek().text == ".local" || text_.peek().text == ".align") {
                if (text_.next().text == ".align") integer();   // of what it points to
            }
        } else {
            break;
        }
    }
    unsigned vector = 1;
    if (text_.accept(".v2")) vector = 2;
    if (text_.accept(".v4")) vector = 4;
    std::string_view word = text_.next().text;
    if (word.empty() || word[0] != '.' || !parse_type(word.substr(1), result.type)) {
        throw Refusal{true, text_.peek().line, "unsupported type '" + std::string(word) + "' in a declaration"};
    }
    while (text_.accept(".ptr")) {
        while (text_.peek().text == ".global" || text_.peek().text == ".const" || text_.peek().text == ".shared" ||
               text_.peek().text == ".local" || text_.peek().text == ".align") {
            if (text_.next().text == ".align") integer();
        }
    }
    result.name = std::string(text_.next().text);
    result.size = size_of(result.type) * vector;
    if (result.alignment == 0) result.alignment = result.size;
    if (result.alignment == 0 || result.alignment > 4096) text_.refuse("bad alignment");
    while (text_.accept("[")) {
        result.is_array = true;
        if (text_.accept("]")) {
            result.unsized = true;
            result.size = 0;
            continue;
        }
        const long long length = integer();
        if (length < 0 || static_cast<unsigned long long>(length) > size_limit / std::max<std::size_t>(result.size, 1)) text_.refuse("bad array length");
        result.size *= static_cast<std::size_t>(length);
        text_.expect("]");
    }
    return result;
}

void Parser::variable(Space space, bool is_extern) {
    const Declaration declared = declaration();
    Symbol symbol;
    symbol.space = space;
    symbol.size = declared.size;
    if (space == Space::shared) {
        if (declared.unsized) {
            symbol.offset = ~std::uint64_t{0};   // dynamic shared memory: behind all that is static
        } else {
            symbol.offset = align(code_.shared_bytes, declared.alignment);
            code_.shared_bytes = symbol.offset + declared.size;
        }
    } else {
        Variable made;
        made.name = declared.name;
        made.size = declared.size;
        made.alignment = declared.alignment;
        made.constant = space == Space::constant;
        made.managed = declared.managed;
        made.initial.resize(declared.size);
        if (text_.accept("=")) {
            initialise(made, declared.type);
        } else if (is_extern) {
            error_ = LoadError::unresolved_symbol;
            text_.refuse("extern variable '" + declared.name + "' is defined nowhere");
        }
        symbol.offset = code_.variable_list.size();
        code_.variable_list.push_back(std::move(made));
    }
    code_.symbols[declared.name] = symbol;
    text_.expect(";");
}

// "5", "0f3F800000", "{1, 2, 3}", "{{1,2},{3}}", "symbol", "generic(symbol)+4"
void Parser::initialise(Variable& variable, Type type) {
    const std::size_t unit = size_of(type);
    std::size_t at = 0;
    int depth = 0;
    do {
        if (text_.accept("{")) {
            ++depth;
            continue;
        }
        if (text_.accept("}")) {
            --depth;
            continue;
        }
        if (text_.accept(",")) continue;
        if (at + unit > variable.size) text_.refuse("more initial values than '" + variable.name + "' has room for");
        const bool negative = text_.accept("-");
        const Token token = text_.next();
        std::uint64_t bits = 0;
        if (token.text.empty()) text_.refuse("an initial value was expected");
        const Operand value = number(token.text);
        if (value.kind == Operand::Kind::immediate) {
            bits = value.value;
            if (value.is_float && unit == 4 && token.text[1] == 'd') {
                double wide = 0;
                std::memcpy(&wide, &bits, sizeof wide);
                const float narrow = static_cast<float>(wide);
                bits = 0;
                std::memcpy(&bits, &narrow, sizeof narrow);
            }
            if (negative) bits = 0 - bits;
        } else {
            std::string symbol(token.text);
            if (symbol == "generic") {
                text_.expect("(");
                symbol = std::string(text_.next().text);
                text_.expect(")");
            }
            long long addend = 0;
            if (text_.accept("+")) addend = integer();
            if (unit != 8) text_.refuse("the address of '" + symbol + "' does not fit its variable");
            variable.relocations.push_back({at, symbol, addend});
        }
        std::memcpy(variable.initial.data() + at, &bits, std::min<std::size_t>(unit, 8));
        at += unit;
    } while (depth > 0);
}

void Parser::entry_parameters(Function& function) {
    if (!text_.accept("(")) return;
    if (text_.accept(")")) return;
    do {
        text_.expect(".param");
        const Declaration declared = declaration();
        const std::size_t offset = align(function.entry.parameter_bytes, declared.alignment);
        function.entry.parameters.push_back({offset, declared.size, declared.alignment});
        function.entry.parameter_bytes = offset + declared.size;
        if (function.entry.parameter_bytes > 0x10000) text_.refuse("more than 64 KiB of parameters");
        symbol_scopes_.back()[declared.name] = {Space::param, offset, declared.size};
    } while (text_.accept(","));
    text_.expect(")");
}

void Parser::formal_parameters(std::vector<Symbol>& places, Function& function) {
    text_.expect("(");
    if (text_.accept(")")) return;
    do {
        if (text_.accept(".reg")) throw Refusal{true, text_.peek().line, "unsupported: a function parameter in a register"};
        text_.expect(".param");
        const Declaration declared = declaration();
        const Symbol place{Space::local, align(function.local_bytes, std::max<std::size_t>(declared.alignment, 8)), declared.size};
        function.local_bytes = place.offset + std::max<std::size_t>(declared.size, 8);
        symbol_scopes_.back()[declared.name] = place;
        places.push_back(place);
    } while (text_.accept(","));
    text_.expect(")");
}

void Parser::function(bool is_entry) {
    Function made;
    made.is_entry = is_entry;
    made.line = text_.peek().line;
    register_scopes_.assign(1, {});
    symbol_scopes_.assign(1, {});
    while (text_.peek().text == ".attribute") {
        text_.next();
        while (!text_.accept(")") && !text_.peek().text.empty()) text_.next();
    }
    if (!is_entry && text_.peek().text == "(") formal_parameters(made.results, made);
    made.name = std::string(text_.next().text);
    made.entry.name = made.name;
    if (is_entry) {
        entry_parameters(made);
    } else if (text_.peek().text == "(") {
        formal_parameters(made.parameters, made);
    }
    for (;;) {
        if (text_.accept(".maxntid") || text_.peek().text == ".reqntid") {
            const bool required = text_.accept(".reqntid");
            unsigned threads = 1;
            for (unsigned axis = 0; axis < 3; ++axis) {
                const unsigned extent = static_cast<unsigned>(integer());
                threads *= extent;
                if (required) made.entry.required_block[axis] = extent;
                if (!text_.accept(",")) {
                    for (unsigned rest = axis + 1; required && rest < 3; ++rest) made.entry.required_block[rest] = 1;
                    break;
                }
            }
            made.entry.max_threads = std::min(std::max(threads, 1u), 1024u);
        } else if (text_.accept(".minnctapersm") || text_.accept(".maxnreg") || text_.accept(".maxnctapersm")) {
            integer();
        } else if (text_.accept(".noreturn") || text_.accept(".blocksareclusters")) {
            continue;
        } else if (text_.accept(".pragma")) {
            while (!text_.accept(";") && !text_.peek().text.empty()) text_.next();
        } else if (text_.peek().text == ".explicitcluster" || text_.peek().text == ".reqnctapercluster" || text_.peek().text == ".maxclusterrank") {
            throw Refusal{true, text_.peek().line, "unsupported directive '" + std::string(text_.peek().text) + "': the simulated device has no clusters"};
        } else {
            break;
        }
    }
    if (!text_.accept(";")) {
        body(made);
        made.is_defined = true;
    }
    const auto known = code_.function_index.find(made.name);
    if (known == code_.function_index.end()) {
        code_.function_index[made.name] = static_cast<std::uint32_t>(code_.functions.size());
        code_.functions.push_back(std::move(made));
    } else if (made.is_defined) {
        code_.functions[known->second] = std::move(made);
    }
}

void Parser::body(Function& function) {
    text_.expect("{");
    const std::uint64_t shared_before = code_.shared_bytes;
    for (int depth = 1; depth != 0;) {
        const Token token = text_.peek();
        if (token.text.empty()) text_.refuse("function '" + function.name + "' has no end");
        if (text_.accept("{")) {
            ++depth;
            register_scopes_.emplace_back();
            symbol_scopes_.emplace_back();
        } else if (text_.accept("}")) {
            --depth;
            register_scopes_.pop_back();
            if (depth != 0) symbol_scopes_.pop_back();
        } else if (text_.accept(".reg")) {
            if (register_scopes_.empty()) register_scopes_.emplace_back();
            registers(function);
        } else if (text_.accept(".local")) {
            local_variable(function, Space::local);
        } else if (text_.accept(".param")) {
            local_variable(function, Space::local);
        } else if (text_.accept(".shared")) {
            local_variable(function, Space::shared);
        } else if (text_.accept(".loc") || text_.accept(".file")) {
            text_.skip_line();
        } else if (text_.accept(".pragma")) {
            while (!text_.accept(";") && !text_.peek().text.empty()) text_.next();
        } else if (text_.peek(1).text == ":" ) {
            const std::string label(text_.next().text);
            text_.next();
            if (text_.accept(".callprototype") || text_.accept(".calltargets") || text_.accept(".branchtargets")) {
                while (!text_.accept(";") && !text_.peek().text.empty()) text_.next();
            } else {
                function.labels[label] = static_cast<std::uint32_t>(function.statements.size());
            }
        } else if (token.text[0] == '.') {
            throw Refusal{true, token.line, "unsupported directive '" + std::string(token.text) + "'"};
        } else {
            statement(function);
        }
    }
    function.entry.static_shared_bytes = static_cast<std::size_t>(code_.shared_bytes - shared_before);
    function.entry.local_bytes = static_cast<std::size_t>(function.local_bytes);
    function.entry.registers = std::min(16 + (function.registers - special_count) / 4, 255u);
}

void Parser::registers(Function& function) {
    if (text_.accept(".v2") || text_.accept(".v4")) throw Refusal{true, text_.peek().line, "unsupported: vector registers"};
    text_.next();   // the type: rows are wide enough for all
    do {
        const std::string name(text_.next().text);
        if (text_.accept("<")) {
            const long long count = integer();
            text_.expect(">");
            if (count < 0 || count > register_limit) text_.refuse("bad number of registers");
            for (long long index = 0; index < count; ++index) register_scopes_.back()[name + std::to_string(index)] = function.registers++;
        } else {
            register_scopes_.back()[name] = function.registers++;
        }
        if (function.registers > register_limit) text_.refuse("too many registers");
    } while (text_.accept(","));
    text_.expect(";");
}

void Parser::local_variable(Function& function, Space space) {
    do {
        const Declaration declared = declaration();
        Symbol place{space, 0, declared.size};
        if (space == Space::shared) {
            place.offset = align(code_.shared_bytes, declared.alignment);
            code_.shared_bytes = place.offset + declared.size;
        } else {
            place.offset = align(function.local_bytes, declared.alignment);
            function.local_bytes = place.offset + declared.size;
            if (function.local_bytes > (1 << 20)) text_.refuse("more than 1 MiB of local memory");
        }
        symbol_scopes_.back()[declared.name] = place;
    } while (text_.accept(","));
    text_.expect(";");
}

const Symbol* Parser::local(const std::string& name) const {
    for (auto scope = symbol_scopes_.rbegin(); scope != symbol_scopes_.rend(); ++scope) {
        const auto found = scope->find(name);
        if (found != scope->end()) return &found->second;
    }
    return nullptr;
}

Operand Parser::number(std::string_view word) {
    Operand result;
    long long value = 0;
    if (word.size() > 2 && word[0] == '0' && (word[1] == 'f' || word[1] == 'F' || word[1] == 'd' || word[1] == 'D')) {
        std::uint64_t bits = 0;
        for (const char c : word.substr(2)) {
            const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
            if (digit < 0) return result;
            bits = bits * 16 + static_cast<std::uint64_t>(digit);
        }
        result.kind = Operand::Kind::immediate;
        result.is_float = true;
        result.value = bits;
    } else if (word[0] >= '0' && word[0] <= '9' && parse_integer(word, value)) {
        result.kind = Operand::Kind::immediate;
        result.value = static_cast<std::uint64_t>(value);
    }
    return result;
}

Operand Parser::word_operand(Function& function, const Token& token) {
    Operand result = number(token.text);
    if (result.kind == Operand::Kind::immediate) return result;
    const std::string name(token.text);
    for (auto scope = register_scopes_.rbegin(); scope != register_scopes_.rend(); ++scope) {
        const auto found = scope->find(name);
        if (found == scope->end()) continue;
        result.kind = Operand::Kind::reg;
        result.reg = found->second;
        return result;
    }
    for (const auto& special : specials) {
        if (special.name != token.text) continue;
        result.kind = Operand::Kind::reg;
        result.reg = special.row;
        return result;
    }
    if (name == "WARP_SZ") {
        result.kind = Operand::Kind::immediate;
        result.value = lanes;
        return result;
    }
    if (name[0] == '%') throw Refusal{true, token.line, "unsupported or undeclared register '" + name + "' in function '" + function.name + "'"};
    result.kind = Operand::Kind::symbol;
    result.symbol = name;
    if (const Symbol* const place = local(name)) {
        result.resolved = true;
        result.place = *place;
    }
    return result;
}

Operand Parser::memory_operand(Function& function) {
    Operand result;
    const bool negative_only = text_.peek().text == "-";
    if (!negative_only) {
        const Operand base = word_operand(function, text_.next());
        result = base;
        result.has_base = base.kind == Operand::Kind::reg;
        if (base.kind == Operand::Kind::immediate) result.value = base.value;
    }
    result.kind = Operand::Kind::memory;
    if (text_.accept("+")) {
        result.value += static_cast<std::uint64_t>(integer());
    } else if (text_.peek().text == "-") {
        result.value += static_cast<std::uint64_t>(integer());
    }
    text_.expect("]");
    return result;
}

Operand Parser::simple_operand(Function& function) {
    if (text_.accept("!")) {
        Operand result = word_operand(function, text_.next());
        result.negated = true;
        return result;
    }
    if (text_.accept("-")) {
        Operand result = number(text_.next().text);
        if (result.kind != Operand::Kind::immediate || result.is_float) text_.refuse("expected a number behind '-'");
        result.value = 0 - result.value;
        return result;
    }
    const Token token = text_.next();
    if (token.text.empty() || token.text.find_first_of(",;)]}") == 0) text_.refuse("an operand was expected");
    return word_operand(function, token);
}

Operand Parser::operand(Function& function) {
    if (text_.accept("[")) return memory_operand(function);
    if (text_.accept("{")) {
        Operand result;
        result.kind = Operand::Kind::vector;
        do {
            result.elements.push_back(simple_operand(function));
            if (result.elements.size() > 8) text_.refuse("a vector of more than 8 elements");
        } while (text_.accept(","));
        text_.expect("}");
        return result;
    }
    Operand first = simple_operand(function);
    if (first.kind == Operand::Kind::symbol && text_.accept("+")) first.value = static_cast<std::uint64_t>(integer());
    if (!text_.accept("|")) return first;
    Operand pair;
    pair.kind = Operand::Kind::vector;
    pair.elements.push_back(std::move(first));
    pair.elements.push_back(simple_operand(function));
    return pair;
}

void Parser::call(Function& function, Statement& statement) {
    statement.is_call = true;
    if (text_.accept("(")) {
        do {
            statement.results.push_back(simple_operand(function));
        } while (text_.accept(","));
        text_.expect(")");
        text_.expect(",");
    }
    statement.operands.push_back(simple_operand(function));
    if (text_.accept(",") && text_.accept("(")) {
        if (!text_.accept(")")) {
            do {
                statement.arguments.push_back(simple_operand(function));
            } while (text_.accept(","));
            text_.expect(")");
        }
    }
    if (text_.accept(",")) text_.next();   // the prototype of an indirect call
    text_.expect(";");
}

void Parser::statement(Function& function) {
    Statement made;
    made.line = text_.peek().line;
    if (text_.accept("@")) {
        made.has_guard = true;
        made.guard_negated = text_.accept("!");
        const Operand guard = word_operand(function, text_.next());
        if (guard.kind != Operand::Kind::reg) text_.refuse("a guard must be a predicate register");
        made.guard = guard.reg;
    }
    made.opcode = std::string(text_.next().text);
    if (made.opcode == "call" || made.opcode.rfind("call.", 0) == 0) {
        call(function, made);
    } else if (!text_.accept(";")) {
        do {
            made.operands.push_back(operand(function));
            if (made.operands.size() > 8) text_.refuse("more than 8 operands");
        } while (text_.accept(","));
        text_.expect(";");
    }
    function.statements.push_back(std::move(made));
}

}  // namespace

unsigned size_of(Type type) noexcept {
    for (const auto& entry : types) {
        if (entry.type == type) return entry.size;
    }
    return 0;
}

bool is_float(Type type) noexcept { return type >= Type::f16; }
bool is_signed(Type type) noexcept { return type >= Type::s8 && type <= Type::s64; }

bool parse_type(std::string_view word, Type& type) noexcept {
    for (const auto& entry : types) {
        if (entry.name != word) continue;
        type = entry.type;
        return true;
    }
    return false;
}

void parse(std::string_view text, const Target& target, Code& code, LoadError& error) {
    Parser(text, target, code, error).module();
}

}  // namespace ftcuda::sim::ptx
