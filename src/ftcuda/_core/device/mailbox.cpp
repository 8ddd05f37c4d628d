#include "mailbox.hpp"

#include "../sync/fork.hpp"
#include "../sync/mutex.hpp"

#include <array>
#include <atomic>

namespace ftcuda::core::mailbox {

namespace {

constexpr std::size_t capacity = 64;

class Mailbox {
public:
    void post(const Notice& notice) noexcept {
        const Lock lock(mutex_);
        if (count_ == capacity) {
            ++dropped_;
            return;
        }
        notices_[(first_ + count_) % capacity] = notice;
        ++count_;
        waiting_.store(count_, std::memory_order_relaxed);
    }

    bool pop(Notice& notice) noexcept {
        const Lock lock(mutex_);
        if (count_ == 0) return false;
        notice = notices_[first_];
        first_ = (first_ + 1) % capacity;
        --count_;
        waiting_.store(count_, std::memory_order_relaxed);
        return true;
    }

    std::size_t pop_dropped() noexcept {
        const Lock lock(mutex_);
        const std::size_t dropped = dropped_;
        dropped_ = 0;
        return dropped;
    }

    bool has_mail() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }

private:
    // Synchronises itself: a hint of count_, read without the lock.
    std::atomic<std::size_t> waiting_{0};

    // Guarded by mutex_.
    Mutex mutex_{Rank::mailbox};
    std::array<Notice, capacity> notices_ GUARDED_BY(mutex_){};
    std::size_t first_ GUARDED_BY(mutex_) = 0;
    std::size_t count_ GUARDED_BY(mutex_) = 0;
    std::size_t dropped_ GUARDED_BY(mutex_) = 0;
};

Mailbox& mailbox = *new Mailbox;  // never destroyed: destructors post to it while the process exits

}  // namespace

void post(Status status, const char* verb, const char* object) noexcept {
    if (!status.ok() && !is_forked()) mailbox.post({status, verb, object});
}

bool has_mail() noexcept { return mailbox.has_mail() && !is_forked(); }
bool pop(Notice& notice) noexcept { return mailbox.pop(notice); }
std::size_t pop_dropped() noexcept { return mailbox.pop_dropped(); }

}  // namespace ftcuda::core::mailbox
