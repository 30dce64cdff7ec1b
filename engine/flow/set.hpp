/// Set<T>, a typed, lazy data set in parts. An operation returns another set and computes nothing;
/// an action (collect, count, take, reduce, fold, for_each_part) runs the plan of its set and
/// returns a Result. docs/map-reduce.md lists all operations with their costs.
///
///     auto words = engine.text({"corpus.txt"}).value().flat_map(split_words);
///     auto counts = words.map([](const std::string& word) { return std::pair{word, 1}; })
///                        .reduce_by_key(std::plus<>{})
///                        .collect();
///
/// The functions that a set is given are copied, and called from several threads at once. The same
/// functions on the same data give the same records in the same order with any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/catch_errors.hpp"
#include "starling/base/check.hpp"
#include "starling/engine/flow/chain/any_chain.hpp"
#include "starling/engine/flow/chain/by_key.hpp"
#include "starling/engine/flow/chain/join.hpp"
#include "starling/engine/flow/chain/narrow.hpp"
#include "starling/engine/flow/chain/shuffle_reader.hpp"
#include "starling/engine/flow/plan/plan.hpp"
#include "starling/engine/flow/plan/runner.hpp"
#include "starling/engine/flow/requirements.hpp"
#include "starling/engine/flow/shuffle_stages.hpp"
#include "starling/engine/flow/sort_stages.hpp"

namespace starling::flow {

/// `C` is the chain of operations since the last shuffle. A set converts to `Set<T>`, which hides
/// its chain; records then leave the chain in batches. Copies share their data. Thread-safe, except
/// for assignment.
template <class T, class C = AnyChain<T>>
class Set {
 public:
  using Value = T;

  Set(std::shared_ptr<Runner> runner, C chain)
      : runner_(std::move(runner)), chain_(std::move(chain)) {
    require_record<T>();
  }
  template <class D>
  requires(std::same_as<C, AnyChain<T>> && !std::same_as<D, C>) Set(const Set<T, D>& other)
      : Set(other.runner(), C{other.chain()}) {}

  [[nodiscard]] const std::shared_ptr<Runner>& runner() const { return runner_; }
  [[nodiscard]] const C& chain() const { return chain_; }
  [[nodiscard]] Part parts() const { return chain_.parts(); }
  /// Returns a line for each stage that collect() would run.
  [[nodiscard]] std::string plan() const {
    return print(make_plan(make_stage(chain_, "collect", [](Task&, const C&) { return 0; })));
  }

  // --- narrow operations: no data moves ---------------------------------------------------------

  template <class F>
  [[nodiscard]] auto map(F f) const {
    require_function<F, T>();
    return make(MapChain<C, F>{chain_, std::move(f)});
  }
  template <class F>
  [[nodiscard]] auto filter(F f) const {
    require_predicate<F, T>();
    return make(FilterChain<C, F>{chain_, std::move(f)});
  }
  /// `f` returns a range, whose elements are the new records. An element may be a std::string_view,
  /// or a pair or tuple of such views and other values: the new records have strings. A view must
  /// be of text of the record (if `f` takes the record by reference) or of the range, and must stay
  /// valid until the iterator moves on. A reduce_by_key() directly after it makes a string only of
  /// each key's first view; other operations make a string of each view.
  template <class F>
  [[nodiscard]] auto flat_map(F f) const {
    require_range_function<F, T>();
    return make(FlatMapChain<C, F>{chain_, std::move(f)});
  }
  /// Pairs each record with its key `f(record)`.
  template <class F>
  [[nodiscard]] auto key_by(F f) const {
    return map([f = std::move(f)](const T& record) { return std::pair{f(record), record}; });
  }
  /// Keeps each record with the probability `fraction`. The same seed keeps the same records.
  [[nodiscard]] auto sample(double fraction, std::uint64_t seed) const {
    return make(SampleChain<C>{chain_, fraction, seed});
  }
  /// Returns the parts of this set, then those of the other.
  template <class D>
  [[nodiscard]] auto union_with(const Set<T, D>& other) const {
    return make(UnionChain<C, D>{chain_, other.chain()});
  }
  /// Pairs each record with its position, from 0. Computes this set twice: first to count.
  [[nodiscard]] auto zip_with_index() const {
    return make(IndexChain<C>{chain_, count_stage(chain_)});
  }

  // --- shuffles: records move to other parts ----------------------------------------------------
  // `parts` is the number of parts of the result; 0 stands for the engine's default.

  /// Sends each pair to the part that the partitioner names for its key.
  template <class P>
  [[nodiscard]] auto partition_by(const P& partitioner) const {
    require_pairs<T>();
    static_assert(Partitioner<P, typename T::first_type>,
                  "a partitioner has parts(), part_of(key) and print(), all const");
    STARLING_CHECK(partitioner.parts() > 0);
    return make(PartitionChain<T>{partition_stage(chain_, partitioner), "partition_by",
                                  partitioner.parts()});
  }
  /// Returns one pair for each key: the key, and `f` of all values of the key. `f` must be
  /// associative; it is applied before the shuffle too, so each task sends a key only once or, if
  /// the task spills, a few times.
  template <class F>
  [[nodiscard]] auto reduce_by_key(F f, Part parts = 0) const {
    require_pairs<T>();
    require_combiner<F, typename T::second_type>();
    return reduce_pairs(*this, "reduce_by_key", std::move(f), parts);
  }
  /// Returns one pair for each key, with all its values in the order of this set. The values of one
  /// key must fit into memory.
  [[nodiscard]] auto group_by_key(Part parts = 0) const {
    require_key_of_pairs<T>();
    parts = or_default(parts);
    return make(GroupChain<typename T::first_type, typename T::second_type>{
        group_stage(chain_, "group_by_key", parts), "group_by_key", parts});
  }
  /// Returns each different record once.
  [[nodiscard]] auto distinct(Part parts = 0) const {
    require_key<T>();
    const auto keyed = map([](const T& record) { return std::pair{record, true}; });
    return reduce_pairs(keyed, "distinct", std::logical_or<>{}, parts)
        .map([](const std::pair<T, bool>& pair) { return pair.first; });
  }
  /// Returns the records sorted by `key(record)`: those of part 0 come before those of part 1, and
  /// so on. Stable. Computes this set twice: first to sample keys. `std::identity` sorts records by
  /// themselves, without a copy of each as its key.
  template <class F>
  [[nodiscard]] auto sort_by(F key, Part parts = 0) const {
    require_function<F, T>();
    using K = std::decay_t<std::invoke_result_t<const F&, const T&>>;
    require_sortable_key<K>();
    parts = or_default(parts);
    return make(
        SortChain<SortRecord<T, K, F>>{sort_stage<K>(chain_, key, parts), "sort_by", parts});
  }

  /// Joins with another set of pairs with the same type of key: returns a pair of the key and both
  /// values for each two values of equal keys. The values of one key must fit into memory on both
  /// sides.
  template <class U, class D>
  [[nodiscard]] auto join(const Set<U, D>& other, Part parts = 0) const {
    return join_as<InnerJoin>(other, parts);
  }
  /// Does the same, and keeps each pair of this set whose key is not in the other set; the other
  /// value is then nullopt.
  template <class U, class D>
  [[nodiscard]] auto left_join(const Set<U, D>& other, Part parts = 0) const {
    return join_as<LeftJoin>(other, parts);
  }
  /// Does what left_join() does, and also keeps each pair of the other set whose key is not in this
  /// set.
  template <class U, class D>
  [[nodiscard]] auto full_join(const Set<U, D>& other, Part parts = 0) const {
    return join_as<FullJoin>(other, parts);
  }
  /// Returns one pair for each key of either set: the key, and all its values in this set and in
  /// the other one.
  template <class U, class D>
  [[nodiscard]] auto cogroup(const Set<U, D>& other, Part parts = 0) const {
    return join_as<Cogroup>(other, parts);
  }

  // --- reuse ------------------------------------------------------------------------------------

  /// Returns a set of the same records that keeps them, after the first action that needs them,
  /// until it and all sets that were made of it are destroyed. The records are spilled if they do
  /// not fit into the memory limit.
  [[nodiscard]] auto cache() const {
    return make(CacheChain<T>{cache_stage(chain_), "cache", chain_.parts()});
  }
  /// Applies `step(set, iteration)`, which returns a Set<T>, `iterations` times. Computes and
  /// caches the set after each iteration, and releases the one before. On several nodes, a program
  /// that calls iterate(1, ...) in a loop releases no set.
  template <class F>
  [[nodiscard]] Result<Set<T>> iterate(std::uint32_t iterations, const F& step) const {
    return iterate(iterations, step, [](const Set<T>&) { return Result<bool>{true}; });
  }
  /// Does the same, but ends early if `goes_on(set)` returns false for the set after an iteration.
  /// If `goes_on` returns an Error, iterate() returns this Error. `goes_on` may run actions.
  template <class F, class G>
  [[nodiscard]] Result<Set<T>> iterate(std::uint32_t iterations, const F& step,
                                       const G& goes_on) const {
    static_assert(std::is_invocable_r_v<Set<T>, const F&, const Set<T>&, std::uint32_t>,
                  "the function of iterate() makes a set of a set: "
                  "`Set<T> step(const Set<T>& set, std::uint32_t iteration)`");
    Set<T> current = *this;
    StagePtr former;
    for (std::uint32_t iteration = 0; iteration < iterations; ++iteration) {
      const Set<T> next = step(std::as_const(current), iteration);
      auto kept = runner_->keep(cache_stage(next.chain()), former);
      if (!kept) return std::move(kept).error();
      former = *std::move(kept);
      current = make(CacheChain<T>{former, "iterate", next.parts()});
      const Result<bool> has_next = goes_on(std::as_const(current));
      if (!has_next) return has_next.error();
      if (!*has_next) break;
    }
    return current;
  }

  // --- actions ----------------------------------------------------------------------------------

  /// Returns all records, in the order of the parts.
  [[nodiscard]] Result<std::vector<T>> collect() const { return take(UINT64_MAX); }
  /// Returns the first `limit` records. Each part stops after `limit` records.
  [[nodiscard]] Result<std::vector<T>> take(std::uint64_t limit) const {
    const auto compute = [limit](Task& task, const C& chain) {
      std::vector<T> records;
      if (limit == 0) return records;
      chain.run(task, task.part(), [&]<class R>(R&& record) {
        records.push_back(std::forward<R>(record));
        return records.size() < limit;
      });
      return records;
    };
    auto parts = run("collect", compute);
    if (!parts) return std::move(parts).error();
    std::vector<T> all;
    for (const auto& part : *parts)
      for (std::size_t i = 0; i < part->size() && all.size() < limit; ++i)
        all.push_back((*part)[i]);
    return all;
  }
  [[nodiscard]] Result<std::uint64_t> count() const {
    auto outputs = runner_->run(count_stage(chain_));
    if (!outputs) return std::move(outputs).error();
    std::uint64_t sum = 0;
    for (const Output& output : *outputs) sum += *static_cast<const std::uint64_t*>(output.get());
    return sum;
  }
  /// Returns `f` of all records, in their order; nothing if there are none. `f` must be
  /// associative.
  template <class F>
  [[nodiscard]] Result<std::optional<T>> reduce(F f) const {
    require_combiner<F, T>();
    const auto add = [f](std::optional<T> sum, const T& record) -> std::optional<T> {
      if (!sum) return record;
      return std::invoke(f, std::as_const(*sum), record);
    };
    return fold(
        std::optional<T>{}, add,
        [add](const std::optional<T>& a, const std::optional<T>& b) { return b ? add(a, *b) : a; });
  }
  /// Folds the records of each part, `sum = add(move(sum), record)` from `zero` on, then the sums
  /// of the parts in their order, `merge(sum, sum)`.
  template <class A, class Add, class Merge>
  [[nodiscard]] Result<A> fold(const A& zero, const Add& add, const Merge& merge) const {
    static_assert(std::is_invocable_r_v<A, const Add&, A&&, const T&>,
                  "fold(): `add` makes a sum of a sum and a record: `A add(A, const T&)`");
    static_assert(std::is_invocable_r_v<A, const Merge&, const A&, const A&>,
                  "fold(): `merge` makes a sum of two: `A merge(const A&, const A&)`");
    const auto compute = [zero, add](Task& task, const C& chain) {
      A sum = zero;
      chain.run(task, task.part(), [&](const T& record) {
        sum = std::invoke(add, std::move(sum), record);
        return true;
      });
      return sum;
    };
    auto sums = run("fold", compute);
    if (!sums) return std::move(sums).error();
    auto total = catch_errors([&]() -> Result<A> {
      A merged = zero;
      for (const auto& sum : *sums) merged = std::invoke(merge, std::as_const(merged), *sum);
      return merged;
    });
    if (!total) return std::move(total).error().within("fold");
    return total;
  }
  /// For each part, on the part's thread: calls `open(part)`, which returns a function, and then
  /// this function for each record. If a part fails, it is opened again.
  template <class F>
  [[nodiscard]] Result<void> for_each_part(const F& open) const {
    static_assert(std::invocable<const F&, Part>,
                  "for_each_part() takes a function of the part's number, which returns a function "
                  "of a record");
    const auto compute = [open](Task& task, const C& chain) {
      auto use = std::invoke(open, task.part());
      chain.run(task, task.part(), [&use](const T& record) { return use(record), true; });
      return true;
    };
    auto done = run("for_each_part", compute);
    if (!done) return std::move(done).error();
    return {};
  }
  /// For other actions: runs `compute(task, chain)` for each part, and returns its results.
  template <class F>
  [[nodiscard]] auto run(const char* name, const F& compute) const {
    using O = std::invoke_result_t<const F&, Task&, const C&>;
    using Outputs = std::vector<std::shared_ptr<const O>>;
    auto outputs = runner_->run(make_stage(chain_, name, compute));
    if (!outputs) return Result<Outputs>{std::move(outputs).error()};
    Outputs typed;
    for (const Output& output : *outputs)
      typed.push_back(std::static_pointer_cast<const O>(output));
    return Result<Outputs>{std::move(typed)};
  }

 private:
  template <class D>
  [[nodiscard]] auto make(D chain) const {
    return Set<typename D::Value, D>{runner_, std::move(chain)};
  }
  [[nodiscard]] Part or_default(Part parts) const {
    return parts > 0 ? parts : runner_->default_parts();
  }

  template <class S, class F>
  [[nodiscard]] auto reduce_pairs(const S& pairs, const char* name, F f, Part parts) const {
    using K = typename S::Value::first_type;
    using V = typename S::Value::second_type;
    require_key<K>();
    parts = or_default(parts);
    return make(ReduceChain<K, V, F>{combine_stage(pairs.chain(), name, parts, f), name, parts, f});
  }
  template <class Kind, class U, class D>
  [[nodiscard]] auto join_as(const Set<U, D>& other, Part parts) const {
    require_key_of_pairs<T>();
    require_pairs<U>();
    using K = typename T::first_type;
    static_assert(std::same_as<K, typename U::first_type>,
                  "both sets of a join need the same type of key");
    parts = or_default(parts);
    return make(JoinChain<Kind, K, typename T::second_type, typename U::second_type>{
        group_stage(chain_, Kind::name, parts), group_stage(other.chain(), Kind::name, parts),
        parts});
  }

  std::shared_ptr<Runner> runner_;
  C chain_;
};

}  // namespace starling::flow
