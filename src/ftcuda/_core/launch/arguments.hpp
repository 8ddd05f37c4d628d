// The arguments of a launch: their bytes, where the kernel's layout has them (code/argument_layout.hpp), and what they
// use.
#pragma once

#include "../memory/operands.hpp"
#include "tensor_map.hpp"

namespace ftcuda::core {

// What one argument is, beside its bytes.
struct Argument {
    static constexpr int any_device = -1;

    Buffer* buffer = nullptr;  // null: a value, memory that is not ours, or a tensor map
    TensorMap* map = nullptr;  // a launch reads it as it is then, and its memory; null for what is no tensor map
    int device = any_device;   // the one that it is for
    bool foreign = false;      // memory that is not ours: what holds it is retained until the work is done
};

// Of one launch, and its own until the driver has them.
struct Arguments {
    struct Mapped {
        std::size_t index;
        TensorMap* map;
    };

    // One for each parameter of the kernel, which points to its bytes; not set for tensor maps, which ReadMaps sets.
    void** parameters = nullptr;
    Operands operands;
    const Mapped* maps = nullptr;
    std::size_t map_count = 0;
};

// Reads tensor maps for one launch: to `arguments` come the bytes of this moment, and the memory behind them. One that
// is given twice is the same in both places, whatever another thread makes of it in between.
class ReadMaps {
public:
    ReadMaps(const Arguments& arguments, std::size_t parameter_count);
    ReadMaps(const ReadMaps&) = delete;
    ReadMaps& operator=(const ReadMaps&) = delete;

    const Arguments& arguments() const noexcept { return arguments_; }

private:
    std::vector<void*> parameters_;
    std::vector<Buffer*> buffers_;
    std::vector<Ref<TensorMapState>> states_;  // which hold the memory behind them until the driver has been called
    deferred_release::Retention foreign_;
    Arguments arguments_;
};

}  // namespace ftcuda::core
