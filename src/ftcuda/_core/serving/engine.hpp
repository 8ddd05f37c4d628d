// What computes batches: it has lanes, each for one batch at a time.
#pragma once

#include "slab.hpp"

namespace ftcuda::core::serving {

class Engine {
public:
    Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    virtual ~Engine() = default;

    // By the dispatcher's thread alone.
    //
    // Begins with the first rows of a slab, as many as the batch size says, in a lane that is free. What fails is told
    // to who asks, once nothing that was begun uses the slab any more.
    virtual void launch(std::size_t lane, Slab& slab, std::size_t size) noexcept = 0;
    // What became of it; CUDA_ERROR_NOT_READY until it is over. `cause`: what has raised, for `raised`.
    virtual Status ask(std::size_t lane, Ref<Shared>& cause) noexcept = 0;
    // Whether no batch can be computed any more.
    virtual bool is_lost() const noexcept { return false; }
};

}  // namespace ftcuda::core::serving
