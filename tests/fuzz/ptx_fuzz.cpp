// Whatever is loaded as PTX, the simulated driver takes it or says in its log why not.
#include "../../src/simdriver/ptx/ptx.hpp"

#include <cstdlib>

using namespace ftcuda::sim::ptx;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    LoadError error = LoadError::none;
    std::string log;
    const auto program = Program::load(text, Target{90, 95}, error, log);
    if (program == nullptr && (error == LoadError::none || log.empty())) std::abort();
    return 0;
}
