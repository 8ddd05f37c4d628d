#include "text.hpp"

#include <algorithm>
#include <charconv>

namespace ftcuda::sim::ptx {

namespace {

bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%' || c == '.';
}

}  // namespace

Text::Text(std::string_view text) {
    text = text.substr(0, text.find('\0'));
    int line = 1;
    std::size_t at = 0;
    const auto advance_to = [&](std::size_t end) {
        for (; at < end; ++at) line += text[at] == '\n' ? 1 : 0;
    };
    while (at < text.size()) {
        const char c = text[at];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            advance_to(at + 1);
        } else if (text.compare(at, 2, "//") == 0) {
            advance_to(std::min(text.find('\n', at), text.size()));
        } else if (text.compare(at, 2, "/*") == 0) {
            const std::size_t end = text.find("*/", at + 2);
            advance_to(end == std::string_view::npos ? text.size() : end + 2);
        } else if (c == '"') {
            const std::size_t end = std::min(text.find('"', at + 1), text.size());
            tokens_.push_back({text.substr(at + 1, end - at - 1), line, true});
            advance_to(std::min(end + 1, text.size()));
        } else if (is_word(c)) {
            std::size_t end = at + 1;
            while (end < text.size() && (is_word(text[end]) || (text.compare(end, 2, "::") == 0 && text[at] != '$'))) {
                end += text[end] == ':' ? 2 : 1;
            }
            tokens_.push_back({text.substr(at, end - at), line, false});
            at = end;
        } else {
            tokens_.push_back({text.substr(at, 1), line, false});
            ++at;
        }
    }
    tokens_.push_back({{}, line, false});
}

const Token& Text::peek(std::size_t ahead) const noexcept { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }

Token Text::next() noexcept {
    const Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
}

bool Text::accept(std::string_view text) noexcept {
    if (peek().quoted || peek().text != text || text.empty()) return false;
    next();
    return true;
}

void Text::expect(std::string_view text) {
    if (!accept(text)) refuse("expected '" + std::string(text) + "', found '" + std::string(peek().text) + "'");
}

void Text::skip_line() noexcept {
    const int line = at_ == 0 ? 0 : tokens_[at_ - 1].line;
    while (!peek().text.empty() && peek().line == line) next();
}

void Text::skip_braces() {
    expect("{");
    for (int depth = 1; depth != 0;) {
        const Token token = next();
        if (token.text.empty() && !token.quoted) refuse("a '{' without its '}'");
        if (!token.quoted && token.text == "{") ++depth;
        if (!token.quoted && token.text == "}") --depth;
    }
}

void Text::refuse(const std::string& what) const { throw Refusal{false, peek().line, what}; }

bool parse_integer(std::string_view word, long long& value) noexcept {
    const bool negative = !word.empty() && word[0] == '-';
    if (negative) word.remove_prefix(1);
    if (!word.empty() && (word.back() == 'U' || word.back() == 'u')) word.remove_suffix(1);
    int base = 10;
    if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
        base = 16;
        word.remove_prefix(2);
    } else if (word.size() > 1 && word[0] == '0') {
        base = 8;
    }
    unsigned long long bits = 0;
    const auto result = std::from_chars(word.data(), word.data() + word.size(), bits, base);
    if (result.ec != std::errc() || result.ptr != word.data() + word.size() || word.empty()) return false;
    value = static_cast<long long>(negative ? 0 - bits : bits);
    return true;
}

}  // namespace ftcuda::sim::ptx
