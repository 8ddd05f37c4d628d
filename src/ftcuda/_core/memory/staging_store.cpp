#include "staging_store.hpp"

#include "../../_driver/memory_marking.hpp"
#include "../../_driver/table.hpp"
#include "../completion/context_wait.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "cache.hpp"

#include <algorithm>
#include <utility>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

constexpr Status not_ready = Status::from_driver(CUDA_ERROR_NOT_READY, Entry::cuEventQuery);

// Few sizes, so that what was given back fits who comes next.
std::size_t rounded(std::size_t bytes) noexcept {
    constexpr std::size_t page = std::size_t{2} << 20;
    return Cache::fits(bytes) ? Cache::rounded(bytes) : bytes + (page - bytes % page) % page;
}

}  // namespace

StagingStore::Turn::Turn(StagingStore& store) : store_(store), begin_(driver::clock::look()) {
    std::list<const Turn*> place{this};
    const Lock lock(store_.mutex_);
    ++store_.figures_.waiting;
    store_.line_.splice(store_.line_.end(), place);
}

StagingStore::Turn::~Turn() {
    std::list<const Turn*> place;
    const Lock lock(store_.mutex_);
    --store_.figures_.waiting;
    place.splice(place.begin(), store_.line_, std::find(store_.line_.begin(), store_.line_.end(), this));
}

bool StagingStore::Turn::has_come() const {
    const Lock lock(store_.mutex_);
    const auto first = std::find_if(store_.line_.begin(), store_.line_.end(),
                                    [&](const Turn* each) { return each == this || each->thread_ != thread_; });
    return *first == this;
}

double StagingStore::Turn::waited() const noexcept {
    const driver::clock::Moment now = driver::clock::look();
    const bool is_one_clock = now.is_simulated == begin_.is_simulated;
    return is_one_clock ? std::chrono::duration<double>(now.time - begin_.time).count() : 0;
}

Status StagingStore::acquire(std::size_t bytes, Piece& piece) {
    const std::size_t wanted = std::min(rounded(bytes), most_);
    Pieces leaving;
    {
        const Lock lock(mutex_);
        const bool is_there = take_idle(wanted, piece);
        if (!is_there) {
            if (made_ + wanted > most_ && !evict(made_ + wanted - most_, leaving)) return not_ready;
            made_ += wanted;
        }
        ++figures_.in_use_count;
        figures_.in_use_bytes += wanted;
        if (is_there) {
            driver::memory_marking::mark_in_use(piece.pointer, nullptr, bytes);
            return {};
        }
    }
    if (!leaving.empty()) deferred_errors::add(free(leaving), "free", "staging memory");
    void* memory = nullptr;
    const RelaxedCapture relaxed;
    const Status status = context_.observe(cu.cuMemHostAlloc(&memory, wanted, CU_MEMHOSTALLOC_PORTABLE));
    if (!status.ok()) {
        const Lock lock(mutex_);
        made_ -= wanted;
        --figures_.in_use_count;
        figures_.in_use_bytes -= wanted;
        return status;
    }
    piece = {reinterpret_cast<std::uintptr_t>(memory), wanted, nullptr};
    driver::memory_marking::mark_in_use(piece.pointer, nullptr, bytes);
    return {};
}

bool StagingStore::take_idle(std::size_t bytes, Piece& piece) {
    for (auto each = idle_.begin(); each != idle_.end(); ++each) {
        if (each->bytes != bytes || !is_done(*each)) continue;
        piece = *each;
        idle_.erase(each);
        return true;
    }
    return false;
}

bool StagingStore::is_done(Piece& piece) noexcept {
    if (piece.event == nullptr) return true;
    if (!context_.is_reached(piece.event)) return false;
    context_.release_event(std::exchange(piece.event, nullptr));
    return true;
}

bool StagingStore::evict(std::size_t bytes, Pieces& leaving) {
    std::size_t found = 0;
    for (auto each = idle_.begin(); each != idle_.end() && found < bytes;) {
        const auto which = each++;
        if (!is_done(*which)) continue;
        found += which->bytes;
        leaving.splice(leaving.end(), idle_, which);
    }
    if (found < bytes) {
        idle_.splice(idle_.begin(), leaving);
        return false;
    }
    made_ -= found;
    return true;
}

void StagingStore::release(Piece piece) {
    {
        const Lock lock(mutex_);
        --figures_.in_use_count;
        figures_.in_use_bytes -= piece.bytes;
        if (!is_closed_) {
            idle_.push_back(piece);
            return;
        }
    }
    free_when_idle(piece);
}

void StagingStore::free_when_idle(Piece piece) {
    if (!context_.may_destroy()) return;
    if (is_done(piece)) {
        Pieces done{piece};
        deferred_errors::add(free(done), "free", "staging memory");
        return;
    }
    context_.release_event(piece.event);
    retire(context_, [&context = context_, pointer = piece.pointer] {
        driver::memory_marking::mark_in_use(pointer, nullptr);
        deferred_errors::add(context.observe(cu.cuMemFreeHost(reinterpret_cast<void*>(pointer))), "free",
                             "staging memory");
    });
}

Status StagingStore::free(Pieces& pieces) noexcept {
    const RelaxedCapture relaxed;
    Status first;
    for (const Piece& each : pieces) {
        driver::memory_marking::mark_in_use(each.pointer, nullptr);
        const Status status = context_.observe(cu.cuMemFreeHost(reinterpret_cast<void*>(each.pointer)));
        if (first.ok()) first = status;
    }
    return first;
}

Status StagingStore::trim(std::size_t bytes_to_keep) {
    Pieces leaving;
    {
        const Lock lock(mutex_);
        std::size_t idle = 0;
        for (const Piece& each : idle_) idle += each.bytes;
        for (auto each = idle_.begin(); each != idle_.end() && idle > bytes_to_keep;) {
            const auto which = each++;
            if (!is_done(*which)) continue;
            idle -= which->bytes;
            made_ -= which->bytes;
            leaving.splice(leaving.end(), idle_, which);
        }
    }
    return free(leaving);
}

Status StagingStore::close() {
    const Status status = trim(0);
    Pieces used;
    {
        const Lock lock(mutex_);
        is_closed_ = true;
        used.swap(idle_);
    }
    for (const Piece& each : used) free_when_idle(each);
    return status;
}

StagingStore::Figures StagingStore::figures() {
    const Lock lock(mutex_);
    Figures figures = figures_;
    for (const Piece& each : idle_) {
        ++figures.idle_count;
        figures.idle_bytes += each.bytes;
    }
    return figures;
}

}  // namespace ftcuda::core
