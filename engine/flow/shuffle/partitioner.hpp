/// Partitioners decide to which part of the next stage a record goes. Plain values; thread-safe to
/// read.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/stage.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {

/// A user's own partitioner for keys K. Equal keys must get the same part, below parts().
template <class P, class K>
concept Partitioner = requires(const P& partitioner, const K& key) {
  { partitioner.parts() } -> std::convertible_to<Part>;
  { partitioner.part_of(key) } -> std::convertible_to<Part>;
  { partitioner.print() } -> std::convertible_to<std::string>;
};

/// Spreads keys evenly by their hashes.
class HashPartitioner {
 public:
  /// Requires: parts > 0.
  explicit HashPartitioner(Part parts) : parts_(parts) {}

  [[nodiscard]] Part parts() const noexcept { return parts_; }
  template <class K>
  [[nodiscard]] Part part_of(const K& key) const {
    return part_of_hash(hash_of(key));
  }
  /// Takes the upper half of the hash, so that the lower halves of the hashes in one part are
  /// spread evenly, too.
  [[nodiscard]] Part part_of_hash(std::uint64_t hash) const noexcept {
    return static_cast<Part>(((hash >> 32U) * parts_) >> 32U);
  }
  [[nodiscard]] std::string print() const { return "hash(" + std::to_string(parts_) + ")"; }

 private:
  Part parts_;
};

/// Gives each part a range of keys. `splitters` are sorted; `splitters[i]` is the last key of part
/// i and the first of part i + 1.
template <class K>
class RangePartitioner {
 public:
  RangePartitioner() = default;
  explicit RangePartitioner(std::vector<K> splitters) : splitters_(std::move(splitters)) {}

  static constexpr auto fields(auto& m) { return std::tie(m.splitters_); }

  [[nodiscard]] Part parts() const noexcept { return static_cast<Part>(splitters_.size() + 1); }
  [[nodiscard]] Part part_of(const K& key) const { return range_of(key).first; }
  /// Returns the first and the last part to which a key may go. They differ if the key is so
  /// frequent that it is a splitter several times.
  [[nodiscard]] std::pair<Part, Part> range_of(const K& key) const {
    const auto [first, last] = std::equal_range(splitters_.begin(), splitters_.end(), key);
    return {static_cast<Part>(first - splitters_.begin()),
            static_cast<Part>(last - splitters_.begin())};
  }
  /// Returns the part to which a key goes that comes from part `input_part` of the `input_parts`
  /// parts of the input. A frequent key is spread over the parts of range_of() in the order of the
  /// parts of the input, so that equal keys stay in their order.
  [[nodiscard]] Part part_of(const K& key, Part input_part, Part input_parts) const {
    const auto [first, last] = range_of(key);
    const std::uint64_t width = std::uint64_t{last} - first + 1;
    return first + static_cast<Part>(width * input_part / input_parts);
  }
  [[nodiscard]] std::string print() const { return "range(" + std::to_string(parts()) + ")"; }

 private:
  std::vector<K> splitters_;
};

/// A key of a sample, and how many keys of the data set it stands for.
template <class K>
struct SampledKey {
  K key{};
  double weight = 1;
};

/// Returns the splitters that divide the keys, of which `sample` is a sample, into `parts` parts of
/// about equal size, or no splitter if the sample is empty. A frequent key may be several
/// splitters. Requires: parts > 0.
template <class K>
[[nodiscard]] std::vector<K> choose_splitters(std::vector<SampledKey<K>> sample, Part parts) {
  std::ranges::stable_sort(sample, [](const auto& a, const auto& b) { return a.key < b.key; });
  double total = 0;
  for (const auto& sampled : sample) total += sampled.weight;
  std::vector<K> splitters;
  double before = 0;
  for (const auto& [key, weight] : sample) {
    before += weight;
    while (splitters.size() + 1 < parts &&
           before * parts >= total * static_cast<double>(splitters.size() + 1))
      splitters.push_back(key);
  }
  return splitters;
}

}  // namespace starling::flow
