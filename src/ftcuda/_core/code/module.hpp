// A kernel image and the modules it becomes: loaded on a device at the first need, by one thread, while others wait.
#pragma once

#include "../device/context.hpp"
#include "../sync/ref.hpp"

#include <array>
#include <string>
#include <vector>

namespace ftcuda::core {

class Module final : public Shared {
public:
    // `image` is PTX text, a cubin or a fatbin. `signatures` is PTX of the same kernels, or empty: it tells the types
    // of parameters where the image tells only sizes.
    static Ref<Module> make(std::string image, std::string signatures);

    const std::string& image() const noexcept { return image_; }
    const std::string& signatures() const noexcept { return signatures_.empty() ? image_ : signatures_; }

    // Whether the driver takes cubins for the context's device. It is asked by offering it one, which is let go at
    // once, and its answer is kept: `is_known` is false until somebody has asked.
    static bool accepts_cubins(Context& context, bool& is_known) noexcept;
    static Status offer_cubin(Context& context, std::string cubin, bool& is_taken);

    // The device on which the module was loaded first, which it is by now: the same for all of its kernels.
    Context& home() EXCLUDES(mutex_);

    // With the module loaded on the context's device; `log` gets the driver's own words when loading fails.
    Status function(Context& context, const char* name, abi::CUfunction& function, std::string& log);
    Status global(Context& context, const char* name, abi::CUdeviceptr& pointer, std::size_t& bytes, std::string& log);

private:
    enum class Progress : unsigned char { absent, loading, loaded };
    struct Slot {
        Progress progress = Progress::absent;
        abi::CUmodule cu_module = nullptr;
        Context* context = nullptr;
    };

    Module(std::string image, std::string signatures) noexcept
        : image_(std::move(image)), signatures_(std::move(signatures)) {}
    ~Module() override;

    Status load(Context& context, abi::CUmodule& cu_module, std::string& log) EXCLUDES(mutex_);
    Status load_image(Context& context, abi::CUmodule& cu_module, std::string& log) noexcept;

    // Constant after construction.
    const std::string image_;
    const std::string signatures_;

    // Guarded by mutex_, which is not held while the driver loads: that may take seconds.
    Mutex mutex_{Rank::module};
    Condition loaded_;
    std::array<Slot, Device::limit> slots_ GUARDED_BY(mutex_);
    Context* home_ GUARDED_BY(mutex_) = nullptr;  // set by the first load that succeeds
};

}  // namespace ftcuda::core
