/// Names the device that computes a model: `--device`. Plain values; thread-safe to read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::models {

struct Device {
  enum class Kind {
    cpu,
    /// A CUDA device if this build, this machine and the model can use one, else the CPU.
    automatic,
    cuda,
  };
  Kind kind = Kind::cpu;
  /// The index of the CUDA device.
  std::size_t index = 0;
  bool operator==(const Device&) const = default;
};

/// Reads `cpu`, `auto`, `cuda` or `cuda:INDEX`, with an index up to 1023; `cuda` means `cuda:0`.
[[nodiscard]] Result<Device> parse_device(std::string_view text);

/// Returns text that parse_device reads back to the same value.
[[nodiscard]] std::string print(const Device& device);

}  // namespace starling::models
