/// Narrow operations: each part of their result depends on one part of their input, so they run in
/// the loop of their source. Thread-safe.
#pragma once

#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "starling/base/random.hpp"
#include "starling/engine/flow/chain/chain.hpp"

namespace starling::flow {

/// The base of all operations on one chain.
template <Chain C>
class NarrowChain {
 public:
  NarrowChain(C input, const char* name) : input_(std::move(input)), name_(name) {}

  [[nodiscard]] Part parts() const { return input_.parts(); }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return input_.inputs(); }
  void add_reads(Part part, std::vector<StageRead>& reads) const { input_.add_reads(part, reads); }
  [[nodiscard]] std::string operations() const { return input_.operations() + " | " + name_; }
  [[nodiscard]] std::uint64_t source_hash() const { return source_hash_of(input_); }

 protected:
  [[nodiscard]] const C& input() const { return input_; }

 private:
  C input_;
  const char* name_;
};

template <Chain C, class F>
class MapChain : public NarrowChain<C> {
 public:
  using Value = std::decay_t<std::invoke_result_t<const F&, const typename C::Value&>>;

  MapChain(C input, F f) : NarrowChain<C>(std::move(input), "map"), f_(std::move(f)) {}

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    this->input().run(task, part,
                      [&](const auto& record) { return sink(std::invoke(f_, record)); });
  }

 private:
  F f_;
};

template <Chain C, class F>
class FilterChain : public NarrowChain<C> {
 public:
  using Value = typename C::Value;

  FilterChain(C input, F f) : NarrowChain<C>(std::move(input), "filter"), f_(std::move(f)) {}

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    this->input().run(task, part, [&]<class R>(R&& record) {
      return !std::invoke(f_, std::as_const(record)) || sink(std::forward<R>(record));
    });
  }

 private:
  F f_;
};

/// The range that a function of flat_map() returns. It may be a view of the record, and its
/// elements may have views of the record's text (Owned).
template <class F, class T>
using Flattened = std::invoke_result_t<const F&, const T&>;

template <Chain C, class F>
class FlatMapChain : public NarrowChain<C> {
 public:
  using Value = Owned<std::ranges::range_value_t<Flattened<F, typename C::Value>>>;

  FlatMapChain(C input, F f) : NarrowChain<C>(std::move(input), "flat_map"), f_(std::move(f)) {}

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    this->input().run(task, part, [&](const auto& record) {
      auto&& range = std::invoke(f_, record);
      for (auto&& element : range) {
        task.count_made();
        if (!sink(value_of<Sink>(element))) return false;
      }
      return true;
    });
  }

 private:
  using Range = Flattened<F, typename C::Value>;

  /// Returns an element as a record, without a copy if possible; with views if `Sink` takes them.
  template <class Sink, class E>
  static decltype(auto) value_of(E& element) {
    using Element = std::remove_const_t<E>;
    constexpr bool has_views = !std::is_same_v<Element, Owned<Element>>;
    if constexpr (std::is_same_v<Element, Value> || (TakesViews<Sink> && has_views))
      return given(element);
    else
      return static_cast<Value>(given(element));
  }
  /// Returns an element that may be moved from if no one else has it.
  template <class E>
  static decltype(auto) given(E& element) {
    if constexpr (Vector<Range> || Tuple<Range> ||
                  !std::is_reference_v<std::ranges::range_reference_t<Range>>)
      return std::move(element);
    else
      return std::as_const(element);
  }

  F f_;
};

/// Keeps each record with the probability `fraction`. The seed and the part decide which records.
template <Chain C>
class SampleChain : public NarrowChain<C> {
 public:
  using Value = typename C::Value;

  SampleChain(C input, double fraction, std::uint64_t seed)
      : NarrowChain<C>(std::move(input), "sample"), fraction_(fraction), seed_(seed) {}

  [[nodiscard]] std::uint64_t source_hash() const {
    return mix(NarrowChain<C>::source_hash() ^ hash_of(std::pair{fraction_, seed_}));
  }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    Random random = Random::stream(seed_, part);
    this->input().run(task, part, [&]<class R>(R&& record) {
      return random.real() >= fraction_ || sink(std::forward<R>(record));
    });
  }

 private:
  double fraction_;
  std::uint64_t seed_;
};

/// Pairs each record with its position in the data set. `counts` is a stage that has counted the
/// records of each part.
template <Chain C>
class IndexChain : public NarrowChain<C> {
 public:
  using Value = std::pair<typename C::Value, std::uint64_t>;

  IndexChain(C input, StagePtr counts)
      : NarrowChain<C>(std::move(input), "zip_with_index"), counts_(std::move(counts)) {}

  [[nodiscard]] std::vector<StagePtr> inputs() const {
    auto stages = this->input().inputs();
    stages.push_back(counts_);
    return stages;
  }
  void add_reads(Part part, std::vector<StageRead>& reads) const {
    this->input().add_reads(part, reads);
    reads.push_back({counts_, std::nullopt, 0});
  }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    const auto counts = task.outputs<std::uint64_t>(counts_);
    std::uint64_t index = 0;
    for (Part i = 0; i < part; ++i) index += *counts[i];
    this->input().run(task, part, [&]<class R>(R&& record) {
      return sink(Value{std::forward<R>(record), index++});
    });
  }

 private:
  StagePtr counts_;
};

/// Gives the parts of one chain, and then those of another.
template <Chain C, Chain D>
class UnionChain {
 public:
  using Value = typename C::Value;

  UnionChain(C first, D second) : first_(std::move(first)), second_(std::move(second)) {}

  [[nodiscard]] Part parts() const { return first_.parts() + second_.parts(); }
  [[nodiscard]] std::vector<StagePtr> inputs() const {
    auto stages = first_.inputs();
    for (StagePtr& stage : second_.inputs()) stages.push_back(std::move(stage));
    return stages;
  }
  void add_reads(Part part, std::vector<StageRead>& reads) const {
    if (part < first_.parts())
      first_.add_reads(part, reads);
    else
      second_.add_reads(part - first_.parts(), reads);
  }
  [[nodiscard]] std::string operations() const {
    return "(" + first_.operations() + ") union (" + second_.operations() + ")";
  }
  [[nodiscard]] std::uint64_t source_hash() const {
    return mix(mix(source_hash_of(first_)) ^ source_hash_of(second_));
  }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    if (part < first_.parts())
      first_.run(task, part, sink);
    else
      second_.run(task, part - first_.parts(), sink);
  }

 private:
  C first_;
  D second_;
};

}  // namespace starling::flow
