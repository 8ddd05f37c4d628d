#include "loader.hpp"

#include "background.hpp"
#include "clock.hpp"
#include "memory_marking.hpp"
#include "library.hpp"
#include "schedule.hpp"
#include "table.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

namespace ftcuda::driver {

Table cu;

#ifdef FTCUDA_DEBUG_LOCKS
void (*before_call)() noexcept = nullptr;
#endif

namespace {

// Release: the table, `description` and the driver's own initialisation are complete. Pairs with the acquire in
// loaded().
std::atomic<bool> ready{false};
std::mutex loading;
Loaded& description = *new Loaded;     // never destroyed: daemon threads may read it while the process exits
const class Lookup* lookup = nullptr;  // of the loaded driver. Never destroyed, as above

using GetProcAddress = CUresult (*)(const char* name, void** function, int version, std::uint64_t flags);
using GetProcAddressV2 = CUresult (*)(const char* name, void** function, int version, std::uint64_t flags, int* found);

// The ladder: cuGetProcAddress_v2 (drivers from 12.0), the four-argument cuGetProcAddress (from 11.3), exported names.
// The first rung that finds cuInit is used for everything and believed: its "not found" is final, since an export of
// the same name may be of another version.
class Lookup {
public:
    explicit Lookup(const Library& library) : library_(library) {
        newest_ = reinterpret_cast<GetProcAddressV2>(library.symbol("cuGetProcAddress_v2"));
        if (newest_ != nullptr && find(describe(Entry::cuInit)) != nullptr) return;
        newest_ = nullptr;
        older_ = reinterpret_cast<GetProcAddress>(library.symbol("cuGetProcAddress"));
        if (older_ != nullptr && find(describe(Entry::cuInit)) != nullptr) return;
        older_ = nullptr;
        if (const auto get_version = reinterpret_cast<CUresult (*)(int*)>(library.symbol("cuDriverGetVersion"))) {
            if (get_version(&driver_version_) != CUDA_SUCCESS) driver_version_ = 0;
        }
    }

    void* find(const EntryDescription& entry) const noexcept {
        void* function = nullptr;
        if (newest_ != nullptr) {
            int found = 0;
            const CUresult result =
                newest_(entry.name, &function, entry.version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
            return result == CUDA_SUCCESS ? function : nullptr;
        }
        if (older_ != nullptr) {
            const CUresult result = older_(entry.name, &function, entry.version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
            return result == CUDA_SUCCESS ? function : nullptr;
        }
        // An export that is newer than the driver says it is cannot be what our declaration means.
        return entry.version <= driver_version_ ? library_.symbol(entry.symbol) : nullptr;
    }

private:
    Library library_;
    GetProcAddressV2 newest_ = nullptr;
    GetProcAddress older_ = nullptr;
    int driver_version_ = 0;
};

// Null, or the name of the first required entry point that the library lacks.
const char* fill(Table& table, const Lookup& lookup) {
    const char* missing = nullptr;
#define FTCUDA_ENTRY(symbol, name, version, need, pace, parameters) \
    table.symbol.bind(lookup.find(describe(Entry::symbol)));        \
    if (!table.symbol && describe(Entry::symbol).required && missing == nullptr) missing = #symbol;
#include "entry_points.def"
#undef FTCUDA_ENTRY
    return missing;
}

std::string describe_failure(const Table& table, Status status) {
    const char* name = nullptr;
    const char* text = nullptr;
    table.cuGetErrorName(status.code(), &name).ignore();
    table.cuGetErrorString(status.code(), &text).ignore();
    return std::string(describe(status.entry()).symbol) + " answered " + (name ? name : std::to_string(status.code())) +
           (text ? std::string(" (") + text + ")" : std::string());
}

bool start(const std::string& path, const Library& library, std::string& problem) {
    Table table;
    auto entries = std::make_unique<const Lookup>(library);
    if (const char* missing = fill(table, *entries)) {
        problem = path + ": no entry point " + missing + "; a driver of CUDA 11.2 or newer is needed";
        return false;
    }
    if (const Status status = table.cuInit(0); !status.ok()) {
        problem = path + ": " + describe_failure(table, status);
        return false;
    }
    int version = 0;
    if (const Status status = table.cuDriverGetVersion(&version); !status.ok()) {
        problem = path + ": " + describe_failure(table, status);
        return false;
    }
    cu = table;
    lookup = entries.release();
    schedule::find(library);
    memory_marking::find(library);
    clock::find(library);
    background::find(library);
    description.path = path;
    description.version = version;
    description.simulated = library.symbol("ftcuda_sim_control") != nullptr;
    return true;
}

}  // namespace

std::vector<std::string> candidates(std::string_view choice, const std::string& simulated_driver) {
    if (choice.empty() || choice == "cuda") {
#ifdef _WIN32
        return {"nvcuda.dll"};
#else
        // The second path is where WSL2 keeps the Windows driver's library, off the loader's search path.
        return {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
#endif
    }
    if (choice == "sim") return {simulated_driver};
    return {std::string(choice)};
}

bool load(const std::vector<std::string>& paths, std::string& problem) {
    const std::lock_guard<std::mutex> lock(loading);
    if (ready.load(std::memory_order_relaxed)) return true;
    problem.clear();
    for (const std::string& path : paths) {
        std::string error;
        const Library library = Library::open(path, error);
        if (!library) {
            problem += (problem.empty() ? "" : "; ") + path + ": " + error;
            continue;
        }
        if (!start(path, library, problem)) return false;
        ready.store(true, std::memory_order_release);
        return true;
    }
    return false;
}

CUresult find_entry(const char* name, int version, void** function) noexcept {
    if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = nullptr;
    if (!loaded()) return CUDA_ERROR_NOT_INITIALIZED;
    EntryDescription wanted{name, name, version, false, true};
    for (unsigned entry = 1; entry < static_cast<unsigned>(Entry::count); ++entry) {
        const EntryDescription& known = describe(static_cast<Entry>(entry));
        if (known.version == version && std::strcmp(known.name, name) == 0)
            wanted.symbol = known.symbol;  // what old drivers export
    }
    *function = lookup->find(wanted);
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

bool loaded() noexcept { return ready.load(std::memory_order_acquire); }

const Loaded& loaded_driver() noexcept { return description; }

}  // namespace ftcuda::driver
