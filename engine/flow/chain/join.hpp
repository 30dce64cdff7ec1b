/// Joins: chains that read two shuffles of the same partitioner. Thread-safe.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "starling/engine/flow/chain/shuffle_reader.hpp"
#include "starling/engine/flow/shuffle/key_groups.hpp"

namespace starling::flow {

/// The kinds of joins. `Value` is what a key has in the result. `emit` gives all results of a key
/// with the values `left` and `right` to `use`, until `use` returns false; then `emit` returns
/// false, too.

/// Gives a result for each pair of values.
struct InnerJoin {
  static constexpr const char* name = "join";
  template <class V, class W>
  using Value = std::pair<V, W>;

  template <class V, class W, class Use>
  static bool emit(const std::vector<V>& left, const std::vector<W>& right, const Use& use) {
    for (const V& v : left)
      for (const W& w : right)
        if (!use(Value<V, W>{v, w})) return false;
    return true;
  }
};

/// Gives the results of InnerJoin, and one for each value on the left whose key is not on the
/// right.
struct LeftJoin {
  static constexpr const char* name = "left_join";
  template <class V, class W>
  using Value = std::pair<V, std::optional<W>>;

  template <class V, class W, class Use>
  static bool emit(const std::vector<V>& left, const std::vector<W>& right, const Use& use) {
    if (!right.empty()) return InnerJoin::emit(left, right, use);
    for (const V& v : left)
      if (!use(Value<V, W>{v, std::nullopt})) return false;
    return true;
  }
};

/// Gives the results of LeftJoin, and one for each value on the right whose key is not on the left.
struct FullJoin {
  static constexpr const char* name = "full_join";
  template <class V, class W>
  using Value = std::pair<std::optional<V>, std::optional<W>>;

  template <class V, class W, class Use>
  static bool emit(const std::vector<V>& left, const std::vector<W>& right, const Use& use) {
    if (!left.empty())
      return LeftJoin::emit(left, right, [&](const auto& pair) {
        return use(Value<V, W>{pair.first, pair.second});
      });
    for (const W& w : right)
      if (!use(Value<V, W>{std::nullopt, w})) return false;
    return true;
  }
};

/// Gives one result for each key: all its values on both sides.
struct Cogroup {
  static constexpr const char* name = "cogroup";
  template <class V, class W>
  using Value = std::pair<std::vector<V>, std::vector<W>>;

  template <class V, class W, class Use>
  static bool emit(const std::vector<V>& left, const std::vector<W>& right, const Use& use) {
    return use(Value<V, W>{left, right});
  }
};

/// Joins the values V of the shuffle `left` and the values W of the shuffle `right` by their keys,
/// as `Kind` says.
template <class Kind, class K, class V, class W>
class JoinChain {
 public:
  using Value = std::pair<K, typename Kind::template Value<V, W>>;

  JoinChain(StagePtr left, StagePtr right, Part parts)
      : left_(std::move(left)), right_(std::move(right)), parts_(parts) {}

  [[nodiscard]] Part parts() const { return parts_; }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return {left_, right_}; }
  void add_reads(Part part, std::vector<StageRead>& reads) const {
    reads.push_back({left_, std::nullopt, part});
    reads.push_back({right_, std::nullopt, part});
  }
  [[nodiscard]] std::string operations() const { return Kind::name; }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    ShuffleReader<Keyed<K, V>, HashOrder> left{task, left_, part};
    ShuffleReader<Keyed<K, W>, HashOrder> right{task, right_, part};
    KeyGroups<K, std::pair<std::vector<V>, std::vector<W>>> groups;
    std::uint64_t key_number = 0;
    const auto emit = [&](K& key, auto& values) {
      const bool goes_on = Kind::emit(values.first, values.second, [&](auto&& value) {
        task.count_made();  // one key may have any number of pairs
        return sink(Value{key, std::forward<decltype(value)>(value)});
      });
      ++key_number;
      return goes_on;
    };
    run_located(
        [&] {
          while (left.get() || right.get()) {
            const std::uint64_t hash = std::min(next_hash(left), next_hash(right));
            read_records_with_hash(left, hash, [&](auto& r) {
              groups[std::move(r.key)].first.push_back(std::move(r.value));
            });
            read_records_with_hash(right, hash, [&](auto& r) {
              groups[std::move(r.key)].second.push_back(std::move(r.value));
            });
            if (!groups.drain(emit)) return;
          }
        },
        [&] { return location_in_part(operations(), part, key_number); });
  }

 private:
  template <class Reader>
  static std::uint64_t next_hash(const Reader& reader) {
    return reader.get() ? reader.get()->hash : std::numeric_limits<std::uint64_t>::max();
  }

  StagePtr left_;
  StagePtr right_;
  Part parts_;
};

}  // namespace starling::flow
