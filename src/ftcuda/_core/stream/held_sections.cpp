#include "held_sections.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace ftcuda::core::held_sections {

namespace {

struct Held {
    Ref<Stream> stream;
    std::uint64_t number;

    bool is_over() const noexcept { return !stream->section().is(number); }
};

std::atomic<std::uint64_t> latest_task{0};  // relaxed: a counter

using List = std::vector<Held>;

// The thread ends. No driver call, and nothing of the interpreter's, which the thread has left. In a forked child the
// sections are of threads that are not there, and abandon() does nothing.
void abandon(List* list) noexcept {
    const std::unique_ptr<List> mine(list);
    for (const Held& each : *mine) each.stream->section().abandon(each.number);
}

// Not `thread_local`: with MinGW a thread's variables are freed before their destructors run, and those of the main
// thread would run at exit, when nobody is there to be told.
class PerThread {
public:
    PerThread() noexcept {
#ifdef _WIN32
        key_ = FlsAlloc(destroy);
        has_key_ = key_ != FLS_OUT_OF_INDEXES;
#else
        has_key_ = pthread_key_create(&key_, destroy) == 0;
#endif
    }

    List* get() const noexcept {
        if (!has_key_) return nullptr;  // a process has a thousand: somebody else took them all
#ifdef _WIN32
        return static_cast<List*>(FlsGetValue(key_));
#else
        return static_cast<List*>(pthread_getspecific(key_));
#endif
    }

    List& make() const {
        if (List* const found = get()) return *found;
        if (!has_key_) throw std::bad_alloc();
        auto made = std::make_unique<List>();
#ifdef _WIN32
        if (FlsSetValue(key_, made.get()) == 0) throw std::bad_alloc();
#else
        if (pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
#endif
        return *made.release();
    }

private:
#ifdef _WIN32
    static void WINAPI destroy(void* list) noexcept { abandon(static_cast<List*>(list)); }
    DWORD key_;
#else
    static void destroy(void* list) noexcept { abandon(static_cast<List*>(list)); }
    pthread_key_t key_;
#endif
    bool has_key_;
};

const PerThread held;

}  // namespace

void remember(Stream& stream, std::uint64_t number) {
    List& mine = held.make();
    // Those that other threads ended.
    mine.erase(std::remove_if(mine.begin(), mine.end(), [](const Held& each) { return each.is_over(); }), mine.end());
    mine.push_back({Ref<Stream>(stream), number});
}

void forget(Stream& stream, std::uint64_t number) noexcept {
    List* const mine = held.get();
    if (mine == nullptr) return;
    const auto found = std::find_if(mine->rbegin(), mine->rend(), [&](const Held& each) {
        return each.stream.get() == &stream && each.number == number;
    });
    if (found != mine->rend()) mine->erase(std::next(found).base());
}

std::uint64_t next_task() noexcept { return latest_task.fetch_add(1, std::memory_order_relaxed) + 1; }

void give_up(std::uint64_t task) noexcept {
    const List* const mine = held.get();
    if (mine == nullptr) return;
    for (const Held& each : *mine) {
        if (!each.is_over()) each.stream->section().give_up(task);
    }
}

}  // namespace ftcuda::core::held_sections
