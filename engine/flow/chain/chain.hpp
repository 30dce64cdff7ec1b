/// Chains. A chain is a source of records with the narrow operations on it, as one type, so that
/// the compiler makes one loop of them. `run(task, part, sink)` calls `sink(record)` for each
/// record of a part until `sink` returns false. Chains are constant; any thread may run them.
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/failure.hpp"
#include "starling/engine/flow/plan/task.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {

/// A sink that also takes records with views (Owned). `take` must not keep the views.
template <class Take>
struct ViewSink {
  static constexpr bool takes_views = true;

  template <class R>
  bool operator()(R&& record) const {
    return take(std::forward<R>(record));
  }

  Take take;
};
template <class Sink>
concept TakesViews = requires {
  requires Sink::takes_views;
};

/// A sink that takes every record; for the concept below.
struct AnySink {
  template <class R>
  bool operator()(R&&) const {
    return true;
  }
};

template <class C>
concept Chain = std::copy_constructible<C> &&
    requires(const C& chain, Task& task, Part part, std::vector<StageRead>& reads,
             const AnySink& sink) {
  typename C::Value;
  { chain.parts() } -> std::same_as<Part>;
  /// The stages whose outputs run() reads.
  { chain.inputs() } -> std::same_as<std::vector<StagePtr>>;
  /// Adds to `reads` what run() reads of these stages for one part.
  { chain.add_reads(part, reads) } -> std::same_as<void>;
  /// Returns the names of the operations, such as "text | map | filter".
  { chain.operations() } -> std::same_as<std::string>;
  chain.run(task, part, sink);
};

/// Returns a hash of the data that a chain reads from sources and of the arguments of its
/// operations that are not functions. Returns 0 if the chain has no `source_hash()`, because it
/// then has neither such data nor such arguments.
template <Chain C>
[[nodiscard]] std::uint64_t source_hash_of(const C& chain) {
  if constexpr (requires { chain.source_hash(); })
    return chain.source_hash();
  else
    return 0;
}

/// Returns the location of a record for errors: "reduce_by_key: part 3, record 17" (both from 0).
[[nodiscard]] inline std::string location_in_part(const std::string& source, Part part,
                                                  std::uint64_t record) {
  return source + ": part " + std::to_string(part) + ", record " + std::to_string(record);
}

}  // namespace starling::flow
