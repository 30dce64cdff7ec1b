/// The commands of `starling bench`, one function each. A function returns an exit code, or an
/// error of its input: then nothing was measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "starling/base/result.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

struct BenchKernelsOptions {
  /// Rows of each product, images of each convolution.
  std::uint64_t batch = 64;
  std::uint64_t repeats = 5;
  bool json = false;
};
/// The products and convolutions of known nets, by each library, on one thread.
[[nodiscard]] Result<int> bench_kernels_command(const BenchKernelsOptions& options);

struct BenchTrainOptions {
  std::string data = "digits:n=8000";
  /// Empty: the one that suits the data.
  std::string model;
  models::Optimizer optimizer = models::Sgd{.lr = 0.01};
  std::uint64_t batch = 64;
  std::uint64_t seed = 1;
  /// The steps of each repeat; absent: as many as take `time`.
  std::optional<std::uint64_t> steps = std::nullopt;
  std::chrono::nanoseconds time = std::chrono::seconds{2};
  std::uint64_t repeats = 5;
  bool json = false;
};
/// Whole training steps on one thread: batches drawn, gradients, updates. job_failed where the loss
/// is no number in the end.
[[nodiscard]] Result<int> bench_train_command(const Registry& registry,
                                              const BenchTrainOptions& options);

}  // namespace starling::program
