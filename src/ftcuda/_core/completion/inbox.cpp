#include "inbox.hpp"

#include "../sync/fork.hpp"

#include <cerrno>

#ifdef __linux__
#include <sys/eventfd.h>
#include <unistd.h>
#endif

namespace ftcuda::core {

namespace {

#ifdef __linux__
int open_descriptor() noexcept { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
void close_descriptor(int descriptor) noexcept { ::close(descriptor); }
void write_to(int descriptor) noexcept {
    const std::uint64_t one = 1;
    // It fails only if the counter is full, and then the thread is awake.
    if (::write(descriptor, &one, sizeof one) < 0) return;
}
void read_from(int descriptor) noexcept {
    std::uint64_t count = 0;
    if (::read(descriptor, &count, sizeof count) < 0) return;  // nothing was written
}
#else
int open_descriptor() noexcept {
    errno = ENOSYS;
    return -1;
}
void close_descriptor(int) noexcept {}
void write_to(int) noexcept {}
void read_from(int) noexcept {}
#endif

}  // namespace

int Inbox::open(Ref<Inbox>& inbox) {
    const int descriptor = open_descriptor();
    if (descriptor < 0) return errno;
    inbox = Ref<Inbox>::adopt(new Inbox(descriptor));
    return 0;
}

Inbox::~Inbox() { close_descriptor(descriptor_); }

void Inbox::put(List& finished) noexcept {
    const Lock lock(mutex_);
    if (is_closed_) return;
    finished_.splice(finished_.end(), finished);
    if (!is_awake_) write_to(descriptor_);
    is_awake_ = true;
}

Inbox::List Inbox::take() noexcept {
    List taken;
    if (is_forked()) return taken;  // the eventfd is the parent's too
    const Lock lock(mutex_);
    if (is_closed_) return taken;
    taken.swap(finished_);
    if (is_awake_) read_from(descriptor_);
    is_awake_ = false;
    return taken;
}

void Inbox::close() noexcept {
    if (is_forked()) return;
    const Lock lock(mutex_);
    is_closed_ = true;
    finished_.clear();
}

void InboxWaiter::over(Status status) noexcept {
    finished_.front().status = status;
    inbox_->put(finished_);
}

}  // namespace ftcuda::core
