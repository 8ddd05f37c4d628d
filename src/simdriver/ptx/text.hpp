// PTX text as tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ftcuda::sim::ptx {

struct Token {
    std::string_view text;  // empty at the end
    int line = 0;
    bool quoted = false;
};

// A failure to understand the text: thrown inside the front end only, caught by Program::load.
struct Refusal {
    bool unsupported;  // else a syntax error
    int line;
    std::string what;
};

// Words hold letters, digits and _ $ % . and "::"; everything else is a token of one character. Comments and white
// space are passed over.
class Text {
public:
    explicit Text(std::string_view text);

    const Token& peek(std::size_t ahead = 0) const noexcept;
    Token next() noexcept;
    bool accept(std::string_view text) noexcept;
    void expect(std::string_view text);
    void skip_line() noexcept;  // to the end of the line of the token before
    void skip_braces();
    std::size_t place() const noexcept { return at_; }
    void return_to(std::size_t place) noexcept { at_ = place; }  // from "{" to its "}"
    [[noreturn]] void refuse(const std::string& what) const;

private:
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
};

// "12", "-3", "0x1f", "4294967295U" as 64 bits. False when `word` is no integer.
bool parse_integer(std::string_view word, long long& value) noexcept;

}  // namespace ftcuda::sim::ptx
