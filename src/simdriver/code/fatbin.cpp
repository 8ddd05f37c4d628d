#include "fatbin.hpp"

#include <cstring>

namespace ftcuda::sim {

namespace {

// As nvcc of CUDA 11.8 to 13.5 writes them, little-endian.
struct FatbinHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_size;
    std::uint64_t size;  // of the entries behind it
};

struct Entry {
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t header_size;
    std::uint64_t size;  // of the payload behind it
    std::uint32_t compressed_size;
    std::uint32_t options_offset;
    std::uint16_t minor;
    std::uint16_t major;
    std::uint32_t arch;
};

constexpr std::uint32_t fatbin_magic = 0xba55'ed50;
constexpr std::uint16_t kind_ptx = 1;

}  // namespace

bool is_fatbin(const char* image) noexcept { return std::memcmp(image, &fatbin_magic, sizeof fatbin_magic) == 0; }

std::string ptx_of_fatbin(const char* image, unsigned compute_capability, std::string& log) {
    FatbinHeader header;
    std::memcpy(&header, image, sizeof header);
    std::string best;
    unsigned best_arch = 0;
    bool compressed = false;
    const char* at = image + header.header_size;
    std::uint64_t left = header.size;
    while (left >= sizeof(Entry)) {
        Entry entry;
        std::memcpy(&entry, at, sizeof entry);
        if (entry.header_size < sizeof entry || entry.header_size > left || entry.size > left - entry.header_size)
            break;
        if (entry.kind == kind_ptx && entry.arch <= compute_capability && entry.arch >= best_arch) {
            compressed = entry.compressed_size != 0;
            if (!compressed) {
                best.assign(at + entry.header_size, static_cast<std::size_t>(entry.size));
                best_arch = entry.arch;
            }
        }
        at += entry.header_size + entry.size;
        left -= entry.header_size + entry.size;
    }
    if (best.empty()) {
        log = compressed ? "the simulated driver does not unpack compressed fatbins: make them with --no-compress"
                         : "the fatbin holds no PTX for this device, and the simulated driver runs PTX only";
    }
    return best;
}

}  // namespace ftcuda::sim
