/// Puts models on the device that a job asks for. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "starling/base/result.hpp"
#include "starling/models/device.hpp"
#include "starling/models/net/net.hpp"

namespace starling::program {

/// `--device` in `--help`.
inline constexpr const char* device_help =
    "where the model is computed: cpu | cuda:0 | auto, a CUDA device if there is one; nets only "
    "[cpu]";

/// A net and where it is computed: "cpu" or "cuda:0".
struct PlacedNet {
  models::Net<float> net;
  std::string device;
  /// Why it is not computed on a device that was there; empty where nothing went wrong.
  std::string note = {};
};

/// `net` on that device, for batches of `rows`. Errors, led by the device: a build without CUDA, no
/// driver or one too old, no such device, one that this build has no code for, too little memory.
/// With `auto` these mean the CPU.
[[nodiscard]] Result<PlacedNet> place(const models::Net<float>& net, const models::Device& device,
                                      std::size_t rows);

/// Refuses a model that has no form for devices, where one is asked for; `why` it has none.
[[nodiscard]] Result<void> check_on_cpu(const models::Device& device, const std::string& why);

}  // namespace starling::program
