/// Seeded randomness with the same numbers on every machine and with every standard library.
/// Nothing here reads a clock or a device: code that needs randomness is given a Random.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace starling {

/// Mixes the bits of x: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// xoshiro256++ (Blackman, Vigna, 2019). A UniformRandomBitGenerator; not for secrets.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (auto& word : state_) word = seed = mix(seed);
  }

  /// Returns a generator that is independent of those for other keys, e.g.
  /// Random::stream(seed, worker, step).
  template <class... Keys>
  static constexpr Random stream(std::uint64_t seed, Keys... keys) noexcept {
    ((seed = mix(seed ^ mix(static_cast<std::uint64_t>(keys)))), ...);
    return Random{seed};
  }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

  constexpr result_type operator()() noexcept {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Draws a uniform integer in [0, bound), without bias (Lemire 2019). Requires: bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>((*this)()) * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t threshold = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < threshold)
        product = static_cast<Wide>((*this)()) * bound;
    }
    return static_cast<std::uint64_t>(product >> 64U);
  }

  /// Draws a uniform number in [0, 1).
  constexpr double real() noexcept { return static_cast<double>((*this)() >> 11U) * 0x1p-53; }

  /// Draws a uniform number in [low, high).
  constexpr double real(double low, double high) noexcept { return low + (high - low) * real(); }

  /// Draws a standard normal number (Box-Muller; the second value is discarded to keep the state
  /// small).
  double normal() noexcept {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - real()));
    return radius * std::cos(2.0 * std::numbers::pi * real());
  }

  /// Draws from the exponential distribution with the given mean.
  double exponential(double mean) noexcept { return -mean * std::log(1.0 - real()); }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace starling
