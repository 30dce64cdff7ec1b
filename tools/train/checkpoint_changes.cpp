#include "starling/tools/train/checkpoint_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/engine/core/deals/dealer.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/models/batch_sizes.hpp"

namespace starling::program {
namespace {

/// The keys of a JobIdentity in which a job that learns by gradients may differ from the writer of
/// its checkpoint.
constexpr std::array<std::string_view, 5> changeable{"batch", "workers", "mode", "shards",
                                                     "barrier"};

/// Returns the value of metadata_key(key) in the file; an Error if the file does not have it.
Result<std::string> text_in(const StoredModel& stored, const std::string& key) {
  const auto at = stored.file.metadata.find(metadata_key(key));
  if (at == stored.file.metadata.end())
    return Error{
        fmt::format("{}: is no checkpoint: it does not say its job's {}", stored.path, key)};
  return at->second;
}

Result<std::size_t> count_in(const StoredModel& stored, const std::string& key) {
  auto text = text_in(stored, key);
  if (!text) return std::move(text).error();
  const auto count = parse_count(*text);
  if (!count || *count == 0 || *count > std::numeric_limits<std::uint32_t>::max())
    return Error{fmt::format("{}: its {} is '{}'; valid: a number from 1 to {}", stored.path, key,
                             printable(*text), std::numeric_limits<std::uint32_t>::max())};
  return static_cast<std::size_t>(*count);
}

/// Reads the tensor `deals_name`; returns no deals if the file does not have it. `samples` is the
/// number of training samples.
Result<std::vector<models::FormerDeal>> read_deals(const StoredModel& stored,
                                                   std::uint64_t samples) {
  std::vector<models::FormerDeal> deals;
  const safetensors::Tensor* tensor = stored.file.find(deals_name);
  if (tensor == nullptr) return deals;
  const auto refuse = [&](const std::string& why) {
    return Error{fmt::format("{}: tensor '{}' {}", stored.path, deals_name, why)};
  };
  if (tensor->dtype != safetensors::Dtype::u64) return refuse("is " + tensor->describe());
  std::vector<std::uint64_t> numbers(tensor->size());
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor->bytes.data(), tensor->bytes.size());
  for (std::size_t at = 0; at < numbers.size();) {
    const std::size_t rest = numbers.size() - at;
    if (rest < 4 || numbers[at + 3] > (rest - 4) / 2) return refuse("ends within a deal");
    models::FormerDeal deal{.first_epoch = numbers[at],
                            .batch = numbers[at + 1],
                            .samples = numbers[at + 2],
                            .taken = std::vector<models::Taken>(numbers[at + 3]),
                            .sizes = {}};
    at += 4;
    for (models::Taken& taken : deal.taken) {
      taken = {numbers[at], numbers[at + 1]};
      at += 2;
    }
    if (deal.batch == 0) {
      if (numbers.size() - at < deal.taken.size()) return refuse("ends within a deal");
      const auto sizes = std::span{numbers}.subspan(at, deal.taken.size());
      deal.sizes.assign(sizes.begin(), sizes.end());
      at += sizes.size();
    }
    deals.push_back(std::move(deal));
  }
  if (auto valid = models::check_deals(deals, samples); !valid)
    return refuse(valid.error().message);
  return deals;
}

/// Returns the value of a setting for an error. `text` is its value in the identity. If that is the
/// default schedule, adds the schedule that the file gives.
std::string value_text(const StoredModel& stored, const std::string& key, const std::string& text) {
  const auto& metadata = stored.file.metadata;
  const auto printed = metadata.find(metadata_key(schedule_value_key));
  if (key != "schedule" || text != default_schedule || printed == metadata.end()) return text;
  return text + ", which was " + printable(printed->second);
}

std::string describe(const actor::JobOptions& job) {
  return fmt::format("{} under {} in mode {}", print_count(job.workers, "worker"),
                     barrier::print(job.barrier), core::print(job.mode));
}

}  // namespace

std::string metadata_key(const std::string& key) { return "job." + key; }

bool is_same_value(const StoredModel& stored, const std::string& key, const std::string& value,
                   const ResolvedJob& job) {
  const auto& metadata = stored.file.metadata;
  const std::string& text = metadata.at(metadata_key(key));
  if (text == value) return true;
  if (key != "schedule") return false;
  const auto printed = metadata.find(metadata_key(schedule_value_key));
  const std::string& writer_schedule =
      text == default_schedule && printed != metadata.end() ? printed->second : text;
  return writer_schedule == models::print(job.options.schedule);
}

Result<std::uint64_t> updates_in(const StoredModel& stored,
                                 const std::vector<core::RangeState>& states, std::size_t workers) {
  const auto at = stored.file.metadata.find(metadata_key(updates_key));
  if (at == stored.file.metadata.end()) {
    std::uint64_t sum = 0;
    for (const auto& entry : actor::first_ledger_entries(states, workers)) sum += entry.step;
    return sum;
  }
  const auto updates = parse_count(at->second);
  if (!updates)
    return Error{fmt::format("{}: its {} is '{}'; valid: a number from 0 on", stored.path,
                             updates_key, printable(at->second))};
  return *updates;
}

Result<ResolvedJob> writer_of(const StoredModel& stored, const ResolvedJob& job,
                              const JobIdentity& identity) {
  for (const auto& [key, value] : identity) {
    if (job.learns_by_gradients && std::ranges::find(changeable, key) != changeable.end()) continue;
    // Checkpoints of versions without `scale` do not have this key.
    if (key == "scale" && value == "none" && !stored.file.metadata.contains(metadata_key(key)))
      continue;
    auto text = text_in(stored, key);
    if (!text) return std::move(text).error();
    if (!is_same_value(stored, key, value, job))
      return Error{stored.path + ": is of another job: " +
                   (key == "content"
                        ? "its training data, read from '" + printable(stored.notes.data.data) +
                              "', had other rows; valid: the same rows in the same order"
                        : fmt::format("its {} is {}, not {}; valid: the same {}", key,
                                      value_text(stored, key, *text), value, key)) +
                   ", or init in place of resume"};
  }
  ResolvedJob writer = job;
  auto& options = writer.options;
  const auto workers = count_in(stored, "workers");
  if (!workers) return workers.error();
  const auto batch_text = text_in(stored, "batch");
  if (!batch_text) return batch_text.error();
  const auto batch = parse_batch(*batch_text);
  if (!batch) return Error{batch.error()}.within(stored.path + ": its batch");
  const auto shards = count_in(stored, "shards");
  if (!shards) return shards.error();
  const auto mode_text = text_in(stored, "mode");
  if (!mode_text) return mode_text.error();
  const auto mode = core::parse_mode(*mode_text);
  if (!mode) return Error{mode.error()}.within(stored.path);
  const auto barrier_text = text_in(stored, "barrier");
  if (!barrier_text) return barrier_text.error();
  options.job.workers = *workers;
  options.batch = batch->count;
  options.dynamic_batches = batch->is_dynamic;
  options.job.shards = *shards;
  options.job.mode = *mode;
  if (*barrier_text != barrier::print(job.options.job.barrier)) {
    // A predicate that another program has registered is unknown here. asp stands for it, because
    // neither asp nor a predicate has rounds.
    auto barrier = barrier::parse(*barrier_text);
    options.job.barrier = barrier ? *barrier : barrier::Barrier{barrier::Asp{}};
  }
  // Checkpoints of versions without elastic do not have this key.
  const auto exchange = stored.file.metadata.find(metadata_key(exchange_key));
  const bool has_exchange = exchange != stored.file.metadata.end();
  options.job.exchange = has_exchange ? exchange->second : actor::JobOptions{}.exchange;
  if (auto valid = core::check_exchange(options.job.exchange); !valid)
    return std::move(valid).error().within(stored.path);
  auto deals = read_deals(stored, job.train_samples);
  if (!deals) return std::move(deals).error();
  options.job.former_deals = *std::move(deals);
  return writer;
}

std::vector<std::uint64_t> encode_deals(const std::vector<models::FormerDeal>& deals) {
  std::vector<std::uint64_t> numbers;
  for (const models::FormerDeal& deal : deals) {
    numbers.insert(numbers.end(), {deal.first_epoch, deal.batch, deal.samples, deal.taken.size()});
    for (const models::Taken& taken : deal.taken)
      numbers.insert(numbers.end(), {taken.steps, taken.samples});
    numbers.insert(numbers.end(), deal.sizes.begin(), deal.sizes.end());
  }
  return numbers;
}

Result<core::Step> restart_ledgers_after(const std::vector<models::FormerDeal>& former,
                                         const actor::TrainOptions& options,
                                         std::uint64_t train_samples, std::uint64_t samples,
                                         std::vector<core::RangeState>& states) {
  if (auto valid = models::check_deals(former, train_samples); !valid)
    return std::move(valid).error();
  const std::size_t workers = options.job.workers;
  const core::Step first = models::first_order(train_samples, workers, options.batch,
                                               options.dynamic_batches, options.job.seed, former)
                               .first_step();
  for (core::RangeState& state : states) {
    // The last steps may not have changed the range, which has not counted their samples then.
    state.samples = std::max(state.samples, samples);
    state.round = barrier::is_bsp(options.job.barrier) ? first : 0;
    state.ledger.assign(workers, {});
    for (std::size_t worker = 0; worker < workers; ++worker)
      state.ledger[worker] = {0, first, models::samples_at_resume(samples, workers, worker)};
  }
  return first;
}

Result<std::vector<models::FormerDeal>> end_deal(const core::Deal& deal,
                                                 std::vector<models::Taken> taken,
                                                 const actor::TrainOptions& options,
                                                 std::uint64_t train_samples, std::uint64_t samples,
                                                 std::vector<core::RangeState>& states) {
  std::vector<models::FormerDeal> former = deal.former;
  if (!deal.workers.empty()) {
    const core::Dealer dealer{{.samples = train_samples,
                               .batch = options.batch,
                               .dynamic = options.dynamic_batches,
                               .by_samples = barrier::hands_in_early(options.job.barrier),
                               .seed = options.job.seed,
                               .workers = 1}};
    models::FormerDeal last = dealer.former_deal(deal);
    last.samples = samples;
    last.taken = std::move(taken);
    former = models::deals_after(deal.former, dealer.order_of(deal), std::move(last));
  }
  if (!former.empty()) former.back().samples = samples;
  if (auto first = restart_ledgers_after(former, options, train_samples, samples, states); !first)
    return std::move(first).error();
  return former;
}

models::Taken taken_of(const core::DealtWorker& worker, const core::LedgerEntry& entry,
                       const actor::TrainOptions& options) {
  if (!barrier::hands_in_early(options.job.barrier))
    return {.steps = entry.step - std::min(entry.step, worker.first_step.value_or(0))};
  return {.samples = entry.samples - std::min(entry.samples, worker.first_samples)};
}

Result<std::vector<models::FormerDeal>> end_deal(
    const std::vector<std::shared_ptr<const core::Deal>>& deals, const actor::TrainOptions& options,
    std::uint64_t train_samples, std::vector<core::RangeState>& states) {
  const auto is_begun = [&](const core::DealtWorker& worker) {
    return worker.first_step &&
           core::first_ledger_entry(states, worker.id).step >= *worker.first_step;
  };
  const auto has_passed_start = [&](const core::DealtWorker& worker) {
    return std::ranges::any_of(states, [&](const core::RangeState& state) {
      return worker.id < state.ledger.size() &&
             state.ledger[worker.id].step > worker.first_step.value_or(0);
    });
  };
  for (std::size_t i = deals.size(); i-- > 0;) {
    const core::Deal& deal = *deals[i];
    if (!std::ranges::all_of(deal.workers, is_begun)) continue;
    if (i + 1 < deals.size() && std::ranges::any_of(deals[i + 1]->workers, has_passed_start)) break;
    std::vector<models::Taken> taken;
    for (const core::DealtWorker& worker : deal.workers)
      taken.push_back(taken_of(worker, core::first_ledger_entry(states, worker.id), options));
    std::uint64_t samples = 0;
    for (const auto& entry : actor::first_ledger_entries(states, options.job.workers))
      samples += entry.samples;
    return end_deal(deal, std::move(taken), options, train_samples, samples, states);
  }
  return Error{"a step of the former deal is not finished"};
}

Result<Checkpoint> change_workers(const ResolvedJob& writer, const ResolvedJob& job,
                                  std::vector<core::RangeState> states) {
  Checkpoint checkpoint;
  const models::SampleOrder former = actor::order_of(writer.options, job.train_samples);
  models::FormerDeal last;
  if (writer.options.dynamic_batches)
    last.sizes = models::divide_batch(writer.options.batch, writer.options.job.workers);
  else
    last.batch = writer.options.batch;
  for (const auto& entry : actor::first_ledger_entries(states, writer.options.job.workers)) {
    last.samples += entry.samples;
    last.taken.push_back({.steps = entry.step - former.first_step()});
  }
  checkpoint.former_deals = models::deals_after(writer.options.job.former_deals, former, last);
  const auto first = restart_ledgers_after(checkpoint.former_deals, job.options, job.train_samples,
                                           last.samples, states);
  if (!first) return first.error();
  const std::size_t left = former.left(last.taken).size();
  checkpoint.states = std::move(states);
  checkpoint.changes = fmt::format(
      "was saved by {}; {} go on from step {}, and first take the {} left of the epochs begun",
      describe(writer.options.job), describe(job.options.job), *first, print_count(left, "sample"));
  return checkpoint;
}

std::vector<core::RangeState> counters_for(const core::Layout& from, const core::Layout& to,
                                           const std::vector<core::RangeState>& states) {
  std::vector<core::RangeState> all(to.ranges.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    const core::Range& range = to.ranges[r];
    core::RangeState& state = all[r];
    state.range = static_cast<core::RangeId>(r);
    for (const core::RangeState& other : states) {
      const core::Range& covered = from.ranges[other.range];
      if (covered.offset >= range.offset + range.count ||
          range.offset >= covered.offset + covered.count)
        continue;
      state.updates = std::max(state.updates, other.updates);
      state.samples = std::max(state.samples, other.samples);
      state.round = other.round;
      if (state.ledger.empty()) state.ledger = other.ledger;
    }
  }
  return all;
}

}  // namespace starling::program
