/// Internal: the counter-based random number generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw,
/// "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3). It has no state: a thread
/// computes random numbers from its index, so that a backward pass can compute those of the forward
/// pass again.
#pragma once

#include <cstdint>

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Four words: the counter that philox() gets, or the random bits that it returns.
struct Philox {
  std::uint32_t word[4];
};

/// Returns the random bits for `counter` and `key`.
STARLING_HOST_DEVICE inline Philox philox(Philox counter, std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32U);
  std::uint32_t* c = counter.word;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53U} * c[0];
    const std::uint64_t q = std::uint64_t{0xCD9E8D57U} * c[2];
    c[0] = static_cast<std::uint32_t>(q >> 32U) ^ c[1] ^ low;
    c[1] = static_cast<std::uint32_t>(q);
    c[2] = static_cast<std::uint32_t>(p >> 32U) ^ c[3] ^ high;
    c[3] = static_cast<std::uint32_t>(p);
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return counter;
}

/// The random numbers of a layer; each layer and each micro-batch of a batch has different ones.
struct Draws {
  /// The address of the step's seed in the device's memory. A recorded graph contains only the
  /// address, so that it gets other random numbers whenever the seed changes.
  const std::uint64_t* seed = nullptr;
  /// The number of the layer's operation in the net's plan.
  std::uint32_t layer = 0;
  /// The number of the micro-batch in the batch.
  std::uint32_t micro_batch = 0;

  /// Returns the four random words number `index`.
  STARLING_HOST_DEVICE Philox at(Index index) const {
    return philox({{index, 0, layer, micro_batch}}, *seed);
  }
};

/// Turns 32 random bits into a uniform number in [0, bound) by Lemire's product, with a bias of
/// less than bound / 2^32.
STARLING_HOST_DEVICE inline std::uint32_t below(std::uint32_t bits, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{bits} * bound) >> 32U);
}

}  // namespace starling::models::cuda
