#include "copy.hpp"

#include "../../_driver/table.hpp"
#include "../completion/context_wait.hpp"
#include "staging.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

// Inside the stream's exclusive section, for one scope.
class SectionScope {
public:
    explicit SectionScope(Stream& stream) : stream_(stream), status_(stream.section().begin(this, 0)) {}
    ~SectionScope() {
        if (status_.ok()) stream_.section().end(this);
    }
    SectionScope(const SectionScope&) = delete;
    SectionScope& operator=(const SectionScope&) = delete;

    Status status() const noexcept { return status_; }

private:
    Stream& stream_;
    const Status status_;
};

// Copies a piece between the device and a chunk, and records the chunk's event behind it. On failure the chunk is given
// back, and `chunk` is none.
Status copy_piece(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, Stream& stream,
                  Staging::Chunk& chunk) {
    Context& context = stream.context();
    Status status = context.observe(cu.cuMemcpyAsync(destination, source, bytes, stream.cu_stream()));
    const bool started = status.ok();
    if (started) status = stream.mark_surely(chunk.event);
    if (status.ok()) return status;
    if (started) {  // the copy may still use the chunk, and nothing says until when
        retire(context, [&context, chunk] { Staging::of(context).release(chunk); });
    } else {
        Staging::of(context).release(chunk);
    }
    chunk = {};
    return status;
}

CUdeviceptr address(const Staging::Chunk& chunk) noexcept { return reinterpret_cast<std::uintptr_t>(chunk.memory); }

// Copies in pieces through two chunks: while the device copies from one, the host fills the other. More of them, or new
// ones for each piece, would be slower: the memory would leave the processor's caches between the host's writing and
// the device's reading.
Status upload_pieces(CUdeviceptr destination, const char* source, std::size_t bytes, Stream& stream) {
    Staging& staging = Staging::of(stream.context());
    std::array<Staging::Chunk, 2> chunks{};
    Status status;
    for (std::size_t done = 0; done < bytes && status.ok(); done += Staging::chunk_bytes) {
        Staging::Chunk& chunk = chunks[done / Staging::chunk_bytes % chunks.size()];
        status = chunk.memory == nullptr ? staging.acquire(chunk) : staging.wait(chunk);
        if (!status.ok()) break;
        const std::size_t piece = std::min(bytes - done, Staging::chunk_bytes);
        std::memcpy(chunk.memory, source + done, piece);
        status = copy_piece(destination + done, address(chunk), piece, stream, chunk);
    }
    for (const Staging::Chunk& chunk : chunks) {
        if (chunk.memory != nullptr) staging.release(chunk);
    }
    return status;
}

struct Piece {
    Staging::Chunk chunk;
    char* destination;
    std::size_t bytes;
};

Status begin_download(char* destination, CUdeviceptr source, std::size_t bytes, Stream& stream, Piece& piece) {
    piece = {{}, destination, bytes};
    if (const Status status = Staging::of(stream.context()).acquire(piece.chunk); !status.ok()) return status;
    return copy_piece(address(piece.chunk), source, bytes, stream, piece.chunk);
}

Status end_download(Piece& piece, Context& context) {
    const Status status = Staging::of(context).wait(piece.chunk);
    if (status.ok()) std::memcpy(piece.destination, piece.chunk.memory, piece.bytes);
    Staging::of(context).release(piece.chunk);
    return status;
}

// Copies in pieces, of which two are on their way: while one is copied by the device, the host copies the other.
Status download_pieces(char* destination, CUdeviceptr source, std::size_t bytes, Stream& stream) {
    std::array<Piece, 2> pieces{};
    std::size_t begun = 0, ended = 0;  // pieces
    const std::size_t count = (bytes + Staging::chunk_bytes - 1) / Staging::chunk_bytes;
    Status status;
    while (ended < begun || (begun < count && status.ok())) {
        if (begun < count && begun - ended < pieces.size() && status.ok()) {
            const std::size_t offset = begun * Staging::chunk_bytes;
            status =
                begin_download(destination + offset, source + offset, std::min(bytes - offset, Staging::chunk_bytes),
                               stream, pieces[begun % pieces.size()]);
            if (status.ok()) ++begun;
            continue;
        }
        const Status end = end_download(pieces[ended++ % pieces.size()], stream.context());
        if (status.ok()) status = end;
    }
    return status;
}

// One submission. `work`, calls of the driver, returns a Status. `captures`: it may become part of a graph.
template <class Work>
[[gnu::always_inline]] inline Status submit(Operands operands, Stream& stream, bool captures, Work work) {
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();
    OperandLeases leases(stream, operands);
    if (!leases.status().ok()) return leases.status();
    const ContextScope scope(stream.context());
    if (!scope.status().ok()) return scope.status();
    if (captures) return leases.submit(work);
    bool capturing = false;
    if (const Status status = stream.is_capturing(capturing); !status.ok()) return status;
    return capturing ? Status(Reason::capturing) : leases.submit_uncaptured(work);
}

// Several pieces are one submission for other threads.
template <class Copy>
Status in_section(std::size_t bytes, Stream& stream, Copy copy) {
    if (bytes <= Staging::chunk_bytes) return copy();
    const SectionScope section(stream);
    return section.status().ok() ? copy() : section.status();
}

}  // namespace

Status locate(Context& context, CUdeviceptr pointer, Location& location, int& ordinal) {
    location = Location::unknown;
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    unsigned type = 0;
    Status status = cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
    if (status.is(CUDA_ERROR_INVALID_VALUE)) return {};  // an address that CUDA knows nothing of
    if (!status.ok()) return context.observe(status);
    unsigned managed = 0;  // a boolean of which driver 580 writes four bytes
    status = context.observe(cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
    if (status.ok())
        status = context.observe(cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer));
    location = managed != 0 ? Location::managed : type == CU_MEMORYTYPE_HOST ? Location::pinned : Location::device;
    return status;
}

Status copy(Place destination, Place source, std::size_t bytes, Stream& stream, deferred_release::Retention* foreign) {
    std::array<Buffer*, 2> used{destination.buffer, source.buffer};
    if (used[0] == nullptr) used[0] = used[1];
    const std::size_t count = (destination.buffer != nullptr) + (source.buffer != nullptr);
    return submit({used.data(), count, foreign}, stream, true, [&] {
        if (bytes == 0) return Status();
        return Status(cu.cuMemcpyAsync(destination.pointer, source.pointer, bytes, stream.cu_stream()));
    });
}

// The graph of a capture would use chunks that are others' by then.
Status upload(Place destination, const void* source, std::size_t bytes, Stream& stream,
              deferred_release::Retention* foreign) {
    return in_section(bytes, stream, [&] {
        return submit({&destination.buffer, destination.buffer != nullptr, foreign}, stream, false, [&] {
            return upload_pieces(destination.pointer, static_cast<const char*>(source), bytes, stream);
        });
    });
}

Status download(void* destination, Place source, std::size_t bytes, Stream& stream,
                deferred_release::Retention* foreign) {
    return in_section(bytes, stream, [&] {
        return submit({&source.buffer, source.buffer != nullptr, foreign}, stream, false,
                      [&] { return download_pieces(static_cast<char*>(destination), source.pointer, bytes, stream); });
    });
}

Status fill(Buffer& buffer, std::uint32_t value, unsigned width, Stream& stream, deferred_release::Retention* foreign) {
    Buffer* const used = &buffer;
    return submit({&used, 1, foreign}, stream, true, [&] {
        const CUdeviceptr begin = buffer.pointer();
        const std::size_t count = buffer.size() / width;
        const CUstream cu_stream = stream.cu_stream();
        if (count == 0) return Status();
        switch (width) {
        case 1: return Status(cu.cuMemsetD8Async(begin, static_cast<unsigned char>(value), count, cu_stream));
        case 2: return Status(cu.cuMemsetD16Async(begin, static_cast<unsigned short>(value), count, cu_stream));
        default: return Status(cu.cuMemsetD32Async(begin, value, count, cu_stream));
        }
    });
}

}  // namespace ftcuda::core
