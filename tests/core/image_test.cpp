// Parameter layouts of images, well-formed and not.
#include "../check.hpp"

#include "../../src/ftcuda/_core/code/image.hpp"

#include <string>

namespace {

using namespace ftcuda::core;

constexpr const char* text = R"(
// comment with .entry inside
.version 8.8
.target sm_90, debug
.address_size 64
.visible .entry nothing()
{ ret; }
.weak .entry list /* one /* two */ (
    .param .u64 .ptr .global .align 16 list_param_0,
    .param .align 8 .b8 list_param_1[24], .param .f32 list_param_2,
    .param .u8 c, .param .align 2 .b8 half[2], .param .f64 d
)
.maxntid 128, 1, 1
{ ret; }
.visible .entry wide(.param .u8 a, .param .align 64 .b8 map[128]) { ret; }
)";

void ptx() {
    CHECK(image_kind(text) == ImageKind::ptx);
    CHECK(kernel_names(text) == (std::vector<std::string>{"nothing", "list", "wide"}));
    ParameterLayout layout;
    CHECK(parameter_layout(text, "nothing", layout) && layout.parameters.empty());
    CHECK(parameter_layout(text, "list", layout) && layout.offsets_known);
    const Parameter expected[] = {{0, 8, ParameterKind::integer},  {8, 24, ParameterKind::bytes},
                                  {32, 4, ParameterKind::float32}, {36, 1, ParameterKind::integer},
                                  {38, 2, ParameterKind::bytes},   {40, 8, ParameterKind::float64}};
    CHECK(layout.parameters.size() == std::size(expected));
    for (std::size_t index = 0; index < std::size(expected) && index < layout.parameters.size(); ++index) {
        CHECK(layout.parameters[index].offset == expected[index].offset);
        CHECK(layout.parameters[index].size == expected[index].size);
        CHECK(layout.parameters[index].kind == expected[index].kind);
    }
    CHECK(parameter_layout(text, "wide", layout) && !layout.offsets_known && layout.parameters[1].size == 128);
    CHECK(!parameter_layout(text, "absent", layout));
}

// Every prefix of an image, and every image with one byte changed, is answered without harm.
void malformed(std::string image) {
    ParameterLayout layout;
    for (std::size_t length = 0; length < image.size(); ++length) {
        is_whole(image.substr(0, length));
        parameter_layout(image.substr(0, length), "list", layout);
        kernel_names(image.substr(0, length));
    }
    for (std::size_t at = 0; at < image.size(); ++at) {
        for (const char byte : {'\0', '\xff', '(', '[', '"'}) {
            const char before = image[at];
            image[at] = byte;
            parameter_layout(image, "list", layout);
            image[at] = before;
        }
    }
    CHECK(true);
}

// A minimal cubin: one `.nv.info.list` section with two parameters, the second record first.
std::string cubin() {
    std::string image(0x40, '\0');
    const auto put = [&image](std::size_t offset, std::uint64_t value, std::size_t size) {
        if (image.size() < offset + size) image.resize(offset + size);
        for (std::size_t byte = 0; byte < size; ++byte) image[offset + byte] = static_cast<char>(value >> (8 * byte));
    };
    image.replace(0, 4,
                  "\x7f"
                  "ELF");
    put(0x12, 190, 2);
    put(0x28, 0x100, 8);  // section headers
    put(0x3a, 0x40, 2);
    put(0x3c, 2, 2);
    put(0x3e, 1, 2);
    const std::string names = std::string(1, '\0') + ".nv.info.list" + std::string(1, '\0');
    image.resize(0x200);
    image.replace(0x40, names.size(), names);
    const auto record = [&](std::size_t at, unsigned ordinal, unsigned offset, unsigned size) {
        put(at, 4, 1);
        put(at + 1, 0x17, 1);
        put(at + 2, 12, 2);
        put(at + 8, ordinal, 2);
        put(at + 10, offset, 2);
        put(at + 12, std::uint64_t{size} << 18 | 0x1f000, 4);
    };
    record(0x80, 1, 8, 24);
    record(0x90, 0, 0, 8);
    put(0x100, 1, 4);  // section 0: .nv.info.list
    put(0x104, 0x70000000, 4);
    put(0x118, 0x80, 8);
    put(0x120, 0x20, 8);
    put(0x158, 0x40, 8);  // section 1: names
    put(0x160, names.size(), 8);
    return image;
}

void elf() {
    const std::string image = cubin();
    ParameterLayout layout;
    CHECK(image_kind(image) == ImageKind::cubin);
    CHECK(parameter_layout(image, "list", layout));
    CHECK(layout.parameters.size() == 2 && layout.parameters[0].size == 8 && layout.parameters[1].offset == 8 &&
          layout.parameters[1].size == 24);
    CHECK(kernel_names(image) == std::vector<std::string>{"list"});
    malformed(image);
}

}  // namespace

int main() {
    ptx();
    malformed(text);
    elf();
    CHECK(image_kind("garbage") == ImageKind::unknown);
    CHECK(image_kind("\x50\xed\x55\xba") == ImageKind::fatbin);
    ParameterLayout layout;
    CHECK(!parameter_layout("\x50\xed\x55\xba", "list", layout));
    return ftcuda::test::report();
}
