/// The first records of a set in an order, as lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/flow/map_reduce.hpp"
#include "starling/actor/flow/save_text.hpp"

namespace starling::program {

/// The largest `top`, because top_lines() keeps twice as many records in memory.
inline constexpr std::uint64_t top_max = 1'000'000;

/// Returns the first `top` records in the order of `key_of(record)` as lines, or all if `top` is 0.
/// Equal keys stay in the order of the set.
template <class T, class C, class KeyOf>
[[nodiscard]] Result<flow::Set<std::string>> top_lines(const flow::MapReduce& engine,
                                                       const flow::Set<T, C>& set,
                                                       const KeyOf& key_of, std::uint64_t top) {
  using Lines = flow::Set<std::string>;
  if (top == 0) return Lines{set.sort_by(key_of).map(flow::line_of<T>)};
  const auto less = [&key_of](const T& a, const T& b) { return key_of(a) < key_of(b); };
  const auto first = [less, top](std::vector<T> records) {
    std::ranges::stable_sort(records, less);
    if (records.size() > top) records.resize(top);
    return records;
  };
  // Invariant: once there are `top` records, the first `top` of them are sorted, and each one after
  // them was less than the last of these when it was added.
  const auto add = [less, top, first](std::vector<T>&& records, const T& record) {
    if (records.size() >= top && !less(record, records[top - 1])) return std::move(records);
    records.push_back(record);
    return records.size() == top || records.size() == 2 * top ? first(std::move(records))
                                                              : std::move(records);
  };
  const auto merge = [first](const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> all = a;
    all.insert(all.end(), b.begin(), b.end());
    return first(std::move(all));
  };
  auto records = set.fold(std::vector<T>{}, add, merge);
  if (!records) return std::move(records).error();
  return Lines{engine.collection(*std::move(records)).map(flow::line_of<T>)};
}

}  // namespace starling::program
