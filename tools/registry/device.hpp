/// Prepares nets to compute on the device that `--device` names. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "starling/base/result.hpp"
#include "starling/models/device.hpp"
#include "starling/models/net/net.hpp"

namespace starling::program {

/// The help text of `--device`.
inline constexpr const char* device_help =
    "where the model is computed: cpu | cuda:0 | auto, a CUDA device if there is one; nets only "
    "[cpu]";

/// A net that computes on a device.
struct NetOnDevice {
  models::Net<float> net;
  /// "cpu", or a CUDA device such as "cuda:0".
  std::string device;
  /// With `auto`: the reason why the net does not compute on a CUDA device; else empty.
  std::string note = {};
};

/// Returns `net` on `device`, for batches of up to `rows` samples. For a CUDA device, returns an
/// Error if this build has no CUDA or no code for the device, if the driver is absent or too old,
/// or if the device is absent or its memory too small. The Error begins with the device. With
/// `auto`, returns no Error: the net then computes on the CPU, and `note` has the reason.
[[nodiscard]] Result<NetOnDevice> put_on_device(const models::Net<float>& net,
                                                const models::Device& device, std::size_t rows);

/// Returns an Error with the text `why` if `device` is a CUDA device. For models that compute on
/// the CPU only.
[[nodiscard]] Result<void> refuse_cuda(const models::Device& device, const std::string& why);

}  // namespace starling::program
