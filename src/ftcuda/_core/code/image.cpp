#include "image.hpp"

#include "image_bytes.hpp"
#include "image_cubin.hpp"
#include "image_ptx.hpp"

namespace ftcuda::core {

namespace {

// A fatbin holds images for several architectures; the first uncompressed one tells the parameters of all. Layout of
// the container, as made by CUDA 11.8 to 13.5: a 16-byte header, then entries of a header (its size at byte 4, the
// padded payload size at 8, the compressed size at 16) and a payload.
std::string_view first_plain_image(std::string_view fatbin) noexcept {
    std::uint16_t header = 0;
    if (!read(fatbin, 6, header)) return {};
    std::size_t offset = header;
    for (;;) {
        std::uint32_t entry_header = 0;
        std::uint64_t payload = 0;
        std::uint32_t compressed = 0;
        if (!read(fatbin, offset + 4, entry_header) || !read(fatbin, offset + 8, payload) ||
            !read(fatbin, offset + 16, compressed))
            return {};
        if (entry_header == 0 || entry_header > fatbin.size() - offset) return {};
        const std::size_t begin = offset + entry_header;
        if (payload > fatbin.size() - begin) return {};
        const std::string_view image = fatbin.substr(begin, static_cast<std::size_t>(payload));
        const ImageKind kind = image_kind(image);
        if (compressed == 0 && (kind == ImageKind::ptx || kind == ImageKind::cubin)) return image;
        if (payload == 0) return {};
        offset = begin + static_cast<std::size_t>(payload);
    }
}

}  // namespace

ImageKind image_kind(std::string_view image) noexcept {
    constexpr std::string_view elf = "\177ELF";
    constexpr std::string_view fatbin = "\x50\xed\x55\xba";
    if (image.substr(0, elf.size()) == elf) return ImageKind::cubin;
    if (image.substr(0, fatbin.size()) == fatbin) return ImageKind::fatbin;
    return is_ptx(image) ? ImageKind::ptx : ImageKind::unknown;
}

bool is_whole(std::string_view image) noexcept {
    switch (image_kind(image)) {
    case ImageKind::cubin: return is_whole_cubin(image);
    case ImageKind::fatbin: {
        std::uint16_t header = 0;
        std::uint64_t entries = 0;
        return read(image, 6, header) && read(image, 8, entries) && header <= image.size() &&
               entries <= image.size() - header;
    }
    case ImageKind::ptx:
    case ImageKind::unknown: break;
    }
    return true;  // text ends with its terminator
}

bool parameter_layout(std::string_view image, std::string_view name, ParameterLayout& layout) {
    switch (image_kind(image)) {
    case ImageKind::ptx: return ptx_parameter_layout(image, name, layout);
    case ImageKind::cubin: return cubin_parameter_layout(image, name, layout);
    case ImageKind::fatbin: {
        const std::string_view plain = first_plain_image(image);
        return !plain.empty() && parameter_layout(plain, name, layout);
    }
    case ImageKind::unknown: break;
    }
    return false;
}

std::vector<std::string> kernel_names(std::string_view image) {
    switch (image_kind(image)) {
    case ImageKind::ptx: return ptx_kernel_names(image);
    case ImageKind::cubin: return cubin_kernel_names(image);
    case ImageKind::fatbin: {
        const std::string_view plain = first_plain_image(image);
        return plain.empty() ? std::vector<std::string>() : kernel_names(plain);
    }
    case ImageKind::unknown: break;
    }
    return {};
}

}  // namespace ftcuda::core
