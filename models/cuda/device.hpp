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
  /// TF32 on tensor cores: rounds factors to 10 bits after the binary point and adds in float32. It
  /// is faster, with relative errors of about 1e-3.
  tf32,
};

struct DeviceInfo {
  std::size_t index = 0;
  /// The product's name, such as "NVIDIA H100 80GB HBM3".
  std::string name;
  std::size_t memory_bytes = 0;
};

/// Returns all devices that this process may use, by index. Returns an Error with advice if the
/// driver is missing or too old.
[[nodiscard]] Result<std::vector<DeviceInfo>> devices();

/// Returns an engine that computes `net` on device `index`. Runs a kernel and allocates the memory
/// that one worker needs for batches of `rows` rows, so that a device that cannot be used is
/// refused here. Also allocates for evaluation in micro-batches of 256 rows, or of fewer rows if
/// there is too little memory for so many.
///
/// Later calls of the engine may allocate more: for larger batches, for calls that overlap, and for
/// the first batch of each size, which tries cuDNN's algorithms on a temporary copy of one
/// convolution's inputs, outputs and scratch.
///
/// Errors begin with "cuda:INDEX: ". The causes are those of probe() (probe.hpp), too little
/// memory, and a net of which one row has too many numbers for a device.
[[nodiscard]] Result<std::shared_ptr<const NetEngine<float>>> make_engine(
    const Net<float>& net, std::size_t index, std::size_t rows,
    Precision precision = Precision::float32);

}  // namespace starling::models::cuda
