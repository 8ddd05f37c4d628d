// Device printf: the format is in memory that the kernel can reach, the arguments are packed behind one another.
#include "machine.hpp"

#include <algorithm>
#include <cstdio>

namespace ftcuda::sim::ptx {

namespace {

constexpr std::size_t text_limit = 4096;  // of a format or a string argument

bool read_string(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t address, std::string& text) {
    while (text.size() < text_limit) {
        const std::byte* const place = reach(warp, instruction, lane, Space::generic, address++, 1, Access::read);
        if (place == nullptr) return false;
        if (*place == std::byte{0}) return true;
        text.push_back(static_cast<char>(*place));
    }
    return true;
}

}  // namespace

bool print_formatted(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t format,
                     std::uint64_t arguments, std::string& text) {
    std::string pattern;
    if (!read_string(warp, instruction, lane, format, pattern)) return false;
    const auto next = [&](std::size_t size, std::uint64_t& bits) {
        arguments = (arguments + size - 1) / size * size;
        const std::byte* const place = reach(warp, instruction, lane, Space::generic, arguments, size, Access::read);
        if (place == nullptr) return false;
        bits = 0;
        std::memcpy(&bits, place, size);
        arguments += size;
        return true;
    };
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '%') {
            text.push_back(pattern[at]);
            continue;
        }
        std::size_t end = at + 1;
        while (end < pattern.size() &&
               std::string_view("-+ #0123456789.lhzjt").find(pattern[end]) != std::string_view::npos)
            ++end;
        if (end == pattern.size()) break;
        std::string directive = pattern.substr(at, end - at);
        const char conversion = pattern[end];
        at = end;
        if (conversion == '%') {
            text.push_back('%');
            continue;
        }
        // Widths are ours: the argument decides its size, not the host's idea of "l".
        const bool wide = directive.find_first_of("lzjt") != std::string::npos;
        directive.erase(
            std::remove_if(directive.begin(), directive.end(),
                           [](char c) { return std::string_view("lhzjt").find(c) != std::string_view::npos; }),
            directive.end());
        char piece[512];
        std::uint64_t bits = 0;
        switch (conversion) {
        case 'd':
        case 'i':
            if (!next(wide ? 8 : 4, bits)) return false;
            std::snprintf(
                piece, sizeof piece, (directive + "lld").c_str(),
                wide ? static_cast<long long>(bits) : static_cast<long long>(static_cast<std::int32_t>(bits)));
            break;
        case 'u':
        case 'x':
        case 'X':
        case 'o':
            if (!next(wide ? 8 : 4, bits)) return false;
            std::snprintf(piece, sizeof piece, (directive + "ll" + conversion).c_str(),
                          static_cast<unsigned long long>(bits));
            break;
        case 'c':
            if (!next(4, bits)) return false;
            std::snprintf(piece, sizeof piece, (directive + "c").c_str(), static_cast<int>(bits));
            break;
        case 'p':
            if (!next(8, bits)) return false;
            std::snprintf(piece, sizeof piece, "0x%llx", static_cast<unsigned long long>(bits));
            break;
        case 's': {
            std::string string;
            if (!next(8, bits) || !read_string(warp, instruction, lane, bits, string)) return false;
            std::snprintf(piece, sizeof piece, (directive + "s").c_str(), string.c_str());
            break;
        }
        case 'f':
        case 'F':
        case 'e':
        case 'E':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            if (!next(8, bits)) return false;
            std::snprintf(piece, sizeof piece, (directive + conversion).c_str(), get<double>(bits));
            break;
        default: std::snprintf(piece, sizeof piece, "%s%c", directive.c_str(), conversion);
        }
        text += piece;
    }
    return true;
}

}  // namespace ftcuda::sim::ptx
