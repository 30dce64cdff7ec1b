#include "starling/actor/engines/algorithm.hpp"

#include <utility>

#include "starling/actor/engines/engine_task.hpp"
#include "starling/engine/work/gradients.hpp"

namespace starling::actor {
namespace {

template <class T>
Result<detail::KeyTable> key_table_of(const Algorithm<T>& algorithm, std::size_t owners) {
  return detail::KeyTable::make(parameters_of(algorithm), sizeof(T), owners);
}

}  // namespace

template <class T>
std::vector<models::Parameter> parameters_of(const Algorithm<T>& algorithm) {
  std::vector<models::Parameter> parameters;
  for (const Tensor<T>& tensor : algorithm.tensors)
    parameters.push_back({.name = tensor.key,
                          .shape = tensor.shape,
                          .row_sparse = tensor.row_sparse,
                          .decay = false});
  return parameters;
}

template <class T>
Result<void> check(const Algorithm<T>& algorithm) {
  if (algorithm.tensors.empty()) return Error{"the algorithm has no tensors; valid: at least one"};
  if (!algorithm.hooks.push)
    return Error{"the hook push is missing: it computes a worker's updates and is required"};
  if (algorithm.hooks.stop)
    return Error{"the hook stop is set; valid: steps, a time or a target, which end the job"};
  const auto keys = key_table_of(algorithm, 1);
  if (!keys) return keys.error();
  for (std::size_t k = 0; k < algorithm.tensors.size(); ++k) {
    const std::size_t count = algorithm.tensors[k].values.size();
    if (count != 0 && count != keys->key(k).size())
      return Error{detail::quoted_key(algorithm.tensors[k].key) + ": " + std::to_string(count) +
                   " initial values are given; valid: " + std::to_string(keys->key(k).size()) +
                   ", or none for zeros"};
  }
  return {};
}

template <class T>
core::Layout layout_of(const Algorithm<T>& algorithm, const JobOptions& options) {
  return key_table_of(algorithm, owner_count(options)).value().layout();
}

template <class T>
models::Metrics evaluate(const Algorithm<T>& algorithm, const JobOptions& options,
                         std::span<const core::RangeState> states) {
  if (!algorithm.evaluate) return {};
  const auto keys = key_table_of(algorithm, owner_count(options));
  return algorithm.evaluate(Tensors<T>{*keys, states});
}

template <class T>
Assignment assign_algorithm(std::shared_ptr<const Algorithm<T>> algorithm,
                            const JobOptions& options, std::vector<core::RangeState> resume) {
  const auto keys = std::make_shared<const detail::KeyTable>(
      key_table_of(*algorithm, owner_count(options)).value());
  const std::shared_ptr<const Hooks<T>> hooks{algorithm, &algorithm->hooks};
  const auto task = std::make_shared<detail::EngineTask<T>>(
      keys, hooks, options.workers, options.seed, detail::Fetcher{std::chrono::seconds{1}});
  if (algorithm->evaluate)
    task->set_evaluate(
        [algorithm](const Tensors<T>& tensors) { return algorithm->evaluate(tensors); });
  Assignment assignment{.job = options,
                        .task = task,
                        .applier = core::merge_applier<T>(task->merge()),
                        .initial_states = std::move(resume),
                        .deal = {.workers = options.workers}};
  assignment.job.on_start = [task, users_on_start = options.on_start](const JobActorsPtr& actors,
                                                                      caf::actor_system& system) {
    task->fetcher().attach(actors->model, system);
    if (users_on_start) users_on_start(actors, system);
  };
  if (!assignment.initial_states.empty()) return assignment;
  std::vector<T> values;
  for (std::size_t k = 0; k < algorithm->tensors.size(); ++k) {
    std::vector<T> tensor = algorithm->tensors[k].values;
    tensor.resize(keys->key(k).size());
    values.insert(values.end(), tensor.begin(), tensor.end());
  }
  assignment.initial_states = core::to_ranges<T>(keys->layout(), values);
  return assignment;
}

template Result<void> check(const Algorithm<float>&);
template Result<void> check(const Algorithm<double>&);
template std::vector<models::Parameter> parameters_of(const Algorithm<float>&);
template std::vector<models::Parameter> parameters_of(const Algorithm<double>&);
template core::Layout layout_of(const Algorithm<float>&, const JobOptions&);
template core::Layout layout_of(const Algorithm<double>&, const JobOptions&);
template models::Metrics evaluate(const Algorithm<float>&, const JobOptions&,
                                  std::span<const core::RangeState>);
template models::Metrics evaluate(const Algorithm<double>&, const JobOptions&,
                                  std::span<const core::RangeState>);
template Assignment assign_algorithm(std::shared_ptr<const Algorithm<float>>, const JobOptions&,
                                     std::vector<core::RangeState>);
template Assignment assign_algorithm(std::shared_ptr<const Algorithm<double>>, const JobOptions&,
                                     std::vector<core::RangeState>);

}  // namespace starling::actor
