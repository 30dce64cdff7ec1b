/// The device that computes a model, as people write it. Plain values; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::models {

struct Device {
  enum class Kind {
    cpu,
    /// A CUDA device where this build and this machine have one for the model, else the CPU.
    automatic,
    cuda,
  };
  Kind kind = Kind::cpu;
  /// The device's index among CUDA's devices.
  std::size_t index = 0;
  bool operator==(const Device&) const = default;
};

/// Reads `cpu`, `auto`, `cuda` or `cuda:INDEX`.
[[nodiscard]] Result<Device> parse_device(std::string_view text);

/// Returns text that parse_device reads back to the same value.
[[nodiscard]] std::string print(const Device& device);

}  // namespace starling::models
