// Whatever a file has in it, the simulated driver reads no byte outside of it, and PTX that is added is read again.
#include "../../src/simdriver/code/cubin.hpp"

#include <cstdlib>

using namespace ftcuda::sim;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string image(reinterpret_cast<const char*>(data), size);
    Cubin cubin;
    const bool whole = read_cubin(image.data(), image.size(), cubin);
    if (whole && cubin.ptx != nullptr && std::string(cubin.ptx).size() >= size) std::abort();
    const std::string_view ptx = ".version 8.0\n";
    const std::string carrier = add_ptx(image, ptx);
    if (carrier.empty() || !whole) return 0;
    Cubin read;
    if (!read_cubin(carrier.data(), carrier.size(), read) || read.ptx == nullptr) std::abort();
    if (read.ptx != ptx || read.architecture != cubin.architecture) std::abort();
    return 0;
}
