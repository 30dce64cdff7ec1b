/// Makes a set of samples the data on which a model is trained or tested, without a file.
///
///     auto train = starling::flow::to_table(samples).value();
///     auto outcome = starling::actor::train(model, train, nullptr, options);
#pragma once

#include <utility>

#include "starling/actor/flow/sample_rows.hpp"
#include "starling/actor/flow/samples.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/flow/set.hpp"
#include "starling/models/table.hpp"

namespace starling::flow {

/// Computes the set once, and returns its samples in the order of the set as a table, which is
/// equal to that of a file with the same numbers. The table, and for a moment the samples too, must
/// fit into memory. An Error names the sample
/// - that has another number of features than the other samples, or than `options` say;
/// - that has a number which is not finite;
/// - whose label is not a class, if labels are classes.
/// A set without samples is an Error too. Blocking. Thread-safe.
template <SampleRecord S, class C>
[[nodiscard]] Result<models::Table> to_table(const Set<S, C>& set,
                                             const TableOptions& options = {}) {
  const auto compute = [options](Task& task, const C& chain) {
    Rows<S> rows;
    chain.run(task, task.part(), [&](const S& sample) {
      rows.add(sample, options);
      return true;
    });
    return rows;
  };
  auto parts = set.run("to_table", compute);
  if (!parts) return std::move(parts).error();
  return join_rows(*std::move(parts), options);
}

}  // namespace starling::flow
