// PTX text at module scope: versions, variables, functions and their parameters.
#include "parser.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim::ptx {

namespace {

constexpr struct {
    std::string_view name;
    Type type;
    unsigned size;
} types[] = {
    {"pred", Type::pred, 1},     {"u8", Type::u8, 1},   {"u16", Type::u16, 2},   {"u32", Type::u32, 4},
    {"u64", Type::u64, 8},       {"s8", Type::s8, 1},   {"s16", Type::s16, 2},   {"s32", Type::s32, 4},
    {"s64", Type::s64, 8},       {"b8", Type::b8, 1},   {"b16", Type::b16, 2},   {"b32", Type::b32, 4},
    {"b64", Type::b64, 8},       {"f16", Type::f16, 2}, {"bf16", Type::bf16, 2}, {"f16x2", Type::f16x2, 4},
    {"bf16x2", Type::bf16x2, 4}, {"f32", Type::f32, 4}, {"f64", Type::f64, 8},
};

}  // namespace

void Parser::version() {
    const std::string_view word = text_.next().text;
    const std::size_t dot = word.find('.');
    long long major = 0;
    long long minor = 0;
    if (dot == std::string_view::npos || !parse_integer(word.substr(0, dot), major) ||
        !parse_integer(word.substr(dot + 1), minor)) {
        text_.refuse("expected a PTX version, found '" + std::string(word) + "'");
    }
    if (10 * major + minor > target_.ptx_version) {
        newer(LoadError::newer_ptx_version, "PTX version " + std::string(word) + " is newer than this driver's " +
                                                std::to_string(target_.ptx_version / 10) + "." +
                                                std::to_string(target_.ptx_version % 10));
    }
}

void Parser::target() {
    do {
        std::string_view word = text_.next().text;
        if (word.substr(0, 3) != "sm_") continue;  // "debug", "texmode_independent"
        word.remove_prefix(3);
        const bool exact = !word.empty() && (word.back() == 'a' || word.back() == 'f');
        if (exact) word.remove_suffix(1);
        long long capability = 0;
        if (!parse_integer(word, capability)) text_.refuse("bad target 'sm_" + std::string(word) + "'");
        if (capability > target_.compute_capability || (exact && capability != target_.compute_capability)) {
            newer(LoadError::newer_target, "the code is for sm_" + std::string(word) + ", the device is sm_" +
                                               std::to_string(target_.compute_capability));
        }
    } while (text_.accept(","));
}

void Parser::module() {
    text_.expect(".version");
    version();
    while (!text_.peek().text.empty()) {
        bool is_extern = false;
        while (text_.peek().text == ".visible" || text_.peek().text == ".extern" || text_.peek().text == ".weak" ||
               text_.peek().text == ".common") {
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
                if (text_.next().text == ".align") integer();  // of what it points to
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
        if (length < 0 || static_cast<unsigned long long>(length) > size_limit / std::max<std::size_t>(result.size, 1))
            text_.refuse("bad array length");
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
            symbol.offset = ~std::uint64_t{0};  // dynamic shared memory: behind all that is static
        } else {
            symbol.offset = align(code_.shared_bytes, declared.alignment);
            code_.shared_bytes = symbol.offset + declared.size;
            if (code_.shared_bytes > shared_limit) text_.refuse("more than 15 MiB of shared memory");
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
        if (text_.accept(".reg"))
            throw Refusal{true, text_.peek().line, "unsupported: a function parameter in a register"};
        text_.expect(".param");
        const Declaration declared = declaration();
        const Symbol place{Space::local, align(function.local_bytes, std::max<std::size_t>(declared.alignment, 8)),
                           declared.size};
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
        } else if (text_.accept(".noreturn")) {
            continue;
        } else if (text_.accept(".pragma")) {
            while (!text_.accept(";") && !text_.peek().text.empty()) text_.next();
        } else if (text_.accept(".explicitcluster")) {
            made.entry.explicit_cluster = true;
        } else if (text_.accept(".maxclusterrank")) {
            made.entry.max_cluster = static_cast<unsigned>(integer());
        } else if (text_.accept(".reqnctapercluster")) {
            made.entry.required_cluster = {1, 1, 1};
            for (unsigned axis = 0; axis < 3; ++axis) {
                made.entry.required_cluster[axis] = static_cast<unsigned>(integer());
                if (!text_.accept(",")) break;
            }
        } else if (text_.peek().text == ".blocksareclusters") {
            throw Refusal{true, text_.peek().line, "unsupported directive '.blocksareclusters'"};
        } else {
            break;
        }
    }
    if (!text_.accept(";")) {
        const std::size_t begin = text_.place();
        try {
            body(made);
        } catch (const Refusal& refusal) {
            if (is_entry || !refusal.unsupported) throw;
            made.refusal = refusal;
            made.statements.clear();
            text_.return_to(begin);
            text_.skip_braces();
        }
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
