// How each family of instructions is decoded.
#include "decoder.hpp"

namespace ftcuda::sim::ptx {

void Decoder::arithmetic(std::string_view base) {
    std::string name(base);
    made_.d2 = {};
    if (base == "mul24" || base == "mad24") unsupported();
    if (base == "fma" || base == "mad" || base == "mul") {
        const int part = take_one_of({"lo", "hi", "wide"});
        if (part >= 0) name += part == 0 ? ".lo" : part == 1 ? ".hi" : ".wide";
    }
    bool carries = false;
    if (is_one_of(base, {"addc", "subc", "madc"}) || accept("cc")) {
        carries = true;
        const bool takes_carry = base.back() == 'c' && base != "cc" && base.size() == 4;
        const bool writes_carry = takes_carry ? accept("cc") : true;
        made_.option = static_cast<std::uint8_t>((takes_carry ? 1 : 0) | (writes_carry ? 2 : 0) |
                                                 (base.substr(0, 3) == "sub" ? 4 : 0));
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
    if (base == "bfind" && accept("shiftamt")) made_.option = 1;
    if (base == "prmt") {
        const int mode = take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
        made_.option = static_cast<std::uint8_t>(mode + 1);
    }
    if (base == "min" || base == "max") made_.option = accept("NaN") ? 1 : 0;
    if (base == "fma") made_.option = accept("relu") ? 1 : 0;
    float_modifiers();
    drop({"approx", "full"});
    made_.type = type();
    if (base == "dp4a") {
        Type second = made_.type;
        take_type(second);
        made_.option = static_cast<std::uint8_t>((is_signed(made_.type) ? 1 : 0) | (is_signed(second) ? 2 : 0));
    }
    std::size_t sources = 2;
    if (is_one_of(base, {"neg", "abs", "not", "cnot", "popc", "clz", "brev", "bfind", "sqrt", "rcp", "rsqrt", "sin",
                         "cos", "ex2", "lg2", "tanh"}))
        sources = 1;
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
    made_.ftz = accept("ftz");
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
    made_.ftz = accept("ftz");
    made_.saturate = accept("sat");
    if (accept("relu") || accept("satfinite") || accept("rna") || accept("rs")) unsupported();
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
    const bool to = accept("to");
    made_.space = space();
    type();
    made_.d = target(operand(0));
    if (operand(1).kind == Kind::symbol && operand(1).resolved && operand(1).place.space == Space::local) unsupported();
    made_.a = source(1, Type::u64);
    emit(to ? from_generic : to_generic);
}

// ld, ldu, st
void Decoder::memory(std::string_view base) {
    const bool is_store = base == "st";
    const bool reports = is_store && accept("async");
    memory_modifiers();
    made_.space = space();
    const int vector = take_one_of({"v2", "v4", "v8"});
    made_.type = type();
    const Operand& values = operand(is_store ? 1 : 0);
    vector_operand(values, !is_store, made_.type);
    if (made_.count != (vector < 0 ? 1 : 2 << vector)) syntax("a wrong number of vector elements");
    if (reports) reporting();
    memory_operand(operand(is_store ? 0 : 1));
    if (is_store && made_.space == Space::constant) unsupported();
    emit(reports ? store_async : is_store ? store : load);
}

void Decoder::atomics(bool wants_result) {
    const bool reports = !wants_result && accept("async");
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
    if (reports) {
        if (update == 6 || update == 7 || is_float(made_.type)) unsupported();
        reporting();
    }
    memory_operand(operand(next++));
    made_.b = source(next++, made_.type);
    if (reports) return emit(reduce_async);
    made_.c = update == 7 ? source(next++, made_.type) : made_.b;
    emit(atomic);
}

// bar, barrier
void Decoder::barriers(std::string_view base) {
    if (base == "bar" && accept("warp")) {
        if (!accept("sync")) unsupported();
        made_.a = source(0, Type::u32);
        return emit(warp_barrier, true);
    }
    drop({"cta", "aligned"});
    const bool red = accept("red");
    if (!red && accept("arrive")) made_.option = 1;
    else if (!red && !accept("sync")) unsupported();
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
    if (!accept("sync")) unsupported();  // the forms without .sync are gone from sm_70 on
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
    if (from.kind != Kind::symbol || !from.resolved || from.place.space != Space::local)
        syntax("an argument must be a .param variable");
    return from.place.offset;
}

void Decoder::calls() {
    accept("uni");
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
        function_.references.push_back(found->second);
        const Function& function = code_.functions[found->second];
        if (callee.symbol == "vprintf" && site.arguments.size() == 2) {
            site.builtin = CallSite::Builtin::vprintf;
        } else if (callee.symbol == "__assertfail") {
            site.builtin = CallSite::Builtin::assertfail;
        } else if (callee.symbol == "cudaGraphSetConditional" && site.arguments.size() == 2 && !function.is_defined) {
            site.builtin = CallSite::Builtin::set_conditional;
        } else if (!function.is_defined) {
            throw Refusal{true, statement_->line,
                          "unsupported: call of '" + callee.symbol + "', which the text does not define"};
        }
    }
    made_.target = static_cast<std::uint32_t>(code_.calls.size());
    code_.calls.push_back(std::move(site));
    emit(call, true);
}

}  // namespace ftcuda::sim::ptx
