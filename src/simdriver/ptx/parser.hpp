// The parser's state, shared by the two files that hold its halves: declarations (parser.cpp) and statements
// (statements.cpp).
#pragma once

#include "code.hpp"

namespace ftcuda::sim::ptx {

constexpr std::size_t shared_limit = std::size_t{15}
                                     << 20;  // of all kernels, below 1 << block_shift with the dynamic part
constexpr std::size_t size_limit = std::size_t{1} << 31;  // of one variable
constexpr std::uint32_t register_limit = 1 << 20;         // of one function

inline std::uint64_t align(std::uint64_t value, std::uint64_t alignment) noexcept {
    return (value + alignment - 1) / alignment * alignment;
}

class Parser {
public:
    Parser(std::string_view text, const Target& target, Code& code, LoadError& error)
        : text_(text), target_(target), code_(code), error_(error) {}

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
        if (!parse_integer(text_.peek().text, value))
            text_.refuse("expected an integer, found '" + std::string(text_.peek().text) + "'");
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

}  // namespace ftcuda::sim::ptx
