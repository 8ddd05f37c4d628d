// One object per thread, made by its first use there and destroyed with the thread.
//
// Not `thread_local`: with MinGW a thread's variables are freed before their destructors run. The destructor of `Value`
// must not use `thread_local` variables either.
#pragma once

#include <cstdlib>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace ftcuda::sim {

template <class Value>
class PerThread {
public:
    PerThread() noexcept {
#ifdef _WIN32
        if ((key_ = FlsAlloc(destroy)) == FLS_OUT_OF_INDEXES) std::abort();
#else
        if (pthread_key_create(&key_, destroy) != 0) std::abort();  // a process has a thousand
#endif
    }

    Value& operator*() const {
#ifdef _WIN32
        void* value = FlsGetValue(key_);
        if (value == nullptr) FlsSetValue(key_, value = new Value);
#else
        void* value = pthread_getspecific(key_);
        if (value == nullptr) pthread_setspecific(key_, value = new Value);
#endif
        return *static_cast<Value*>(value);
    }

private:
#ifdef _WIN32
    static void WINAPI destroy(void* value) noexcept { delete static_cast<Value*>(value); }
    DWORD key_;
#else
    static void destroy(void* value) noexcept { delete static_cast<Value*>(value); }
    pthread_key_t key_;
#endif
};

}  // namespace ftcuda::sim
