/// The interface to CUDA devices: lists them, and runs nets on them. Including it needs no CUDA
/// header. Any thread may call these functions and use the objects that they return. A function
/// that computes on a device leaves it the calling thread's current one.
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

/// Returns all devices that this process may use, by index. Errors: no driver or one too old, with
/// advice.
[[nodiscard]] Result<std::vector<DeviceInfo>> devices();

/// Returns an engine that runs nets on device `index`. Takes the memory that one worker needs for
/// batches of `rows` rows and, if there is capacity, for evaluation by 256 rows, and runs a kernel,
/// so that a configuration that cannot work is refused here. Larger batches take more memory when
/// they come; the first batch of any size also takes, while cuDNN's algorithms are tried, the
/// memory that one convolution reads, writes and uses as scratch. Errors, led by "cuda:INDEX: ": a
/// driver that is missing or too old, another cuDNN than this build's, no such device, a device for
/// which this build has no code, too little memory, rows too large for a device.
[[nodiscard]] Result<std::shared_ptr<const NetEngine<float>>> make_engine(
    const Net<float>& net, std::size_t index, std::size_t rows,
    Precision precision = Precision::float32);

}  // namespace starling::models::cuda
