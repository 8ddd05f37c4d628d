#include "capture_mode.hpp"

#include "../../_driver/table.hpp"

namespace ftcuda::core {

using driver::cu;

RelaxedCapture::RelaxedCapture() noexcept : mode_(abi::CU_STREAM_CAPTURE_MODE_RELAXED) {
    // Cannot fail with a valid mode; on a driver in trouble the calls that follow say so themselves.
    cu.cuThreadExchangeStreamCaptureMode(&mode_).ignore();
}

RelaxedCapture::~RelaxedCapture() { cu.cuThreadExchangeStreamCaptureMode(&mode_).ignore(); }

}  // namespace ftcuda::core
