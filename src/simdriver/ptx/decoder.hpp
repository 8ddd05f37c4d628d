// Statements to instructions. An opcode is its first word and a set of modifiers; each modifier must be understood by
// the instruction it stands on, and one that is not refuses the whole text.
#pragma once

#include "machine.hpp"

#include <algorithm>

namespace ftcuda::sim::ptx {

using Kind = Operand::Kind;

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list) noexcept {
    return std::find(list.begin(), list.end(), word) != list.end();
}

inline int index_of(std::string_view word, std::initializer_list<std::string_view> list) noexcept {
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
            if (found == function_.labels.end())
                throw Refusal{false, function_.instructions[index].line, "no label '" + label + "'"};
            function_.instructions[index].target = std::min(found->second, size - 1);
        }
    }

private:
    [[noreturn]] void unsupported() const {
        throw Refusal{true, statement_->line, "unsupported instruction '" + statement_->opcode + "'"};
    }
    [[noreturn]] void syntax(const std::string& what) const {
        throw Refusal{false, statement_->line, what + " in '" + statement_->opcode + "'"};
    }

    // ---- Modifiers
    bool accept(std::string_view word) {
        const auto found = std::find(modifiers_.begin(), modifiers_.end(), word);
        if (found == modifiers_.end()) return false;
        modifiers_.erase(found);
        return true;
    }
    int take_one_of(std::initializer_list<std::string_view> words) {
        for (const std::string_view word : words) {
            if (accept(word)) return index_of(word, words);
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
        for (const std::string_view word : words) accept(word);
    }
    void float_modifiers() {
        const int rounding = take_one_of({"rn", "rz", "rm", "rp"});
        if (rounding > 0) made_.rounding = static_cast<std::uint8_t>(rounding);
        made_.ftz = accept("ftz");
        made_.saturate = accept("sat");
    }
    Space space() {
        if (accept("shared::cta") || accept("shared")) return Space::shared;
        if (accept("shared::cluster")) return Space::cluster;
        if (accept("global")) return Space::global;
        if (accept("const")) return Space::constant;
        if (accept("local")) return Space::local;
        if (accept("param::entry") || accept("param::func") || accept("param")) return Space::param;
        return Space::generic;
    }
    // Memory model and caching: every access here is at least as strong as any of them asks for.
    void memory_modifiers() {
        drop({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cta", "gpu", "sys", "cluster"});
        drop({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "noftz"});
        drop({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
              "L2::64B", "L2::128B", "L2::256B"});
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
        case Kind::immediate: return constant_row(immediate(from, wanted));
        case Kind::symbol: return address_row(from);
        default: syntax("an operand of the wrong kind");
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
        if (function != code_.function_index.end()) {
            function_.references.push_back(function->second);
            return constant_row(function_window + function->second);
        }
        const auto symbol = code_.symbols.find(from.symbol);
        if (symbol == code_.symbols.end()) syntax("unknown symbol '" + from.symbol + "'");
        if (symbol->second.space == Space::shared) return constant_row(shared_offset(symbol->second) + from.value);
        code_.constants.push_back(from.value);  // a row of its own: launches add the variable's address
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
        if (!single && from.elements.size() > std::size(made_.elements)) unsupported();
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
    void mbarriers();
    void asynchronous_copies();
    void bulk_copies();
    void tile_copies();
    void reporting();
    void cluster_barriers();
    void cluster_addresses(std::string_view base);
    std::uint64_t call_place(const Operand& from) const;

    Code& code_;
    Function& function_;
    const Statement* statement_ = nullptr;
    std::vector<std::string_view> modifiers_;
    Instruction made_;
    std::map<std::uint64_t, std::uint32_t> constants_;
    std::vector<std::pair<std::size_t, std::string>> fixups_;
};

}  // namespace ftcuda::sim::ptx
