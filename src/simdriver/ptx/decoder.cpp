// Which family an instruction is of, and the loading of a whole program.
#include "decoder.hpp"

namespace ftcuda::sim::ptx {

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

    if (is_one_of(base, {"add", "sub",   "mul", "mad",   "fma",  "div",  "rem",  "min",     "max",  "neg",  "abs",
                         "sad", "and",   "or",  "xor",   "not",  "cnot", "popc", "clz",     "brev", "shl",  "shr",
                         "shf", "bfe",   "bfi", "bfind", "prmt", "lop3", "dp4a", "addc",    "subc", "madc", "sqrt",
                         "rcp", "rsqrt", "sin", "cos",   "ex2",  "lg2",  "tanh", "copysign"})) {
        arithmetic(base);
    } else if (base == "setp" || base == "set") {
        comparison(base);
    } else if (base == "selp" || base == "slct") {
        made_.ftz = accept("ftz");
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
        base == "barrier" && accept("cluster") ? cluster_barriers() : barriers(base);
    } else if (is_one_of(base, {"shfl", "vote", "match", "redux"})) {
        warp_wide(base);
    } else if (base == "activemask") {
        type();
        made_.d = target(operand(0));
        emit(active_mask);
    } else if (base == "bra") {
        accept("uni");
        fixups_.emplace_back(function_.instructions.size(), operand(0).symbol);
        emit(branch, true);
    } else if (base == "call") {
        calls();
    } else if (base == "ret") {
        accept("uni");
        emit(leave, true);
    } else if (base == "exit") {
        emit(finish, true);
    } else if (base == "trap") {
        emit(trap, true);
    } else if (base == "brkpt") {
        emit(breakpoint, true);
    } else if (base == "membar" || base == "fence") {
        drop({"cta",
              "cluster",
              "gl",
              "gpu",
              "sys",
              "sc",
              "acq_rel",
              "acquire",
              "release",
              "proxy",
              "alias",
              "async",
              "async::generic",
              "tensormap::generic",
              "mbarrier_init",
              "global",
              "shared::cta",
              "shared::cluster",
              "sync_restrict::shared::cta",
              "sync_restrict::shared::cluster"});
        emit(nothing);
    } else if (base == "nanosleep") {
        type();
        emit(nothing);
    } else if (base == "prefetch" || base == "prefetchu") {
        drop({"L1", "L2", "global", "local", "const", "param", "tensormap", "L2::evict_last", "L2::evict_normal"});
        emit(nothing);
    } else if (base == "cp") {
        asynchronous_copies();
    } else if (base == "mbarrier") {
        mbarriers();
    } else if (base == "mapa" || base == "getctarank") {
        cluster_addresses(base);
    } else {
        unsupported();
    }
    function_.instructions.push_back(made_);
}

namespace {

// Refuses what a kernel, or a table of functions, reaches and that is not supported. What headers define and nobody
// uses is let be.
void refuse_reached(const Code& code) {
    std::vector<bool> reached(code.functions.size());
    std::vector<std::uint32_t> next;
    for (std::uint32_t index = 0; index < code.functions.size(); ++index) {
        if (code.functions[index].is_entry) next.push_back(index);
    }
    for (const Variable& variable : code.variable_list) {
        for (const Variable::Relocation& relocation : variable.relocations) {
            const auto function = code.function_index.find(relocation.symbol);
            if (function != code.function_index.end()) next.push_back(function->second);
        }
    }
    while (!next.empty()) {
        const std::uint32_t index = next.back();
        next.pop_back();
        if (reached[index]) continue;
        reached[index] = true;
        const Function& function = code.functions[index];
        if (function.refusal) throw Refusal(*function.refusal);
        next.insert(next.end(), function.references.begin(), function.references.end());
    }
}

}  // namespace

void decode(Code& code) {
    code.constants.push_back(0);  // row 0, what an instruction without an operand refers to
    for (Function& function : code.functions) {
        if (!function.is_defined) continue;
        try {
            if (!function.refusal) Decoder(code, function).run();
        } catch (const Refusal& refusal) {
            if (function.is_entry || !refusal.unsupported) throw;
            function.refusal = refusal;
        }
        function.statements.clear();
        if (function.is_entry) code.entry_list.push_back(function.entry);
    }
    refuse_reached(code);
}

std::unique_ptr<const Program> Program::load(std::string_view text, const Target& target, LoadError& error,
                                             std::string& log) {
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
                    if (code->symbols.count(relocation->symbol) == 0)
                        throw Refusal{false, 0, "unknown symbol '" + relocation->symbol + "'"};
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
