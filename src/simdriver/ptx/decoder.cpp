// Statements to instructions. An opcode is its first word and a set of modifiers; each modifier must be understood by the
// instruction it stands on, and one that is not refuses the whole text.
#include "machine.hpp"

#include <algorithm>

namespace ftcuda::sim::ptx {

namespace {

using Kind = Operand::Kind;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list) noexcept {
    return std::find(list.begin(), list.end(), word) != list.end();
}

int index_of(std::string_view word, std::initializer_list<std::string_view> list) noexcept {
    const auto found = std::find(list.begin(), list.end(), word);
    return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

class Decoder {
public:
    Decoder(Code& code, Function& function) : code_(code), function_(function) {}

    void run() {
        for (const Statement& statement : function_.statements) decode(statement);
        // Control never runs off the end: the text may end in a branch or a call that does not return.
        Instruction end;
        end.handler = leave;
        end.control = true;
        end.line = function_.line;
        function_.instructions.push_back(end);
        const auto size = static_cast<std::uint32_t>(function_.instructions.size());
        for (const auto& [index, label] : fixups_) {
            const auto found = function_.labels.find(label);
            if (found == function_.labels.end()) throw Refusal{false, function_.instructions[index].line, "no label '" + label + "'"};
            function_.instructions[index].target = std::min(found->second, size - 1);
        }
    }

private:
    [[noreturn]] void unsupported() const { throw Refusal{true, statement_->line, "unsupported instruction '" + statement_->opcode + "'"}; }
    [[noreturn]] void syntax(const std::string& what) const { throw Refusal{false, statement_->line, what + " in '" + statement_->opcode + "'"}; }

    // ---- Modifiers
    bool take(std::string_view word) {
        const auto found = std::find(modifiers_.begin(), modifiers_.end(), word);
        if (found == modifiers_.end()) return false;
        modifiers_.erase(found);
        return true;
    }
    int take_one_of(std::initializer_list<std::string_view> words) {
        for (const std::string_view word : words) {
            if (take(word)) return index_of(word, words);
        }
        return -1;
    }
    bool take_type(Type& type) {
        for (auto modifier = modifiers_.begin(); modifier != modifiers_.end(); ++modifier) {
            if (!parse_type(*modifier, type)) continue;
            modifiers_.erase(modifier);
            return true;
        }
        return false;
    }
    Type type() {
        Type result = Type::none;
        if (!take_type(result)) unsupported();
        return result;
    }
    void drop(std::initializer_list<std::string_view> words) {
        for (const std::string_view word : words) take(word);
    }
    void float_modifiers() {
        const int rounding = take_one_of({"rn", "rz", "rm", "rp"});
        if (rounding > 0) made_.rounding = static_cast<std::uint8_t>(rounding);
        made_.ftz = take("ftz");
        made_.saturate = take("sat");
    }
    Space space() {
        if (take("shared::cta") || take("shared")) return Space::shared;
        if (take("global")) return Space::global;
        if (take("const")) return Space::constant;
        if (take("local")) return Space::local;
        if (take("param::entry") || take("param::func") || take("param")) return Space::param;
        return Space::generic;
    }
    // Memory model and caching: every access here is at least as strong as any of them asks for.
    void memory_modifiers() {
        drop({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cta", "gpu", "sys", "cluster"});
        drop({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "noftz"});
        drop({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B"});
    }

    // ---- Operands
    const Operand& operand(std::size_t index) const {
        if (index >= statement_->operands.size()) syntax("too few operands");
        return statement_->operands[index];
    }
    std::uint32_t constant(std::uint64_t value) {
        const auto known = constants_.find(value);
        if (known != constants_.end()) return known->second;
        code_.constants.push_back(value);
        return constants_[value] = static_cast<std::uint32_t>(code_.constants.size() - 1);
    }
    RowRef constant_row(std::uint64_t value) { return {constant(value), true}; }
    RowRef target(const Operand& from) const {
        if (from.kind == Kind::symbol && from.symbol == "_") return {};
        if (from.kind != Kind::reg || from.reg < special_count) syntax("the target must be a register");
        return {from.reg, false};
    }
    std::uint64_t immediate(const Operand& from, Type wanted) const {
        if (!from.is_float) return from.value;
        // A double's bits for a float type, which PTX allows, are rounded.
        if (wanted == Type::f32 && from.value > 0xffff'ffff) return put(static_cast<float>(get<double>(from.value)));
        return from.value;
    }
    RowRef source(const Operand& from, Type wanted) {
        switch (from.kind) {
        case Kind::reg:
            if (from.reg >= clock_low && from.reg < special_count) syntax("a timer can only be moved");
            return {from.reg, false};
        case Kind::immediate:
            return constant_row(immediate(from, wanted));
        case Kind::symbol:
            return address_row(from);
        default:
            syntax("an operand of the wrong kind");
        }
    }
    RowRef source(std::size_t index, Type wanted) { return source(operand(index), wanted); }

    // The address of a symbol, in its own space, as a constant.
    RowRef address_row(const Operand& from) {
        if (from.resolved) {
            if (from.place.space == Space::local) syntax("the address of a local variable can only be moved");
            return constant_row(from.place.offset + from.value);
        }
        const auto function = code_.function_index.find(from.symbol);
        if (function != code_.function_index.end()) return constant_row(function_window + function->second);
        const auto symbol = code_.symbols.find(from.symbol);
        if (symbol == code_.symbols.end()) syntax("unknown symbol '" + from.symbol + "'");
        if (symbol->second.space == Space::shared) return constant_row(shared_offset(symbol->second) + from.value);
        code_.constants.push_back(from.value);   // a row of its own: launches add the variable's address
        const auto row = static_cast<std::uint32_t>(code_.constants.size() - 1);
        code_.variable_constants.emplace_back(row, static_cast<std::uint32_t>(symbol->second.offset));
        return {row, true};
    }
    std::uint64_t shared_offset(const Symbol& symbol) const {
        return symbol.offset == ~std::uint64_t{0} ? (code_.shared_bytes + 127) / 128 * 128 : symbol.offset;
    }

    void memory_operand(const Operand& from) {
        if (from.kind != Kind::memory) syntax("a memory operand was expected");
        made_.offset = static_cast<std::int64_t>(from.value);
        if (from.has_base) {
            made_.a = {from.reg, false};
        } else if (from.symbol.empty()) {
            made_.a = constant_row(0);
        } else if (from.resolved && from.place.space == Space::local) {
            made_.a = constant_row(from.place.offset);
            made_.frame_relative = true;
            made_.space = Space::local;
        } else {
            Operand base = from;
            base.value = 0;
            made_.a = address_row(base);
        }
    }
    void vector_operand(const Operand& from, bool is_target, Type wanted) {
        const bool single = from.kind != Kind::vector;
        made_.count = single ? 1 : static_cast<std::uint8_t>(from.elements.size());
        for (unsigned index = 0; index < made_.count; ++index) {
            const Operand& element = single ? from : from.elements[index];
            if (element.kind == Kind::symbol && element.symbol == "_") {
                made_.elements[index] = blank_element;
                continue;
            }
            const RowRef row = is_target ? target(element) : source(element, wanted);
            made_.elements[index] = row.index;
            made_.element_constant[index] = row.constant;
        }
    }
    // "d|p": a result and a predicate.
    void pair_target(const Operand& from) {
        if (from.kind != Kind::vector) {
            made_.d = target(from);
            return;
        }
        made_.d = target(from.elements.at(0));
        made_.d2 = target(from.elements.at(1));
    }

    void emit(Handler handler, bool control = false) {
        if (handler == nullptr || !modifiers_.empty()) unsupported();
        made_.handler = handler;
        made_.control = control;
    }

    void decode(const Statement& statement);
    void arithmetic(std::string_view base);
    void comparison(std::string_view base);
    void conversion();
    void movement();
    void address_conversion();
    void memory(std::string_view base);
    void atomics(bool wants_result);
    void barriers(std::string_view base);
    void warp_wide(std::string_view base);
    void calls();
    std::uint64_t call_place(const Operand& from) const;

    Code& code_;
    Function& function_;
    const Statement* statement_ = nullptr;
    std::vector<std::string_view> modifiers_;
    Instruction made_;
    std::map<std::uint64_t, std::uint32_t> constants_;
    std::vector<std::pair<std::size_t, std::string>> fixups_;
};

void Decoder::arithmetic(std::string_view base) {
    std::string name(base);
    made_.d2 = {};
    if (base == "mul24" || base == "mad24") unsupported();
    if (base == "fma" || base == "mad" || base == "mul") {
        const int part = take_one_of({"lo", "hi", "wide"});
        if (part >= 0) name += part == 0 ? ".lo" : part == 1 ? ".hi" : ".wide";
    }
    bool carries = false;
    if (is_one_of(base, {"addc", "subc", "madc"}) || take("cc")) {
        carries = true;
        const bool takes_carry = base.back() == 'c' && base != "cc" && base.size() == 4;
        const bool writes_carry = takes_carry ? take("cc") : true;
        made_.option = static_cast<std::uint8_t>((takes_carry ? 1 : 0) | (writes_carry ? 2 : 0) | (base.substr(0, 3) == "sub" ? 4 : 0));
        if (base.substr(0, 3) == "mad") {
            const int part = take_one_of({"lo", "hi"});
            if (name.find(".lo") != std::string::npos || part == 0) made_.option2 = 1;
            else made_.option2 = 2;
        }
        name = "carry";
    }
    if (base == "shf") {
        const int direction = take_one_of({"l", "r"});
        const int overflow = take_one_of({"wrap", "clamp"});
        if (direction < 0 || overflow < 0) unsupported();
        made_.option = static_cast<std::uint8_t>(direction | overflow << 1);
    }
    if (base == "bfind" && take("shiftamt")) made_.option = 1;
    if (base == "prmt") {
        const int mode = take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
        made_.option = static_cast<std::uint8_t>(mode + 1);
    }
    if (base == "min" || base == "max") made_.option = take("NaN") ? 1 : 0;
    if (base == "fma") made_.option = take("relu") ? 1 : 0;
    float_modifiers();
    drop({"approx", "full"});
    made_.type = type();
    if (base == "dp4a") {
        Type second = made_.type;
        take_type(second);
        made_.option = static_cast<std::uint8_t>((is_signed(made_.type) ? 1 : 0) | (is_signed(second) ? 2 : 0));
    }
    std::size_t sources = 2;
    if (is_one_of(base, {"neg", "abs", "not", "cnot", "popc", "clz", "brev", "bfind", "sqrt", "rcp", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh"})) sources = 1;
    if (is_one_of(base, {"fma", "mad", "madc", "sad", "shf", "bfe", "prmt", "dp4a", "lop3"})) sources = 3;
    if (base == "bfi") sources = 4;
    pair_target(operand(0));
    const Type amount = Type::u32;
    made_.a = source(1, made_.type);
    if (sources >= 2) made_.b = source(2, is_one_of(base, {"shl", "shr"}) ? amount : made_.type);
    if (sources >= 3) made_.c = source(3, made_.type);
    if (sources >= 4) made_.e = source(4, amount);
    if (base == "lop3") {
        if (operand(4).kind != Kind::immediate) syntax("the truth table must be a number");
        made_.option = static_cast<std::uint8_t>(operand(4).value);
    }
    const std::size_t expected = sources + 1 + (base == "lop3" ? 1 : 0);
    if (statement_->operands.size() != expected) syntax("a wrong number of operands");
    if (made_.saturate && !is_float(made_.type)) unsupported();
    if (base == "fma" && !is_float(made_.type)) unsupported();
    if (carries && is_float(made_.type)) unsupported();
    emit(arithmetic_handler(name, made_));
}

// setp.lt.and.f32 p|q, a, b, c    set.lt.u32.f32 d, a, b
void Decoder::comparison(std::string_view base) {
    if (modifiers_.empty()) unsupported();
    const std::string_view order = modifiers_.front();
    modifiers_.erase(modifiers_.begin());
    const int combination = take_one_of({"and", "or", "xor"});
    made_.option = static_cast<std::uint8_t>(combination + 1);
    made_.ftz = take("ftz");
    if (base == "set") {
        const Type result = type();
        if (result == Type::f32) made_.option2 = 2;
        else if (size_of(result) == 4 && !is_float(result)) made_.option2 = 1;
        else unsupported();
    }
    made_.type = type();
    pair_target(operand(0));
    made_.a = source(1, made_.type);
    made_.b = source(2, made_.type);
    if (combination >= 0) {
        made_.c = source(3, Type::pred);
        made_.count = operand(3).negated ? 2 : 1;
    }
    emit(compare_handler(order, made_.type));
}

void Decoder::conversion() {
    const int integral = take_one_of({"rni", "rzi", "rmi", "rpi"});
    const int rounding = take_one_of({"rn", "rz", "rm", "rp"});
    made_.ftz = take("ftz");
    made_.saturate = take("sat");
    if (take("relu") || take("satfinite") || take("rna") || take("rs")) unsupported();
    made_.type = type();
    made_.type2 = type();
    if (integral >= 0) {
        made_.rounding = static_cast<std::uint8_t>(integral);
        made_.option = 1;
    } else {
        made_.rounding = static_cast<std::uint8_t>(std::max(rounding, 0));
    }
    if (!is_float(made_.type) && is_float(made_.type2) && integral < 0) unsupported();
    made_.d = target(operand(0));
    made_.a = source(1, made_.type2);
    if (made_.type == Type::f16x2 || made_.type == Type::bf16x2) {
        made_.type = made_.type == Type::f16x2 ? Type::f16 : Type::bf16;
        made_.count = 2;
        made_.b = source(2, made_.type2);
    }
    emit(convert);
}

void Decoder::movement() {
    made_.type = type();
    const Operand& to = operand(0);
    const Operand& from = operand(1);
    if (from.kind == Kind::vector) {
        made_.d = target(to);
        vector_operand(from, false, made_.type);
        return emit(ptx::pack);
    }
    if (to.kind == Kind::vector) {
        vector_operand(to, true, made_.type);
        made_.a = source(from, made_.type);
        return emit(unpack);
    }
    made_.d = target(to);
    if (from.kind == Kind::reg && from.reg >= clock_low && from.reg < special_count) {
        made_.option = static_cast<std::uint8_t>(from.reg);
        return emit(read_timer);
    }
    if (from.kind == Kind::symbol && from.resolved && from.place.space == Space::local) {
        made_.offset = static_cast<std::int64_t>(from.place.offset + from.value);
        return emit(move_local_address);
    }
    made_.a = source(from, made_.type);
    emit(move);
}

void Decoder::address_conversion() {
    const bool to = take("to");
    made_.space = space();
    type();
    made_.d = target(operand(0));
    if (operand(1).kind == Kind::symbol && operand(1).resolved && operand(1).place.space == Space::local) unsupported();
    made_.a = source(1, Type::u64);
    emit(to ? from_generic : to_generic);
}

// ld, ldu, st
void Decoder::memory(std::string_view base) {
    memory_modifiers();
    made_.space = space();
    const int vector = take_one_of({"v2", "v4", "v8"});
    made_.type = type();
    const bool is_store = base == "st";
    const Operand& values = operand(is_store ? 1 : 0);
    vector_operand(values, !is_store, made_.type);
    if (made_.count != (vector < 0 ? 1 : 2 << vector)) syntax("a wrong number of vector elements");
    memory_operand(operand(is_store ? 0 : 1));
    if (is_store && made_.space == Space::constant) unsupported();
    emit(is_store ? store : load);
}

void Decoder::atomics(bool wants_result) {
    memory_modifiers();
    made_.space = space();
    const int update = take_one_of({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
    if (update < 0) unsupported();
    made_.option = static_cast<std::uint8_t>(update);
    made_.type = type();
    const bool plain_float = made_.type == Type::f32 || made_.type == Type::f64;
    if (is_float(made_.type) && update != 0 && !(plain_float && update == 6)) unsupported();
    std::size_t next = 0;
    if (wants_result) {
        const Operand& result = operand(next++);
        if (result.kind != Kind::symbol || result.symbol != "_") made_.d = target(result);
    }
    memory_operand(operand(next++));
    made_.b = source(next++, made_.type);
    made_.c = update == 7 ? source(next++, made_.type) : made_.b;
    emit(atomic);
}

// bar, barrier
void Decoder::barriers(std::string_view base) {
    if (base == "bar" && take("warp")) {
        if (!take("sync")) unsupported();
        made_.a = source(0, Type::u32);
        return emit(warp_barrier, true);
    }
    drop({"cta", "aligned"});
    const bool red = take("red");
    if (!red && take("arrive")) made_.option = 1;
    else if (!red && !take("sync")) unsupported();
    made_.b = constant_row(0);
    if (!red) {
        made_.a = statement_->operands.empty() ? constant_row(0) : source(0, Type::u32);
        if (statement_->operands.size() > 1) made_.b = source(1, Type::u32);
        return emit(barrier, true);
    }
    const int reduction = take_one_of({"popc", "and", "or"});
    if (reduction < 0) unsupported();
    made_.option2 = static_cast<std::uint8_t>(reduction + 1);
    type();
    made_.d = target(operand(0));
    made_.a = source(1, Type::u32);
    const bool counted = statement_->operands.size() == 4;
    if (counted) made_.b = source(2, Type::u32);
    const Operand& predicate = operand(counted ? 3 : 2);
    made_.c = source(predicate, Type::pred);
    made_.count = predicate.negated ? 2 : 1;
    emit(barrier, true);
}

// shfl, vote, match, redux
void Decoder::warp_wide(std::string_view base) {
    if (!take("sync")) unsupported();   // the forms without .sync are gone from sm_70 on
    if (base == "shfl") {
        const int mode = take_one_of({"idx", "up", "down", "bfly"});
        if (mode < 0) unsupported();
        made_.option = static_cast<std::uint8_t>(mode);
        made_.type = type();
        pair_target(operand(0));
        made_.a = source(1, made_.type);
        made_.b = source(2, Type::u32);
        made_.c = source(3, Type::u32);
        made_.e = source(4, Type::u32);
        return emit(shuffle, true);
    }
    if (base == "vote") {
        const int mode = take_one_of({"all", "any", "uni", "ballot"});
        if (mode < 0) unsupported();
        made_.option = static_cast<std::uint8_t>(mode);
        type();
        made_.d = target(operand(0));
        made_.a = source(1, Type::pred);
        made_.count = operand(1).negated ? 2 : 1;
        made_.b = source(2, Type::u32);
        return emit(vote, true);
    }
    if (base == "match") {
        const int mode = take_one_of({"any", "all"});
        if (mode < 0) unsupported();
        made_.option = static_cast<std::uint8_t>(mode);
        made_.type = type();
        pair_target(operand(0));
        made_.a = source(1, made_.type);
        made_.b = source(2, Type::u32);
        return emit(match, true);
    }
    const int operation = take_one_of({"add", "min", "max", "and", "or", "xor"});
    if (operation < 0) unsupported();
    made_.option = static_cast<std::uint8_t>(operation);
    made_.type = type();
    if (is_float(made_.type)) unsupported();
    made_.d = target(operand(0));
    made_.a = source(1, made_.type);
    made_.b = source(2, Type::u32);
    emit(reduce, true);
}

std::uint64_t Decoder::call_place(const Operand& from) const {
    if (from.kind != Kind::symbol || !from.resolved || from.place.space != Space::local) syntax("an argument must be a .param variable");
    return from.place.offset;
}

void Decoder::calls() {
    take("uni");
    CallSite site;
    for (const Operand& argument : statement_->arguments) site.arguments.push_back(call_place(argument));
    for (const Operand& result : statement_->results) site.results.push_back(call_place(result));
    const Operand& callee = operand(0);
    if (callee.kind == Kind::reg) {
        site.indirect = true;
        site.pointer = {callee.reg, false};
    } else {
        const auto found = code_.function_index.find(callee.symbol);
        if (found == code_.function_index.end()) syntax("unknown function '" + callee.symbol + "'");
        site.function = found->second;
        const Function& function = code_.functions[found->second];
        if (callee.symbol == "vprintf" && site.arguments.size() == 2) {
            site.builtin = CallSite::Builtin::vprintf;
        } else if (callee.symbol == "__assertfail") {
            site.builtin = CallSite::Builtin::assertfail;
        } else if (!function.is_defined) {
            throw Refusal{true, statement_->line, "unsupported: call of '" + callee.symbol + "', which the text does not define"};
        }
    }
    made_.target = static_cast<std::uint32_t>(code_.calls.size());
    code_.calls.push_back(std::move(site));
    emit(call, true);
}

void Decoder::decode(const Statement& statement) {
    statement_ = &statement;
    made_ = {};
    made_.line = statement.line;
    made_.has_guard = statement.has_guard;
    made_.guard_negated = statement.guard_negated;
    made_.guard = statement.guard;
    modifiers_.clear();
    std::string_view rest = statement.opcode;
    const std::string_view base = rest.substr(0, rest.find('.'));
    while (rest.find('.') != std::string_view::npos) {
        rest.remove_prefix(rest.find('.') + 1);
        modifiers_.push_back(rest.substr(0, rest.find('.')));
    }

    if (is_one_of(base, {"add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "neg", "abs", "sad", "and", "or", "xor", "not", "cnot", "popc",
                         "clz", "brev", "shl", "shr", "shf", "bfe", "bfi", "bfind", "prmt", "lop3", "dp4a", "addc", "subc", "madc", "sqrt", "rcp",
                         "rsqrt", "sin", "cos", "ex2", "lg2", "tanh", "copysign"})) {
        arithmetic(base);
    } else if (base == "setp" || base == "set") {
        comparison(base);
    } else if (base == "selp" || base == "slct") {
        made_.ftz = take("ftz");
        made_.type = type();
        if (base == "slct") made_.option = type() == Type::f32 ? 2 : 1;
        made_.d = target(operand(0));
        made_.a = source(1, made_.type);
        made_.b = source(2, made_.type);
        made_.c = source(3, base == "selp" ? Type::pred : made_.option == 2 ? Type::f32 : Type::s32);
        emit(select_by_predicate);
    } else if (base == "cvt") {
        conversion();
    } else if (base == "mov") {
        movement();
    } else if (base == "cvta") {
        address_conversion();
    } else if (base == "isspacep") {
        made_.space = space();
        if (made_.space == Space::constant) unsupported();
        made_.d = target(operand(0));
        made_.a = source(1, Type::u64);
        emit(is_in_space);
    } else if (base == "ld" || base == "ldu" || base == "st") {
        memory(base);
    } else if (base == "atom" || base == "red") {
        atomics(base == "atom");
    } else if (base == "bar" || base == "barrier") {
        if (base == "barrier" && take("cluster")) unsupported();
        barriers(base);
    } else if (is_one_of(base, {"shfl", "vote", "match", "redux"})) {
        warp_wide(base);
    } else if (base == "activemask") {
        type();
        made_.d = target(operand(0));
        emit(active_mask);
    } else if (base == "bra") {
        take("uni");
        fixups_.emplace_back(function_.instructions.size(), operand(0).symbol);
        emit(branch, true);
    } else if (base == "call") {
        calls();
    } else if (base == "ret") {
        take("uni");
        emit(leave, true);
    } else if (base == "exit") {
        emit(finish, true);
    } else if (base == "trap") {
        emit(trap, true);
    } else if (base == "brkpt") {
        emit(breakpoint, true);
    } else if (base == "membar" || base == "fence") {
        drop({"cta", "gl", "gpu", "sys", "sc", "acq_rel", "acquire", "release", "proxy", "alias", "async"});
        emit(nothing);
    } else if (base == "nanosleep") {
        type();
        emit(nothing);
    } else if (base == "prefetch" || base == "prefetchu") {
        drop({"L1", "L2", "global", "local", "L2::evict_last", "L2::evict_normal"});
        emit(prefetch);
    } else if (base == "cp") {
        if (!take("async") || take("bulk")) unsupported();
        if (take("commit_group") || take("wait_group") || take("wait_all")) return emit(nothing), static_cast<void>(function_.instructions.push_back(made_));
        memory_modifiers();
        if (!take("shared") && !take("shared::cta")) unsupported();
        if (!take("global")) unsupported();
        const Operand to = operand(0);
        const Operand from = operand(1);
        if (from.kind != Kind::memory || !from.has_base || operand(2).kind != Kind::immediate) unsupported();
        memory_operand(to);
        made_.d = made_.a;
        made_.a = {from.reg, false};
        made_.target = static_cast<std::uint32_t>(from.value);
        made_.count = static_cast<std::uint8_t>(operand(2).value);
        if (!is_one_of(std::to_string(made_.count), {"4", "8", "16"})) unsupported();
        made_.b = statement.operands.size() > 3 ? source(3, Type::u32) : constant_row(made_.count);
        emit(copy_async);
    } else {
        unsupported();
    }
    function_.instructions.push_back(made_);
}

}  // namespace

void decode(Code& code) {
    code.constants.push_back(0);   // row 0, what an instruction without an operand refers to
    for (Function& function : code.functions) {
        if (!function.is_defined) continue;
        Decoder(code, function).run();
        function.statements.clear();
        if (function.is_entry) code.entry_list.push_back(function.entry);
    }
}

std::unique_ptr<const Program> Program::load(std::string_view text, const Target& target, LoadError& error, std::string& log) {
    auto code = std::make_unique<Code>();
    error = LoadError::none;
    try {
        parse(text, target, *code, error);
        decode(*code);
        // Function addresses are known now; those of variables only when they have their memory.
        for (Variable& variable : code->variable_list) {
            for (auto relocation = variable.relocations.begin(); relocation != variable.relocations.end();) {
                const auto function = code->function_index.find(relocation->symbol);
                if (function == code->function_index.end()) {
                    if (code->symbols.count(relocation->symbol) == 0) throw Refusal{false, 0, "unknown symbol '" + relocation->symbol + "'"};
                    ++relocation;
                    continue;
                }
                const std::uint64_t address = function_window + function->second;
                std::memcpy(variable.initial.data() + relocation->offset, &address, sizeof address);
                relocation = variable.relocations.erase(relocation);
            }
        }
    } catch (const Refusal& refusal) {
        if (error == LoadError::none) error = refusal.unsupported ? LoadError::unsupported : LoadError::syntax;
        log = "ptx line " + std::to_string(refusal.line) + ": " + refusal.what + "\n";
        return nullptr;
    } catch (const std::exception& failure) {
        error = LoadError::syntax;
        log = std::string("ptx: ") + failure.what() + "\n";
        return nullptr;
    }
    return code;
}

}  // namespace ftcuda::sim::ptx
