#include "starling/tools/train/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/work/gradients.hpp"
#include "starling/tools/train/checkpoint_changes.hpp"

namespace starling::program {
namespace {

using States = std::vector<core::RangeState>;
using Numbers = std::vector<std::uint64_t>;

constexpr const char* slots_name = "starling.slots";
constexpr const char* ranges_name = "starling.ranges";
constexpr const char* ledger_name = "starling.ledger";

Numbers counters_of(const States& states) {
  Numbers numbers;
  for (const auto& state : states)
    numbers.insert(numbers.end(), {state.updates, state.samples, state.round});
  return numbers;
}

Numbers ledger_of(const States& states) {
  Numbers numbers;
  for (const auto& state : states)
    for (const auto& entry : state.ledger)
      numbers.insert(numbers.end(), {std::uint64_t{entry.incarnation}, entry.step, entry.samples});
  return numbers;
}

/// Returns the `count` slots of the optimiser, one after the other. Each slot has a value for every
/// parameter.
template <class T>
std::vector<T> slots_of(const core::Layout& layout, const States& states, std::size_t count) {
  std::vector<T> slots(count * layout.size);
  for (const auto& state : states) {
    const core::Range& range = layout.ranges[state.range];
    const auto from = state.slots.as<T>();
    for (std::size_t slot = 0; slot < count && !from.empty(); ++slot)
      std::ranges::copy(
          from.subspan(slot * range.count, range.count),
          slots.begin() + static_cast<std::ptrdiff_t>(slot * layout.size + range.offset));
  }
  return slots;
}

/// Reads one tensor of the file. Refuses another element type or shape.
template <class T>
Result<std::vector<T>> values_in(const StoredModel& stored, const char* name,
                                 const std::vector<std::uint64_t>& shape) {
  const safetensors::Tensor* tensor = stored.file.find(name);
  if (tensor == nullptr)
    return Error{stored.path + ": is no checkpoint: it has no tensor '" + name + "'"};
  if (tensor->dtype != safetensors::dtype_of<T> || tensor->shape != shape) {
    const safetensors::Tensor wanted{name, safetensors::dtype_of<T>, shape, {}};
    return Error{stored.path + ": tensor '" + name + "' is " + tensor->describe() +
                 ", but this job needs " + wanted.describe()};
  }
  std::vector<T> values(tensor->size());
  if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

/// Returns one range's part of each slot, one after the other. `slots` are as from slots_of().
template <class T>
core::Slice range_slots(const core::Layout& layout, const core::Range& range,
                        const std::vector<T>& slots) {
  const std::size_t count = layout.size == 0 ? 0 : slots.size() / layout.size;
  auto buffer = core::Buffer::make<T>(count * range.count);
  const auto to = buffer->template as<T>();
  for (std::size_t slot = 0; slot < count; ++slot)
    std::ranges::copy(std::span{slots}.subspan(slot * layout.size + range.offset, range.count),
                      to.begin() + static_cast<std::ptrdiff_t>(slot * range.count));
  return {std::move(buffer), 0, count * range.count, nullptr};
}

/// Reads the states of all ranges from the file's tensors.
template <class T>
Result<States> states_in(const StoredModel& stored, const AnyModel& model, const ResolvedJob& job) {
  const core::Layout layout = model.layout(job.options.job);
  const std::uint64_t ranges = layout.ranges.size();
  const std::uint64_t workers = job.options.job.workers;
  auto weights = weights_in(stored, model);
  if (!weights) return std::move(weights).error();
  auto slots =
      values_in<T>(stored, slots_name, {models::slot_count(job.options.optimizer), layout.size});
  if (!slots) return std::move(slots).error();
  if (const auto at = std::ranges::find_if_not(*slots, [](T x) { return std::isfinite(x); });
      at != slots->end())
    return Error{fmt::format("{}: tensor '{}' holds {} at element {}; valid: finite numbers",
                             stored.path, slots_name, *at, at - slots->begin())};
  const auto counters = values_in<std::uint64_t>(stored, ranges_name, {ranges, 3});
  if (!counters) return counters.error();
  const auto ledger = values_in<std::uint64_t>(stored, ledger_name, {ranges, workers, 3});
  if (!ledger) return ledger.error();
  States states =
      core::to_ranges<T>(layout, std::span<const T>{std::get<std::vector<T>>(*weights)});
  for (core::RangeState& state : states) {
    const std::size_t r = state.range;
    state.slots = range_slots(layout, layout.ranges[r], *slots);
    state.updates = (*counters)[3 * r];
    state.samples = (*counters)[3 * r + 1];
    state.round = (*counters)[3 * r + 2];
    for (std::size_t w = 0; w < workers; ++w) {
      const auto entry = std::span{*ledger}.subspan(3 * (r * workers + w), 3);
      if (entry[0] != 0)
        return Error{
            fmt::format("{}: holds incarnation {} of worker {} in range {}; valid: 0, with "
                        "which every worker of a resumed job starts",
                        stored.path, entry[0], w, r)};
      state.ledger.push_back({0, entry[1], entry[2]});
    }
  }
  return states;
}

/// Returns the product, or UINT64_MAX if the product is larger than that.
std::uint64_t product(std::uint64_t times, std::uint64_t each) {
  std::uint64_t most = 0;
  return __builtin_mul_overflow(times, each, &most) ? UINT64_MAX : most;
}

bool is_elastic(const actor::JobOptions& job) {
  return core::exchange_type(job.exchange).name == core::ElasticExchange::name;
}

/// Returns true if each worker has a copy of the model whose counters count only this worker's
/// updates, although the ledger of the copy holds the steps of all workers (core::WorkerModel).
bool counts_own_updates(const actor::JobOptions& job) {
  const core::ExchangeType& exchange = core::exchange_type(job.exchange);
  return exchange.content == core::ExchangeContent::models && !exchange.is_barrier &&
         !exchange.places_ranges;
}

/// Returns how many steps of workers the updates that a range has counted can contain at most.
/// Under elastic, the updates are moves of the range's center, one after each `every` steps of a
/// worker.
std::uint64_t steps_max(const actor::JobOptions& job, const core::RangeState& state) {
  const core::ExchangeType& exchange = core::exchange_type(job.exchange);
  if (exchange.content == core::ExchangeContent::models && !exchange.places_ranges) {
    std::uint64_t steps = 0;
    for (const core::LedgerEntry& entry : state.ledger)
      if (__builtin_add_overflow(steps, entry.step, &steps)) return UINT64_MAX;
    return steps;
  }
  if (!is_elastic(job)) return state.updates;
  return product(state.updates, core::parse_elastic(job.exchange).value().every);
}

bool is_dense(const AnyModel& model) {
  return std::ranges::none_of(model.parameters(), &models::Parameter::row_sparse);
}

/// Refuses states in which a range's counters contradict its ledger or the batch size. A worker's
/// step in the ledger may exceed the range's updates only if some steps do not change the range.
Result<void> check_counts(const AnyModel& model, const ResolvedJob& job, const States& states) {
  const auto& options = job.options;
  const bool is_bsp = barrier::is_bsp(options.job.barrier);
  const auto& former_deals = options.job.former_deals;
  // The ledgers do not say how many updates former workers made. A model that does not learn by
  // gradients may leave out tensors in a step.
  const bool steps_change_all = model.learns_by_gradients() && is_dense(model) &&
                                job.train_samples >= options.job.workers && former_deals.empty();
  const core::Step first = actor::order_of(options, job.train_samples).first_step();
  const std::uint64_t samples_before = former_deals.empty() ? 0 : former_deals.back().samples;
  for (const core::RangeState& state : states) {
    const std::string range = "range " + std::to_string(state.range);
    // Under bsp, one update is a round of all workers, and there may have been more workers
    // earlier.
    const std::uint64_t updates = steps_max(options.job, state);
    if (steps_change_all && !is_bsp && state.samples > product(updates, options.batch))
      return Error{fmt::format("{} counts {} samples in {} updates; valid: up to {} in each", range,
                               state.samples, updates, options.batch)};
    for (std::size_t worker = 0; worker < state.ledger.size(); ++worker) {
      const core::LedgerEntry& entry = state.ledger[worker];
      const std::uint64_t before =
          models::samples_at_resume(samples_before, options.job.workers, worker);
      if (entry.step < first || entry.samples < before)
        return Error{
            fmt::format("holds worker {} at step {} of {} with {} samples; valid: from step {} and "
                        "{} samples on, with which it began",
                        worker, entry.step, range, entry.samples, first, before)};
      if (entry.samples - before > product(entry.step - first, options.batch))
        return Error{
            fmt::format("holds worker {} with {} samples at step {} of {}; valid: up to {} a step",
                        worker, entry.samples, entry.step, range, options.batch)};
      if (steps_change_all && entry.step > updates)
        return Error{fmt::format("holds worker {} at step {} of {}, which has had {} updates",
                                 worker, entry.step, range, updates)};
    }
  }
  return {};
}

/// Converts `states` from the ranges of `from` to those of `to`. They differ if the number of
/// owners does.
template <class T>
States states_for(const core::Layout& from, const core::Layout& to, const States& states,
                  std::size_t slot_count) {
  const auto w = core::to_vector<T>(from, states);
  const auto slots = slots_of<T>(from, states, slot_count);
  States all = counters_for(from, to, states);
  const auto values = core::to_ranges<T>(to, std::span<const T>{w});
  for (core::RangeState& state : all) {
    state.value = values[state.range].value;
    state.slots = range_slots(to, to.ranges[state.range], slots);
  }
  return all;
}

}  // namespace

JobIdentity job_identity_of(const ResolvedJob& job, const DataRequest& request,
                            std::optional<std::uint64_t> train_hash) {
  const auto& options = job.options;
  const auto text = [](const auto& value) { return value ? std::to_string(*value) : "none"; };
  return {
      {"split", text(request.split)},
      {"holdout", text(request.holdout)},
      {"seed", std::to_string(request.seed)},
      {"scale", request.scale ? print(*request.scale) : "none"},
      // Stands before all settings whose defaults depend on the data, so that an error names the
      // data.
      {"content", train_hash ? std::to_string(*train_hash) : request.data},
      {"model", job.model},
      {"dtype", print(job.element_type)},
      {"optimizer", models::print(options.optimizer)},
      {"l2", print_number(options.l2)},
      {"clip", models::print(options.clip)},
      {"schedule", job.has_default_schedule ? default_schedule : models::print(options.schedule)},
      {"batch", actor::print_batch(options)},
      {"workers", std::to_string(options.job.workers)},
      {"mode", core::print(options.job.mode)},
      {"shards", std::to_string(actor::owner_count(options.job))},
      {"barrier", barrier::print(options.job.barrier)}};
}

std::uint64_t fingerprint(const States& states) {
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t word) { hash = mix(hash ^ mix(word)); };
  const auto add_bytes = [&](std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, &bytes[at], std::min(sizeof word, bytes.size() - at));
      add(word);
    }
  };
  for (const core::RangeState& state : states) {
    add_bytes(state.value.bytes());
    add_bytes(state.slots.bytes());
  }
  for (const Numbers& numbers : {counters_of(states), ledger_of(states)})
    std::ranges::for_each(numbers, add);
  return hash;
}

Result<void> write_checkpoint(const std::string& path, const ModelNotes& notes,
                              const ModelDescription& model, const ResolvedJob& job,
                              const JobIdentity& identity, const States& states,
                              std::uint64_t updates) {
  const auto& options = job.options;
  const core::Layout layout = model.layout(options.job);
  const std::uint64_t ranges = layout.ranges.size();
  const std::uint64_t slot_count = models::slot_count(options.optimizer);
  const Weights w = model.collect(options.job, states);
  const Weights slots = std::visit(
      [&]<class T>(const std::vector<T>&) -> Weights {
        return slots_of<T>(layout, states, slot_count);
      },
      w);
  const Numbers counters = counters_of(states);
  const Numbers ledger = ledger_of(states);
  auto tensors = to_tensors(notes, model, w);
  std::visit(
      [&]<class T>(const std::vector<T>& values) {
        tensors.push_back(safetensors::view<T>(slots_name, {slot_count, layout.size}, values));
      },
      slots);
  tensors.push_back(safetensors::view<std::uint64_t>(ranges_name, {ranges, 3}, counters));
  tensors.push_back(
      safetensors::view<std::uint64_t>(ledger_name, {ranges, options.job.workers, 3}, ledger));
  const Numbers deals = encode_deals(options.job.former_deals);
  if (!deals.empty())
    tensors.push_back(safetensors::view<std::uint64_t>(deals_name, {deals.size()}, deals));
  auto metadata = to_metadata(notes);
  for (const auto& [key, value] : identity) metadata[metadata_key(key)] = value;
  metadata[metadata_key(schedule_value_key)] = models::print(options.schedule);
  metadata[metadata_key(updates_key)] = std::to_string(updates);
  metadata[metadata_key(exchange_key)] = options.job.exchange;
  return safetensors::write(path, metadata, tensors);
}

Result<Checkpoint> read_checkpoint(const std::string& path, const AnyModel& model,
                                   const ResolvedJob& job, const JobIdentity& identity,
                                   Trust trust) {
  const auto stored = read_model(path, trust);
  if (!stored) return stored.error();
  const auto writer = writer_of(*stored, job, identity);
  if (!writer) return writer.error();
  const bool has_floats = model.element_type() == ElementType::float32;
  auto states = has_floats ? states_in<float>(*stored, model, *writer)
                           : states_in<double>(*stored, model, *writer);
  if (!states) return std::move(states).error();
  const actor::JobOptions& options = writer->options.job;
  if (auto valid = actor::check_initial_states(options, *states); !valid)
    return std::move(valid).error().within(path);
  if (auto valid = check_counts(model, *writer, *states); !valid)
    return std::move(valid).error().within(path);
  const auto updates = updates_in(*stored, *states, options.workers);
  if (!updates) return updates.error();
  if (is_elastic(options)) {
    if (!is_elastic(job.options.job) && models::slot_count(job.options.optimizer) > 0)
      return Error{
          fmt::format("{}: was saved under exchange {}, under which only workers have the "
                      "state of {}; valid: that exchange, or init in place of resume",
                      path, options.exchange, models::print(job.options.optimizer))};
    // From here on, `updates` counts steps of workers, not moves of the center.
    for (core::RangeState& state : *states) state.updates = std::max(state.updates, *updates);
  }
  // If counts_own_updates() is true of this job too, workers go on with the count of the copy that
  // was saved, which adam needs. Else the states must count the updates of all workers.
  if (counts_own_updates(options) && !counts_own_updates(job.options.job))
    for (core::RangeState& state : *states) state.updates = std::max(state.updates, *updates);
  const bool is_same = std::ranges::all_of(identity, [&](const auto& setting) {
    const auto at = stored->file.metadata.find(metadata_key(setting.first));
    return at == stored->file.metadata.end() ||
           is_same_value(*stored, setting.first, setting.second, job);
  });
  if (is_same) return Checkpoint{*std::move(states), options.former_deals, {}, *updates};
  const core::Layout from = model.layout(options);
  const core::Layout to = model.layout(job.options.job);
  const std::size_t slot_count = models::slot_count(job.options.optimizer);
  auto checkpoint = change_workers(*writer, job, *std::move(states));
  if (!checkpoint) return std::move(checkpoint).error().within(path);
  checkpoint->updates = *updates;
  checkpoint->states = has_floats ? states_for<float>(from, to, checkpoint->states, slot_count)
                                  : states_for<double>(from, to, checkpoint->states, slot_count);
  return checkpoint;
}

std::optional<std::uint64_t> updates_in(const std::string& path) {
  const auto file = safetensors::read(path);
  if (!file) return std::nullopt;
  const auto text = file->metadata.find(metadata_key(updates_key));
  if (text == file->metadata.end()) return std::nullopt;
  const auto updates = parse_count(text->second);
  return updates ? std::optional{*updates} : std::nullopt;
}

}  // namespace starling::program
