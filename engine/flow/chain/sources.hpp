/// Sources without input: the values of a container, and values that a function generates.
/// Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/flow/chain/chain.hpp"

namespace starling::flow {

/// Returns the first index of a part when `size` indices are divided evenly among `parts` parts.
[[nodiscard]] inline std::uint64_t first_index(std::uint64_t size, Part part, Part parts) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{size} * part / parts);
}

/// Calls `use(i)` for each index from `i` on that is below `end`, until `use` returns false. Calls
/// Task::count_read() once for a block of indices, not for each. If `use` throws, `i` is the index
/// with which it was called.
template <class Use>
void for_each_index(const Task& task, std::uint64_t& i, std::uint64_t end, const Use& use) {
  for (bool goes_on = true; goes_on && i < end;) {
    const std::uint64_t begin = i;
    const std::uint64_t block_end = std::min(end, begin + Task::asks_every);
    for (; goes_on && i < block_end; ++i) goes_on = use(i);
    task.count_read(i - begin);
  }
}

/// The values of a vector, in its order.
template <class T>
class CollectionChain {
 public:
  using Value = T;

  CollectionChain(std::vector<T> values, Part parts)
      : values_(std::make_shared<const std::vector<T>>(std::move(values))), parts_(parts) {}

  [[nodiscard]] Part parts() const { return parts_; }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return {}; }
  void add_reads(Part, std::vector<StageRead>&) const {}
  [[nodiscard]] std::string operations() const { return "collection"; }
  [[nodiscard]] std::uint64_t source_hash() const {
    if (*hash_ == 0) *hash_ = hash_of(*values_);
    return *hash_;
  }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    std::uint64_t i = first_index(values_->size(), part, parts_);
    const std::uint64_t end = first_index(values_->size(), part + 1, parts_);
    const std::vector<T>& values = *values_;
    run_located(
        [&] { for_each_index(task, i, end, [&](std::uint64_t at) { return sink(values[at]); }); },
        [&] { return "collection: record " + std::to_string(i); });
  }

 private:
  std::shared_ptr<const std::vector<T>> values_;
  /// The hash of the values; 0 until someone has asked for it.
  std::shared_ptr<std::atomic<std::uint64_t>> hash_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  Part parts_;
};

/// The values f(0), f(1), ... f(count - 1).
template <class F>
class GeneratorChain {
 public:
  using Value = std::decay_t<std::invoke_result_t<const F&, std::uint64_t>>;

  /// `name` is what plans and errors call the source; `data_hash` is a hash of all that f returns,
  /// or 0 if it is not known.
  GeneratorChain(std::uint64_t count, F f, Part parts, std::string name, std::uint64_t data_hash)
      : count_(count),
        f_(std::move(f)),
        parts_(parts),
        name_(std::move(name)),
        data_hash_(data_hash) {}

  [[nodiscard]] Part parts() const { return parts_; }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return {}; }
  void add_reads(Part, std::vector<StageRead>&) const {}
  [[nodiscard]] std::string operations() const { return name_; }
  [[nodiscard]] std::uint64_t source_hash() const { return mix(count_ ^ mix(data_hash_)); }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    std::uint64_t i = first_index(count_, part, parts_);
    const std::uint64_t end = first_index(count_, part + 1, parts_);
    run_located(
        [&] {
          for_each_index(task, i, end, [&](std::uint64_t at) { return sink(std::invoke(f_, at)); });
        },
        [&] { return name_ + ": record " + std::to_string(i); });
  }

 private:
  std::uint64_t count_;
  F f_;
  Part parts_;
  std::string name_;
  std::uint64_t data_hash_;
};

}  // namespace starling::flow
