// Function bodies: registers get their rows, variables their places, statements their operands. Opcodes are left to the
// decoder.
#include "parser.hpp"

#include <algorithm>

namespace ftcuda::sim::ptx {

namespace {

constexpr struct {
    std::string_view name;
    Special row;
} specials[] = {
    {"%tid.x", tid_x},
    {"%tid.y", tid_y},
    {"%tid.z", tid_z},
    {"%ntid.x", ntid_x},
    {"%ntid.y", ntid_y},
    {"%ntid.z", ntid_z},
    {"%ctaid.x", ctaid_x},
    {"%ctaid.y", ctaid_y},
    {"%ctaid.z", ctaid_z},
    {"%nctaid.x", nctaid_x},
    {"%nctaid.y", nctaid_y},
    {"%nctaid.z", nctaid_z},
    {"%laneid", lane_id},
    {"%warpid", warp_id},
    {"%nwarpid", number_of_warps},
    {"%smid", sm_id},
    {"%nsmid", number_of_sms},
    {"%gridid", grid_id},
    {"%envreg1", envreg1},
    {"%envreg2", envreg2},
    {"%lanemask_eq", lanemask_eq},
    {"%lanemask_le", lanemask_le},
    {"%lanemask_lt", lanemask_lt},
    {"%lanemask_ge", lanemask_ge},
    {"%lanemask_gt", lanemask_gt},
    {"%dynamic_smem_size", dynamic_smem_size},
    {"%total_smem_size", total_smem_size},
    {"%clock", clock_low},
    {"%clock64", clock_64},
    {"%clock_hi", clock_high},
    {"%globaltimer_lo", timer_low},
    {"%globaltimer_hi", timer_high},
    {"%globaltimer", timer_64},
    {"%aggr_smem_size", total_smem_size},
    {"%current_graph_exec", zero},
    {"%clusterid.x", clusterid_x},
    {"%clusterid.y", clusterid_y},
    {"%clusterid.z", clusterid_z},
    {"%nclusterid.x", nclusterid_x},
    {"%nclusterid.y", nclusterid_y},
    {"%nclusterid.z", nclusterid_z},
    {"%cluster_ctaid.x", cluster_ctaid_x},
    {"%cluster_ctaid.y", cluster_ctaid_y},
    {"%cluster_ctaid.z", cluster_ctaid_z},
    {"%cluster_nctaid.x", cluster_nctaid_x},
    {"%cluster_nctaid.y", cluster_nctaid_y},
    {"%cluster_nctaid.z", cluster_nctaid_z},
    {"%cluster_ctarank", cluster_ctarank},
    {"%cluster_nctarank", cluster_nctarank},
    {"%is_explicit_cluster", is_explicit_cluster},
};

}  // namespace

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
        } else if (text_.peek(1).text == ":") {
            const std::string label(text_.next().text);
            text_.next();
            if (text_.accept(".callprototype") || text_.accept(".calltargets") || text_.accept(".branchtargets")) {
                while (!text_.accept(";") && !text_.peek().text.empty()) text_.next();
            } else {
                function.labels[label] = static_cast<std::uint32_t>(function.statements.size());
            }
        } else if (!token.text.empty() && token.text[0] == '.') {
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
    if (text_.accept(".v2") || text_.accept(".v4"))
        throw Refusal{true, text_.peek().line, "unsupported: vector registers"};
    text_.next();  // the type: rows are wide enough for all
    do {
        const std::string name(text_.next().text);
        if (text_.accept("<")) {
            const long long count = integer();
            text_.expect(">");
            if (count < 0 || count > register_limit) text_.refuse("bad number of registers");
            for (long long index = 0; index < count; ++index)
                register_scopes_.back()[name + std::to_string(index)] = function.registers++;
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
            if (code_.shared_bytes > shared_limit) text_.refuse("more than 15 MiB of shared memory");
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
            const int digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (digit < 0) return result;
            bits = bits * 16 + static_cast<std::uint64_t>(digit);
        }
        result.kind = Operand::Kind::immediate;
        result.is_float = true;
        result.value = bits;
    } else if (!word.empty() && word[0] >= '0' && word[0] <= '9' && parse_integer(word, value)) {
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
    if (name[0] == '%')
        throw Refusal{true, token.line,
                      "unsupported or undeclared register '" + name + "' in function '" + function.name + "'"};
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
    if (text_.accept(",")) {  // behind a tensor map: where in the tensor
        result.elements.push_back(operand(function));
        text_.expect("]");
        return result;
    }
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
            if (result.elements.size() > 256) text_.refuse("a vector of more than 256 elements");
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
    if (text_.accept(",")) text_.next();  // the prototype of an indirect call
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
            if (made.operands.size() > 16) text_.refuse("more than 16 operands");
        } while (text_.accept(","));
        text_.expect(";");
    }
    function.statements.push_back(std::move(made));
}

}  // namespace ftcuda::sim::ptx
