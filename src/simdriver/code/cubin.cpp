#include "cubin.hpp"

#include <cstring>

namespace ftcuda::sim {

namespace {

// ELF-64, little-endian, as the System V ABI has it.
struct ElfHeader {
    unsigned char identification[16];
    std::uint16_t type;
    std::uint16_t machine;
    std::uint32_t version;
    std::uint64_t entry;
    std::uint64_t segments;
    std::uint64_t sections;
    std::uint32_t flags;
    std::uint16_t header_size;
    std::uint16_t segment_size;
    std::uint16_t segment_count;
    std::uint16_t section_size;
    std::uint16_t section_count;
    std::uint16_t names_index;
};

struct Section {
    std::uint32_t name;
    std::uint32_t type;
    std::uint64_t flags;
    std::uint64_t address;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint32_t link;
    std::uint32_t info;
    std::uint64_t alignment;
    std::uint64_t entry_size;
};

static_assert(sizeof(ElfHeader) == 64 && sizeof(Section) == 64, "as in the file");

constexpr char elf_magic[] = "\177ELF\2\1";  // 64 bits, little-endian
constexpr std::uint16_t machine_cuda = 190;
constexpr std::uint32_t type_program_bits = 1;
constexpr std::uint32_t type_strings = 3;
constexpr char section_name[] = ".ftcuda.ptx";  // its zero is part of it

bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) noexcept {
    return offset <= size && bytes <= size - offset;
}

bool read_header(const char* image, std::uint64_t size, ElfHeader& header) noexcept {
    if (size < sizeof header || std::memcmp(image, elf_magic, sizeof elf_magic - 1) != 0) return false;
    std::memcpy(&header, image, sizeof header);
    return header.machine == machine_cuda && header.section_size == sizeof(Section) &&
           header.names_index < header.section_count &&
           fits(header.sections, std::uint64_t{sizeof(Section)} * header.section_count, size);
}

Section section_at(const char* image, const ElfHeader& header, unsigned index) noexcept {
    Section section;
    std::memcpy(&section, image + header.sections + std::size_t{sizeof section} * index, sizeof section);
    return section;
}

// Where the number of an architecture stands in the flags: measured on cubins of CUDA 11.8 and 12.9 (version 7), and of
// 13.5 (version 8).
unsigned architecture_of(const ElfHeader& header) noexcept {
    constexpr int abi_version = 8;
    return header.identification[abi_version] >= 8 ? header.flags >> 8 & 0xff : header.flags & 0xff;
}

void pad(std::string& bytes) { bytes.resize((bytes.size() + 7) / 8 * 8); }

}  // namespace

bool is_elf(const char* image) noexcept { return std::memcmp(image, elf_magic, 4) == 0; }

bool read_cubin(const char* image, std::uint64_t size, Cubin& cubin) noexcept {
    ElfHeader header;
    if (!read_header(image, size, header)) return false;
    cubin.architecture = architecture_of(header);
    const Section names = section_at(image, header, header.names_index);
    if (names.type != type_strings || !fits(names.offset, names.size, size)) return false;
    for (unsigned index = header.section_count; index-- != 0;) {  // ours is the last
        const Section section = section_at(image, header, index);
        if (section.type != type_program_bits || !fits(section.name, sizeof section_name, names.size)) continue;
        if (std::memcmp(image + names.offset + section.name, section_name, sizeof section_name) != 0) continue;
        if (section.size == 0 || !fits(section.offset, section.size, size)) return false;
        if (image[section.offset + section.size - 1] != '\0') return false;
        cubin.ptx = image + section.offset;
        break;
    }
    return true;
}

// The file stays as it is, so that what stands in it by offsets keeps its place. Behind it come the names once more
// with one at their end, the PTX, and the table of sections once more with two rows changed or new.
std::string add_ptx(std::string_view cubin, std::string_view ptx) {
    ElfHeader header;
    if (!read_header(cubin.data(), cubin.size(), header)) return {};
    Section names = section_at(cubin.data(), header, header.names_index);
    if (names.type != type_strings || !fits(names.offset, names.size, cubin.size())) return {};
    std::string bytes(cubin);
    pad(bytes);

    Section added{};
    added.name = static_cast<std::uint32_t>(names.size);
    added.type = type_program_bits;
    added.alignment = 1;
    const std::string_view old_names = cubin.substr(names.offset, names.size);
    names.offset = bytes.size();
    names.size += sizeof section_name;
    bytes.append(old_names).append(section_name, sizeof section_name);

    added.offset = bytes.size();
    bytes.append(ptx.substr(0, ptx.find('\0')));
    bytes.push_back('\0');
    added.size = bytes.size() - added.offset;
    pad(bytes);

    const std::uint64_t table = bytes.size();
    bytes.append(cubin.substr(header.sections, sizeof(Section) * header.section_count));
    std::memcpy(bytes.data() + table + sizeof names * header.names_index, &names, sizeof names);
    bytes.append(reinterpret_cast<const char*>(&added), sizeof added);
    header.sections = table;
    ++header.section_count;
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

}  // namespace ftcuda::sim
