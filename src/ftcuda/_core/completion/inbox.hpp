// What is over, for a thread of the caller's that waits for many things at once, by an eventfd. That is written only if
// nothing was there: the thread then takes all that has come meanwhile.
#pragma once

#include "../sync/mutex.hpp"
#include "../sync/ref.hpp"
#include "completion.hpp"

#include <list>

namespace ftcuda::core {

class Inbox final : public Shared {
public:
    struct Finished {
        std::uint64_t number = 0;  // by which the caller knows what it waits for
        Status status;
    };
    // One or several: their places are made before anything can fail.
    using List = std::list<Finished>;

    // The operating system's error, ENOSYS where it has no eventfd; zero for success.
    static int open(Ref<Inbox>& inbox);

    // Open for as long as anybody has the inbox.
    int descriptor() const noexcept { return descriptor_; }

    void put(List& finished) noexcept EXCLUDES(mutex_);
    // All that is there; whoever comes later writes the eventfd again.
    List take() noexcept EXCLUDES(mutex_);
    // Nothing is put there any more.
    void close() noexcept EXCLUDES(mutex_);

private:
    explicit Inbox(int descriptor) noexcept : descriptor_(descriptor) {}
    ~Inbox() override;

    const int descriptor_;
    Mutex mutex_{Rank::inbox};
    List finished_ GUARDED_BY(mutex_);
    bool is_awake_ GUARDED_BY(mutex_) = false;  // the eventfd was written, and nothing was taken since
    bool is_closed_ GUARDED_BY(mutex_) = false;
};

// Puts a number into an inbox.
class InboxWaiter final : public Waiter {
public:
    InboxWaiter(Ref<Inbox> inbox, std::uint64_t number) : inbox_(std::move(inbox)), finished_(1, {number, {}}) {}
    void over(Status status) noexcept override;

private:
    const Ref<Inbox> inbox_;
    Inbox::List finished_;
};

}  // namespace ftcuda::core
