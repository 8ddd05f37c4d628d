#include "image_ptx.hpp"

#include <charconv>

namespace ftcuda::core {

namespace {

// The tokens of PTX that matter here: words (with a leading '.', or names, or numbers) and single characters. Comments,
// white space and quoted strings are passed over.
class Tokens {
public:
    explicit Tokens(std::string_view text) noexcept : text_(text.substr(0, text.find('\0'))) {}

    // Empty at the end of the text.
    std::string_view next() noexcept {
        skip();
        if (at_ == text_.size()) return {};
        const std::size_t begin = at_++;
        if (is_word(text_[begin])) {
            while (at_ < text_.size() && is_word(text_[at_]) && text_[at_] != '.') ++at_;
        }
        return text_.substr(begin, at_ - begin);
    }

private:
    static bool is_word(char c) noexcept {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
               c == '%' || c == '.';
    }

    void skip() noexcept {
        while (at_ < text_.size()) {
            const std::string_view rest = text_.substr(at_);
            if (rest.substr(0, 2) == "//") {
                advance(rest.find('\n'), 0);
            } else if (rest.substr(0, 2) == "/*") {
                advance(rest.find("*/", 2), 2);
            } else if (rest[0] == '"') {
                advance(rest.find('"', 1), 1);
            } else if (rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r') {
                ++at_;
            } else {
                return;
            }
        }
    }

    void advance(std::size_t found, std::size_t past) noexcept {
        at_ = found == std::string_view::npos ? text_.size() : at_ + found + past;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool number(std::string_view word, std::uint32_t& value) noexcept {
    const auto result = std::from_chars(word.data(), word.data() + word.size(), value);
    return result.ec == std::errc() && result.ptr == word.data() + word.size();
}

struct ScalarType {
    std::string_view name;
    std::uint32_t size;
    ParameterKind kind;
};

constexpr ScalarType scalar_types[] = {
    {".b8", 1, ParameterKind::integer},  {".u8", 1, ParameterKind::integer},  {".s8", 1, ParameterKind::integer},
    {".b16", 2, ParameterKind::integer}, {".u16", 2, ParameterKind::integer}, {".s16", 2, ParameterKind::integer},
    {".b32", 4, ParameterKind::integer}, {".u32", 4, ParameterKind::integer}, {".s32", 4, ParameterKind::integer},
    {".b64", 8, ParameterKind::integer}, {".u64", 8, ParameterKind::integer}, {".s64", 8, ParameterKind::integer},
    {".f16", 2, ParameterKind::bytes},   {".f32", 4, ParameterKind::float32}, {".f64", 8, ParameterKind::float64},
};

// One parameter, from behind its ".param" to the "," or ")" that ends it. For instance
//     .align 8 .b8 name[24]      .u64 .ptr .global .align 16 name      .f32 name
bool read_parameter(Tokens& tokens, std::string_view& end, Parameter& parameter, std::uint32_t& alignment) {
    const ScalarType* type = nullptr;
    bool pointer = false;
    std::uint32_t declared_alignment = 0;
    std::uint32_t length = 0;
    bool array = false;
    for (;;) {
        const std::string_view token = tokens.next();
        if (token.empty()) return false;
        if (token == "," || token == ")") {
            end = token;
            break;
        }
        if (token == ".align") {
            std::uint32_t value = 0;
            if (!number(tokens.next(), value) || value == 0) return false;
            if (!pointer) declared_alignment = value;  // behind .ptr it is the alignment of what is pointed to
        } else if (token == ".ptr") {
            pointer = true;
        } else if (token == "[") {
            if (!number(tokens.next(), length) || tokens.next() != "]") return false;
            array = true;
        } else if (token[0] == '.') {
            for (const ScalarType& candidate : scalar_types) {
                if (candidate.name == token) type = &candidate;
            }
        }
    }
    if (type == nullptr || length > 0x10000) return false;
    parameter.size = array ? type->size * length : type->size;
    parameter.kind = array ? ParameterKind::bytes : type->kind;
    alignment = declared_alignment != 0 ? declared_alignment : type->size;
    return true;
}

bool read_parameters(Tokens& tokens, ParameterLayout& layout) {
    layout = {};
    std::uint64_t offset = 0;
    std::string_view token = tokens.next();
    while (token == ".param") {
        Parameter parameter;
        std::uint32_t alignment = 1;
        if (!read_parameter(tokens, token, parameter, alignment)) return false;
        if (alignment > 16) layout.offsets_known = false;
        offset = (offset + alignment - 1) / alignment * alignment;
        if (offset > 0xffff) return false;
        parameter.offset = static_cast<std::uint32_t>(offset);
        offset += parameter.size;
        layout.parameters.push_back(parameter);
        if (token == ",") token = tokens.next();
    }
    return token == ")";
}

}  // namespace

bool is_ptx(std::string_view text) noexcept { return Tokens(text).next() == ".version"; }

bool ptx_parameter_layout(std::string_view text, std::string_view name, ParameterLayout& layout) {
    Tokens tokens(text);
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token != ".entry" || tokens.next() != name) continue;
        const std::string_view after = tokens.next();
        if (after == "(") return read_parameters(tokens, layout);
        layout = {};
        return true;  // a kernel without a parameter list
    }
    return false;
}

std::vector<std::string> ptx_kernel_names(std::string_view text) {
    std::vector<std::string> names;
    Tokens tokens(text);
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == ".entry") names.emplace_back(tokens.next());
    }
    return names;
}

}  // namespace ftcuda::core
