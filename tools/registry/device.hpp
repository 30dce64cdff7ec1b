/// Puts models on the device that a job asks for. Any thread.
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

/// A net, and the device on which it computes: "cpu" or "cuda:0".
struct NetOnDevice {
  models::Net<float> net;
  std::string device;
  /// With `auto`: why the net does not compute on a CUDA device; else empty.
  std::string note = {};
};

/// Returns `net` on that device, for batches of `rows`. Errors begin with the device: a build
/// without CUDA, no driver or too old a one, no such device, a device for which this build has no
/// code, or too little memory. With `auto`, the net computes on the CPU then.
[[nodiscard]] Result<NetOnDevice> put_on_device(const models::Net<float>& net,
                                                const models::Device& device, std::size_t rows);

/// Refuses a CUDA device for a model that computes on the CPU only; `why` is the error's text.
[[nodiscard]] Result<void> check_on_cpu(const models::Device& device, const std::string& why);

}  // namespace starling::program
