// Copies: between memory that the device reaches, and between it and pageable memory of the host.
#pragma once

#include "operands.hpp"

namespace ftcuda::core {

// Which memory an address is in, as far as the driver knows.
enum class Location : unsigned char { unknown, device, pinned, managed };
Status locate(Context& context, abi::CUdeviceptr pointer, Location& location, int& ordinal);

// One end of a copy.
struct Place {
    abi::CUdeviceptr pointer = 0;
    Buffer* buffer = nullptr;  // whose memory it is; null: memory that is not ours
};

// `foreign`, which is taken over, holds memory that is not ours, also that of buffers; null if all is ours.

// Asynchronous. Both ends can be reached by the device.
Status copy(Place destination, Place source, std::size_t bytes, Stream& stream, deferred_release::Retention* foreign);

// From pageable memory, which is read before this returns. One submission: of more than a chunk in an exclusive
// section.
Status upload(Place destination, const void* source, std::size_t bytes, Stream& stream,
              deferred_release::Retention* foreign);

// To pageable memory. Returns when the bytes are there.
Status download(void* destination, Place source, std::size_t bytes, Stream& stream,
                deferred_release::Retention* foreign);

// Asynchronous. `width` bytes (1, 2 or 4) of `value`, repeated; the buffer's size is a multiple of it.
Status fill(Buffer& buffer, std::uint32_t value, unsigned width, Stream& stream, deferred_release::Retention* foreign);

}  // namespace ftcuda::core
