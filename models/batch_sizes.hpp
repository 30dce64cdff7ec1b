/// How a number of samples is divided among workers so that all need the same time: dynamic
/// batches, DBS (Ye et al., "DBS: Dynamic batch size for distributed deep neural network training",
/// arXiv 2007.11831, section 3). Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

/// The samples that a worker has computed, and the time that this took. Both are 0 if nothing is
/// known about the worker.
struct WorkDone {
  std::uint64_t samples = 0;
  double seconds = 0;
};

/// Returns the share of the samples that each worker is to compute next: p_i' = (p_i / t_i) / sum_j
/// (p_j / t_j), where p_i are the samples that worker i has computed in the time t_i. A worker
/// about which nothing is known counts with the mean speed of the others. The sum is 1, up to
/// rounding. Requires: no time is negative, NaN or infinite.
[[nodiscard]] std::vector<double> next_shares(std::span<const WorkDone> workers);

/// Divides `total` samples in proportion to `shares` by the method of the largest remainder: each
/// worker gets its exact part rounded down, and the workers with the largest remainders get one
/// more; equal remainders favour the lower index. Each worker gets at least 1. The sum is `total`,
/// or the number of workers if that is larger. Requires: shares are not negative, and neither NaN
/// nor infinite; if all are 0, they count as equal. `total` is at most 2^32.
[[nodiscard]] std::vector<std::uint64_t> divide_batch(std::uint64_t total,
                                                      std::span<const double> shares);

/// Divides `total` samples equally: sizes differ by at most 1. Requires: as divide_batch().
[[nodiscard]] std::vector<std::uint64_t> divide_batch(std::uint64_t total, std::uint64_t workers);

/// Returns the error for dynamic batches of `total` samples, which are fewer than the workers.
[[nodiscard]] Error small_total_error(std::uint64_t total, std::uint64_t workers);

}  // namespace starling::models
