#pragma once

#include <optional>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// BCube(b, k): member numbers have k digits to base b, and port d leads to the b-1 members that
/// differ in digit d only. The vector has k threads, and each thread b^k chunks. Thread e reduces
/// along digit (e + s) mod k in step s, so that all threads use different ports at all times.
///   k rounds to sum and k back, 2(n-1)/(kn) of the vector a port: 1/k of what `parts` needs on its
///   one port. If the k ports together have the bandwidth of that one, both send the bytes in the
///   same time.
/// Source: Wang et al. 2018, "BML: A High-performance, Low-cost Gradient Synchronization Algorithm
/// for DML Training" (NeurIPS 2018), section 3.
struct BCube {
  static constexpr std::string_view name = "bcube";
  static constexpr std::string_view form = "bcube:k=2";
  static constexpr std::string_view summary =
      "b^k members with k ports each, which exchange digit by digit";

  std::size_t k = 2;

  static BCube parse(SpecReader& reader) {
    return {static_cast<std::size_t>(reader.count("k", 2, 1, 16))};
  }
  [[nodiscard]] std::string options() const { return "k=" + std::to_string(k); }

  [[nodiscard]] Result<void> check(std::size_t members) const {
    if (base(members)) return {};
    const std::string exponent = "^" + std::to_string(k);
    return Error{print_count(members, "member") + " do not fill a cube of k=" + std::to_string(k) +
                 "; valid: 1, 2" + exponent + ", 3" + exponent + ", 4" + exponent + ", ..."};
  }

  /// Requires: check(n).
  [[nodiscard]] Schedule reduce(std::size_t n, Rank) const {
    Schedule schedule{.members = n, .ports = k, .chunks = equal_chunks(k * n), .rounds = {}};
    const std::size_t b = *base(n);
    if (b > 1) schedule.rounds.resize(k);
    for (std::size_t e = 0; b > 1 && e < k; ++e)
      for (std::size_t owner = 0; owner < n; ++owner)
        for (std::size_t s = 0; s < k; ++s)
          for (std::size_t from = 0; from < n; ++from) {
            const std::size_t digit = (e + s) % k;
            const std::size_t unit = power(b, digit);
            // The chunk is still at the members whose first s digits of this thread are the
            // owner's.
            bool has_chunk = true;
            for (std::size_t done = 0; done < s; ++done) {
              const std::size_t u = power(b, (e + done) % k);
              has_chunk = has_chunk && from / u % b == owner / u % b;
            }
            if (!has_chunk || from / unit % b == owner / unit % b) continue;
            const std::size_t to = from - from / unit % b * unit + owner / unit % b * unit;
            schedule.rounds[s].push_back({static_cast<Rank>(from), static_cast<Rank>(to),
                                          static_cast<ChunkId>(e * n + owner), ReceiveAction::add,
                                          static_cast<std::uint8_t>(digit)});
          }
    return schedule;
  }

  /// Returns b for which b^k is `members`, if there is one.
  [[nodiscard]] std::optional<std::size_t> base(std::size_t members) const {
    for (std::size_t b = 1; power(b, k) <= members; ++b)
      if (power(b, k) == members) return b;
    return std::nullopt;
  }

  /// Returns b^k, or a number above 2^32 if that is larger.
  static std::size_t power(std::size_t b, std::size_t k) {
    std::size_t result = 1;
    for (; k > 0 && result <= UINT32_MAX; --k) result *= b;
    return result;
  }

  bool operator==(const BCube&) const = default;
};

}  // namespace starling::collective
