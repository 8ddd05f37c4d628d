#include "image_cubin.hpp"

#include "image_bytes.hpp"

#include <algorithm>

namespace ftcuda::core {

namespace {

constexpr std::uint16_t machine_cuda = 190;
constexpr std::uint32_t section_info = 0x70000000;
constexpr std::string_view info_prefix = ".nv.info.";

// Attributes of `.nv.info`, as measured on cubins of CUDA 11.8, 12.9 and 13.5; the others are skipped by their length.
constexpr std::uint8_t format_sized = 4;
constexpr std::uint8_t attribute_parameter = 0x17;
constexpr std::uint8_t attribute_parameter_v2 = 0x45;

std::string_view slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) noexcept {
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return bytes.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

struct Section {
    std::string_view name;
    std::string_view bytes;
};

// Calls visit(section) for every `.nv.info.<kernel>` section until it returns true.
template <class Visitor>
bool find_info(std::string_view elf, Visitor visit) {
    std::uint16_t machine = 0;
    std::uint64_t table = 0;
    std::uint16_t entry_size = 0;
    std::uint16_t count = 0;
    std::uint16_t names_index = 0;
    if (!read(elf, 0x12, machine) || machine != machine_cuda) return false;
    if (!read(elf, 0x28, table) || !read(elf, 0x3a, entry_size) || !read(elf, 0x3c, count) ||
        !read(elf, 0x3e, names_index))
        return false;
    if (entry_size < 0x40) return false;
    const auto header = [&](std::size_t index) {
        return slice(elf, table + std::uint64_t{entry_size} * index, entry_size);
    };
    const auto content = [&](std::string_view section) {
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        return read(section, 0x18, offset) && read(section, 0x20, size) ? slice(elf, offset, size) : std::string_view();
    };
    const std::string_view names = content(header(names_index));
    for (std::size_t index = 0; index < count; ++index) {
        const std::string_view section = header(index);
        std::uint32_t name_offset = 0;
        std::uint32_t type = 0;
        if (!read(section, 0, name_offset) || !read(section, 4, type) || type != section_info) continue;
        if (name_offset >= names.size()) continue;
        const std::string_view rest = names.substr(name_offset);
        const std::string_view name = rest.substr(0, rest.find('\0'));
        if (name.substr(0, info_prefix.size()) != info_prefix) continue;
        if (visit(Section{name.substr(info_prefix.size()), content(section)})) return true;
    }
    return false;
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
    const bool found = find_info(cubin, [&](const Section& section) {
        if (section.name != name) return false;
        understood = read_parameters(section.bytes, parameters);
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
    std::vector<std::string> names;
    find_info(cubin, [&](const Section& section) {
        names.emplace_back(section.name);
        return false;
    });
    return names;
}

}  // namespace ftcuda::core
