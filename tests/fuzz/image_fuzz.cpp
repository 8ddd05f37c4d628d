// Whatever is loaded as an image, the core answers without harm.
#include "../../src/ftcuda/_core/code/image.hpp"

using namespace ftcuda::core;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string_view image(reinterpret_cast<const char*>(data), size);
    is_whole(image);
    ParameterLayout layout;
    for (const std::string& name : kernel_names(image)) parameter_layout(image, name, layout);
    parameter_layout(image, "k", layout);
    return 0;
}
