/// The interface to CUDA devices: lists them, and runs nets on them. It includes no CUDA header.
/// Any thread may call these functions and use the objects that they return. A function that
/// computes on a device makes it the calling thread's current device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/net/net_engine.hpp"

namespace starling::models::cuda {

/// The precision of matrix products and convolutions.
enum class Precision {
  /// float32, as on the CPU.
  float32,
  /// TF32 on tensor cores: rounds factors to 10 bits after the binary point and adds in float32.
  /// Faster, with relative errors around 1e-3.
  tf32,
};

struct DeviceInfo {
  std::size_t index = 0;
  /// "NVIDIA H100 80GB HBM3".
  std::string name;
  std::size_t memory_bytes = 0;
};

/// Returns all devices that this process may use, by index. Returns an Error with advice if there
/// is no driver or one that is too old.
[[nodiscard]] Result<std::vector<DeviceInfo>> devices();

/// Returns an engine that computes `net` on device `index`. Allocates the memory that one worker
/// needs for batches of `rows` rows and, if there is enough, for evaluation in pieces of 256 rows,
/// and runs a kernel, so that a configuration that cannot work is refused here. Larger batches
/// allocate more memory when they come. The first batch of each size also allocates, while it tries
/// cuDNN's algorithms, the memory that one convolution reads, writes and uses as scratch. Errors
/// begin with "cuda:INDEX: ": a driver that is missing or too old, another cuDNN than this build's,
/// no such device, a device for which this build has no code, too little memory, rows too large for
/// a device.
[[nodiscard]] Result<std::shared_ptr<const NetEngine<float>>> make_engine(
    const Net<float>& net, std::size_t index, std::size_t rows,
    Precision precision = Precision::float32);

}  // namespace starling::models::cuda
