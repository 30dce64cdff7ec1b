/// The door to CUDA devices: which there are, and nets on them. No CUDA header is needed to include
/// it. Any thread may call these functions, and what they return. What computes on a device leaves
/// it the calling thread's current one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/net/net_engine.hpp"

namespace starling::models::cuda {

/// How products and convolutions of float32 are computed.
enum class Precision {
  /// In float32, as on the CPU.
  float32,
  /// Factors rounded to 10 bits behind the point on tensor cores (TF32), sums in float32: faster,
  /// with relative errors around 1e-3.
  tf32,
};

struct DeviceInfo {
  std::size_t index = 0;
  /// "NVIDIA H100 80GB HBM3".
  std::string name;
  std::size_t memory_bytes = 0;
};

/// All that this process may use, by index. Errors: no driver or one too old, with what to do.
[[nodiscard]] Result<std::vector<DeviceInfo>> devices();

/// Runs nets on the device of that index. Takes the memory that one worker needs for batches of
/// `rows` rows and, if there is room, for evaluation by 256, and runs a kernel, so that what cannot
/// work is refused here. Larger batches take more when they come; and the first of any size, while
/// cuDNN's algorithms are tried, once more what one convolution reads, writes and has as scratch.
/// Errors, led by "cuda:INDEX: ": a driver that is missing or too old, another cuDNN than this
/// build's, no such device, a device for which this build has no code, too little memory, rows too
/// large for a device.
[[nodiscard]] Result<std::shared_ptr<const NetEngine<float>>> make_engine(
    const Net<float>& net, std::size_t index, std::size_t rows,
    Precision precision = Precision::float32);

}  // namespace starling::models::cuda
