/// An algorithm for the engines without the options of a run. A program that registers one
/// (Registry::algorithm) runs it like a model: in one process, or on the nodes of a cluster.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "starling/actor/engines/engine_hooks.hpp"
#include "starling/actor/job/assignment.hpp"
#include "starling/models/model.hpp"

namespace starling::actor {

/// The hooks must compute the same on every node: a worker may run on any of them, and each node
/// has its own copy of the algorithm. A hook that keeps state for a worker loses it with the node.
template <class T>
struct Algorithm {
  /// The tensors with their initial values, and the hooks `schedule`, `push` and `pull`. There is
  /// no hook `stop`: a job ends by its number of steps, its time or a target.
  std::vector<Tensor<T>> tensors;
  Hooks<T> hooks;
  /// Computes the metrics of the tensors, for evaluations and targets. If it is absent, there are
  /// no metrics.
  std::function<models::Metrics(const Tensors<T>& tensors)> evaluate = {};
};

/// Returns an Error if an algorithm cannot run: it has no tensor or no hook `push`, or it has a
/// hook `stop`, or a tensor has a bad name, shape or number of values.
template <class T>
[[nodiscard]] Result<void> check(const Algorithm<T>& algorithm);

/// Returns the names and shapes of the tensors.
template <class T>
[[nodiscard]] std::vector<models::Parameter> parameters_of(const Algorithm<T>& algorithm);

/// Returns how a job with these options divides the tensors into ranges. Requires:
/// check(algorithm).
template <class T>
[[nodiscard]] core::Layout layout_of(const Algorithm<T>& algorithm, const JobOptions& options);

/// Returns the metrics of the tensors whose values are `states`, which are in the order of the
/// ranges of `layout_of()`.
template <class T>
[[nodiscard]] models::Metrics evaluate(const Algorithm<T>& algorithm, const JobOptions& options,
                                       std::span<const core::RangeState> states);

/// Makes the assignment that runs the algorithm from the saved states `resume` or, if there are
/// none, from its initial values. Requires: check(algorithm).
template <class T>
[[nodiscard]] Assignment assign_algorithm(std::shared_ptr<const Algorithm<T>> algorithm,
                                          const JobOptions& options,
                                          std::vector<core::RangeState> resume);

}  // namespace starling::actor
