#include "starling/tools/job/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "starling/base/memory.hpp"
#include "starling/engine/core/training/exchanges.hpp"

namespace starling::program {
namespace {

struct ParameterBytes {
  double total = 0;
  /// The bytes of the parameters that are not row-sparse. A worker copies only the rows that it
  /// needs of a row-sparse parameter.
  double dense = 0;
};

ParameterBytes bytes_of(const AnyModel& model) {
  const double width = model.element_type() == ElementType::float32 ? 4 : 8;
  ParameterBytes size;
  for (const models::Parameter& parameter : model.parameters()) {
    const double bytes = width * static_cast<double>(parameter.size());
    size.total += bytes;
    if (!parameter.row_sparse) size.dense += bytes;
  }
  return size;
}

/// Returns the bytes of the values and the gradients that the computing threads hold.
double thread_bytes(const ParameterBytes& size, std::size_t threads) {
  return 2 * size.dense * static_cast<double>(threads);
}

/// Returns the bytes of the parameters with the optimiser's state.
double state_bytes(const ParameterBytes& size, const actor::TrainOptions& options) {
  return size.total * static_cast<double>(1 + models::slot_count(options.optimizer));
}

/// Returns the bytes that `workers` workers hold if each has a model of its own: with the
/// optimiser's state, unless the workers share it. 0 if owners hold the model.
double worker_bytes(const ParameterBytes& size, const actor::TrainOptions& options,
                    std::size_t workers) {
  const std::string& exchange = options.job.exchange;
  const core::ExchangeType& type = core::exchange_type(exchange);
  if (type.places_ranges) return 0;
  const bool shares_state = type.shards_optimizer != nullptr && type.shards_optimizer(exchange);
  return static_cast<double>(workers) * (shares_state ? size.total : state_bytes(size, options));
}

std::string parameters_of(const AnyModel& model) {
  return fmt::format("model: {} has {} parameters", model.print(),
                     models::total_size(model.parameters()));
}

}  // namespace

Result<void> check_memory(const AnyModel& model, const actor::TrainOptions& options) {
  const ParameterBytes size = bytes_of(model);
  const std::size_t threads = std::min(options.job.workers, actor::compute_threads(options.job));
  const double bytes =
      std::max(state_bytes(size, options), worker_bytes(size, options, options.job.workers)) +
      thread_bytes(size, threads);
  if (bytes <= memory_bytes()) return {};
  return Error{
      fmt::format("{}; with the state of {} and the copies of {} computing threads, training by "
                  "exchange {} needs {:.1f} GB at least; this machine has {:.1f} GB of memory",
                  parameters_of(model), models::print(options.optimizer), threads,
                  options.job.exchange, bytes / 1e9, memory_bytes() / 1e9)};
}

Result<void> check_memory_of_node(const AnyModel& model, const actor::TrainOptions& options,
                                  std::size_t nodes) {
  const ParameterBytes size = bytes_of(model);
  const std::size_t workers = (options.job.workers + nodes - 1) / nodes;
  const std::size_t threads = std::min(workers, actor::compute_threads(options.job));
  const std::size_t owners = std::min(nodes, actor::requested_owner_count(options.job));
  const double share = std::min(
      1.0, static_cast<double>(options.job.replication_factor) / static_cast<double>(owners));
  const double bytes =
      // The initial parameters, and twice a model that a follower has this node evaluate.
      3 * size.total +
      std::max(share * state_bytes(size, options), worker_bytes(size, options, workers)) +
      thread_bytes(size, threads);
  const double free_bytes = free_memory_bytes();
  if (bytes <= free_bytes) return {};
  return Error{fmt::format(
      "{}; one of {} nodes needs {:.1f} GB at least, with {} and {} computing threads here; {:.1f} "
      "GB of this machine's memory are free",
      parameters_of(model), nodes, bytes / 1e9,
      core::exchange_type(options.job.exchange).places_ranges
          ? fmt::format("{} copies of each range", options.job.replication_factor)
          : fmt::format("a copy of the model for each of {} workers", workers),
      threads, free_bytes / 1e9)};
}

}  // namespace starling::program
