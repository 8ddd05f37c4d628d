#include "image_cubin.hpp"

#include "image_bytes.hpp"

#include <algorithm>

namespace ftcuda::core {

namespace {

constexpr std::uint16_t machine_cuda = 190;
constexpr std::uint32_t section_info = 0x70000000;
constexpr std::uint32_t section_symbols = 2;  // SHT_SYMTAB
constexpr std::size_t symbol_size = 24;
constexpr std::uint8_t symbol_is_function = 2;   // STT_FUNC, in the lower half of st_info
constexpr std::uint8_t symbol_is_kernel = 0x10;  // in st_other, as measured on cubins of CUDA 13.5
constexpr std::string_view info_prefix = ".nv.info.";

// Attributes of `.nv.info`, as measured on cubins of CUDA 11.8, 12.9 and 13.5; the others are skipped by their length.
constexpr std::uint8_t format_sized = 4;
constexpr std::uint8_t attribute_parameter = 0x17;
constexpr std::uint8_t attribute_parameter_v2 = 0x45;

std::string_view slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) noexcept {
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return bytes.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

// The sections of a cubin; none where `elf` is something else.
class Sections {
public:
    struct Section {
        std::string_view name;
        std::uint32_t type;
        std::string_view bytes;
    };

    explicit Sections(std::string_view elf) noexcept : elf_(elf) {
        std::uint16_t machine = 0;
        std::uint16_t names_index = 0;
        if (!read(elf, 0x12, machine) || machine != machine_cuda) return;
        if (!read(elf, 0x28, table_) || !read(elf, 0x3a, entry_size_) || !read(elf, 0x3c, count_) ||
            !read(elf, 0x3e, names_index) || entry_size_ < 0x40) {
            count_ = 0;
            return;
        }
        names_ = content(header(names_index));
    }

    // Calls visit(section) for every section until it returns true.
    template <class Visitor>
    bool find(Visitor visit) const {
        for (std::size_t index = 0; index < count_; ++index) {
            const std::string_view section = header(index);
            std::uint32_t name = 0;
            std::uint32_t type = 0;
            if (!read(section, 0, name) || !read(section, 4, type)) continue;
            if (visit(Section{text_at(names_, name), type, content(section)})) return true;
        }
        return false;
    }

    // Of a table of strings.
    static std::string_view text_at(std::string_view texts, std::size_t offset) noexcept {
        if (offset >= texts.size()) return {};
        const std::string_view rest = texts.substr(offset);
        return rest.substr(0, rest.find('\0'));
    }

private:
    std::string_view header(std::size_t index) const noexcept {
        return slice(elf_, table_ + std::uint64_t{entry_size_} * index, entry_size_);
    }

    std::string_view content(std::string_view section) const noexcept {
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        return read(section, 0x18, offset) && read(section, 0x20, size) ? slice(elf_, offset, size)
                                                                        : std::string_view();
    }

    const std::string_view elf_;
    std::string_view names_;
    std::uint64_t table_ = 0;
    std::uint16_t entry_size_ = 0;
    std::uint16_t count_ = 0;
};

// Calls visit(kernel, info) for every `.nv.info.<kernel>` section until it returns true. There are such sections of
// other functions too, where these are relocatable.
template <class Visitor>
bool find_info(std::string_view elf, Visitor visit) {
    return Sections(elf).find([&](const Sections::Section& section) {
        if (section.type != section_info || section.name.substr(0, info_prefix.size()) != info_prefix) return false;
        return visit(section.name.substr(info_prefix.size()), section.bytes);
    });
}

// The functions that are no kernels, as far as the table of symbols tells.
std::vector<std::string_view> other_functions(std::string_view elf) {
    std::string_view symbols;
    std::string_view texts;
    Sections(elf).find([&](const Sections::Section& section) {
        if (section.type == section_symbols) symbols = section.bytes;
        if (section.name == ".strtab") texts = section.bytes;
        return false;
    });
    std::vector<std::string_view> found;
    for (std::size_t at = 0; at + symbol_size <= symbols.size(); at += symbol_size) {
        std::uint32_t name = 0;
        std::uint8_t kind = 0;
        std::uint8_t other = 0;
        if (!read(symbols, at, name) || !read(symbols, at + 4, kind) || !read(symbols, at + 5, other)) break;
        if ((kind & 0xf) == symbol_is_function && (other & symbol_is_kernel) == 0)
            found.push_back(Sections::text_at(texts, name));
    }
    return found;
}

struct OrderedParameter {
    std::uint16_t ordinal;
    Parameter parameter;
};

bool read_parameter(std::string_view record, bool second_version, OrderedParameter& result) noexcept {
    std::uint16_t offset = 0;
    if (!read(record, 4, result.ordinal) || !read(record, 6, offset)) return false;
    result.parameter.offset = offset;
    if (second_version) {
        std::uint16_t size = 0;
        if (!read(record, 8, size)) return false;
        result.parameter.size = size;
        return true;
    }
    std::uint32_t packed = 0;
    if (!read(record, 8, packed)) return false;
    result.parameter.size = packed >> 18;
    return true;
}

bool read_parameters(std::string_view info, std::vector<OrderedParameter>& parameters) {
    std::size_t offset = 0;
    while (offset + 4 <= info.size()) {
        const std::uint8_t format = static_cast<std::uint8_t>(info[offset]);
        const std::uint8_t attribute = static_cast<std::uint8_t>(info[offset + 1]);
        std::uint16_t length = 0;
        if (!read(info, offset + 2, length)) return false;
        offset += 4;
        if (format != format_sized) continue;  // the value is in the two bytes just read
        const std::string_view record = slice(info, offset, length);
        if (record.size() != length) return false;
        if (attribute == attribute_parameter || attribute == attribute_parameter_v2) {
            OrderedParameter parameter{};
            if (!read_parameter(record, attribute == attribute_parameter_v2, parameter)) return false;
            parameters.push_back(parameter);
        }
        offset += length;
    }
    return true;
}

}  // namespace

bool is_whole_cubin(std::string_view elf) noexcept {
    constexpr std::uint32_t section_without_content = 8;  // SHT_NOBITS
    const auto fits = [&](std::uint64_t offset, std::uint64_t size) {
        return offset <= elf.size() && size <= elf.size() - offset;
    };
    std::uint64_t segments = 0;
    std::uint64_t sections = 0;
    std::uint16_t segment_size = 0;
    std::uint16_t segment_count = 0;
    std::uint16_t section_size = 0;
    std::uint16_t section_count = 0;
    if (!read(elf, 0x20, segments) || !read(elf, 0x28, sections) || !read(elf, 0x36, segment_size) ||
        !read(elf, 0x38, segment_count) || !read(elf, 0x3a, section_size) || !read(elf, 0x3c, section_count)) {
        return false;
    }
    if (!fits(segments, std::uint64_t{segment_size} * segment_count) ||
        !fits(sections, std::uint64_t{section_size} * section_count)) {
        return false;
    }
    for (std::size_t index = 0; index < section_count; ++index) {
        const std::string_view section = slice(elf, sections + std::uint64_t{section_size} * index, section_size);
        std::uint32_t type = 0;
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        if (!read(section, 4, type) || !read(section, 0x18, offset) || !read(section, 0x20, size)) return false;
        if (type != section_without_content && !fits(offset, size)) return false;
    }
    return true;
}

bool cubin_parameter_layout(std::string_view cubin, std::string_view name, ParameterLayout& layout) {
    std::vector<OrderedParameter> parameters;
    bool understood = false;
    const bool found = find_info(cubin, [&](std::string_view kernel, std::string_view info) {
        if (kernel != name) return false;
        understood = read_parameters(info, parameters);
        return true;
    });
    if (!found || !understood) return false;
    std::sort(parameters.begin(), parameters.end(), [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
    layout = {};
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        if (parameters[index].ordinal != index) return false;
        layout.parameters.push_back(parameters[index].parameter);
    }
    return true;
}

std::vector<std::string> cubin_kernel_names(std::string_view cubin) {
    const std::vector<std::string_view> others = other_functions(cubin);
    std::vector<std::string> names;
    find_info(cubin, [&](std::string_view function, std::string_view) {
        if (std::find(others.begin(), others.end(), function) == others.end()) names.emplace_back(function);
        return false;
    });
    return names;
}

}  // namespace ftcuda::core
