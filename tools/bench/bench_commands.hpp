/// The subcommands of `starling bench`, one function each. A function returns an exit code; if its
/// input is wrong, it measures nothing and returns an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/fabric/provider.hpp"
#include "starling/base/result.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

struct BenchKernelsOptions {
  /// The number of rows of each product, and of images of each convolution.
  std::uint64_t batch = 64;
  /// The number of measurements, of which the median is shown.
  std::uint64_t repeats = 5;
  bool json = false;
};
/// Measures how fast each library computes the products and convolutions of known nets on one
/// thread.
[[nodiscard]] Result<int> bench_kernels_command(const BenchKernelsOptions& options);

struct BenchTrainOptions {
  std::string data = "digits:n=8000";
  /// Empty: default_model() chooses one.
  std::string model;
  models::Optimizer optimizer = models::Sgd{.lr = 0.01};
  std::uint64_t batch = 64;
  std::uint64_t seed = 1;
  /// The steps of each repeat. Absent: each repeat lasts `time`.
  std::optional<std::uint64_t> steps = std::nullopt;
  std::chrono::nanoseconds time = std::chrono::seconds{2};
  /// The number of measurements, of which the median is shown.
  std::uint64_t repeats = 5;
  bool json = false;
};
/// Measures whole training steps on one thread: draws batches, computes gradients, applies them.
/// Returns job_failed if the loss is not finite at the end.
[[nodiscard]] Result<int> bench_train_command(const Registry& registry,
                                              const BenchTrainOptions& options);

struct BenchCollectivesOptions {
  /// The number of processes; at least 2.
  std::uint64_t members = 4;
  /// The lengths of the vectors, in bytes, and the algorithms as collective::parse_algorithm()
  /// reads them; at least one length and one algorithm.
  std::vector<std::uint64_t> bytes{};
  std::vector<std::string> algorithms{};
  /// The number of measurements, of which the median is shown.
  std::uint64_t repeats = 5;
  bool json = false;
  /// The provider of one-sided writes. Absent: all message bodies travel by ZeroMQ, without
  /// encryption. Otherwise messages are encrypted, and long bodies are written into the memory of
  /// the other process.
  std::optional<fabric::Provider> fabric = std::nullopt;
};
/// Measures all-reduces among processes on this machine, over TCP. Returns job_failed if a process
/// fails or a sum is wrong. Requires: the process has no other thread.
[[nodiscard]] Result<int> bench_collectives_command(const BenchCollectivesOptions& options);

}  // namespace starling::program
