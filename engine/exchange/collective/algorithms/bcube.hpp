#pragma once

#include <optional>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// BCube(b, k): member numbers have k digits to base b, and port d leads to the b-1 members that
/// differ in digit d only. The vector is cut into k sections (the paper's threads), and each
/// section into n = b^k chunks. In round r, section e is summed along digit (e + r) mod k, so that
/// no two sections use the same port in one round.
///   k rounds to sum and k rounds to send the sums back. Each port sends 2(n-1)/(kn) of the vector:
///   1/k of what the one port of a member sends under the algorithm `parts`. So both algorithms
///   take the same time for their bytes if a member's k ports together have the bandwidth of that
///   one port.
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

  /// Sums chunk c of each section at member c, and does not use the root. Requires: check(n).
  [[nodiscard]] Schedule reduce(std::size_t n, Rank /*root*/) const {
    Schedule schedule{.members = n, .ports = k, .chunks = equal_chunks(k * n), .rounds = {}};
    const std::size_t b = *base(n);
    // The digit d of a member's number, where `unit` is b^d.
    const auto digit_of = [b](std::size_t member, std::size_t unit) { return member / unit % b; };
    if (b > 1) schedule.rounds.resize(k);
    for (std::size_t e = 0; b > 1 && e < k; ++e)
      for (std::size_t destination = 0; destination < n; ++destination)
        for (std::size_t round = 0; round < k; ++round)
          for (std::size_t from = 0; from < n; ++from) {
            const std::size_t port = (e + round) % k;
            const std::size_t unit = power(b, port);
            // Earlier rounds have moved the sums of this chunk to the members that have the
            // destination's digits e, e + 1, ..., e + round - 1 (mod k).
            bool has_sum = true;
            for (std::size_t earlier = 0; earlier < round; ++earlier) {
              const std::size_t earlier_unit = power(b, (e + earlier) % k);
              has_sum =
                  has_sum && digit_of(from, earlier_unit) == digit_of(destination, earlier_unit);
            }
            if (!has_sum || digit_of(from, unit) == digit_of(destination, unit)) continue;
            // The receiver has the sender's number with one digit replaced.
            const std::size_t to =
                from - digit_of(from, unit) * unit + digit_of(destination, unit) * unit;
            schedule.rounds[round].push_back({static_cast<Rank>(from), static_cast<Rank>(to),
                                              static_cast<ChunkId>(e * n + destination),
                                              ReceiveAction::add, static_cast<std::uint8_t>(port)});
          }
    return schedule;
  }

  /// Returns b for which b^k is `members`, if there is one.
  [[nodiscard]] std::optional<std::size_t> base(std::size_t members) const {
    for (std::size_t b = 1; power(b, k) <= members; ++b)
      if (power(b, k) == members) return b;
    return std::nullopt;
  }

  /// Returns b^exponent. If that is 2^32 or more, returns some number that is 2^32 or more.
  static std::size_t power(std::size_t b, std::size_t exponent) {
    std::size_t result = 1;
    for (; exponent > 0 && result <= UINT32_MAX; --exponent) result *= b;
    return result;
  }

  bool operator==(const BCube&) const = default;
};

}  // namespace starling::collective
