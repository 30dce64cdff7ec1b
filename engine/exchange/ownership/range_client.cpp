#include "starling/engine/exchange/ownership/range_client.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

/// The owner of a part that was not sent to its present owner.
constexpr OwnerId not_sent = UINT32_MAX;
/// The position of a range that is not in the plan.
constexpr std::uint32_t not_planned = UINT32_MAX;

}  // namespace

void RangeClient::on_configuration(const OwnershipContext& context, ConfigurationPtr next) {
  const ConfigurationPtr former = std::exchange(configuration_, std::move(next));
  const std::vector<Ownership>& ranges = configuration_->ranges;
  position_.resize(ranges.size(), not_planned);
  primaries_.clear();
  for (RangeId range = 0; range < ranges.size(); ++range) primaries_.push_back(primary_of(range));
  std::ranges::sort(primaries_);
  primaries_.erase(std::unique(primaries_.begin(), primaries_.end()), primaries_.end());
  if (phase_ != Phase::idle) {
    // Sends a part again if its range has a new owner epoch: acknowledgements of former owners do
    // not count then.
    for (std::uint32_t part = 0; part < sent_to_.size(); ++part) {
      const RangeId range = range_of(part);
      if (former->ranges[range].owner_epoch != ranges[range].owner_epoch ||
          sent_to_[part] != primary_of(range))
        sent_to_[part] = not_sent;
    }
    send_unsent(context);
  } else if (ended_at_ && options_.bsp) {
    // The rounds of an owner await this worker until the owner knows that the worker has ended.
    send_end(context);
  }
}

void RangeClient::read(const OwnershipContext& context, Read read) {
  read_step_ = read.step;
  read_oldest_ = read.oldest;
  read_floor_ = read.floor;
  if (read.plan || !plans_all_) {
    for (const RangeRows& old : plan_) position_[old.range] = not_planned;
    plans_all_ = !read.plan;
    if (read.plan) {
      plan_ = *std::move(read.plan);
    } else {
      plan_.assign(position_.size(), {});
      for (RangeId range = 0; range < plan_.size(); ++range) plan_[range].range = range;
    }
    for (std::uint32_t i = 0; i < plan_.size(); ++i) {
      std::uint32_t& position = position_.at(plan_[i].range);
      STARLING_CHECK(position == not_planned);
      position = i;
    }
  }
  phase_ = Phase::pulling;
  values_.assign(plan_.size(), Value{});
  expect_answers(plan_.size());
  if (cache_) read_from_cache();
  counts_.ranges += plan_.size();
  counts_.pulled += unanswered_;
  send_unsent(context);
  if (unanswered_ == 0) finish_read(context);
}

/// Answers the parts of the read that the cache has, and notes which rows of the others to pull.
void RangeClient::read_from_cache() {
  rows_to_pull_.assign(plan_.size(), nullptr);
  for (std::uint32_t part = 0; part < plan_.size(); ++part) {
    const auto& [range, rows] = plan_[part];
    auto missing = cache_->missing(range, rows, read_oldest_);
    if (missing) {
      rows_to_pull_[part] = *std::move(missing);
      continue;
    }
    values_[part] = {range, read_step_, cache_->read(range, rows)};
    is_answered_[part] = true;
    --unanswered_;
  }
}

void RangeClient::write(const OwnershipContext& context, Write write) {
  write_ = std::move(write);
  is_join_ = false;
  auto& parts = write_.update.parts;
  if (options_.bsp) {
    // Each round of each range awaits a push of this worker: adds empty parts for all other ranges.
    std::vector<bool> covered(position_.size());
    for (const auto& part : parts) covered[part.range] = true;
    for (RangeId range = 0; range < covered.size(); ++range)
      if (!covered[range]) parts.push_back({range, {}});
  }
  std::ranges::sort(parts, {}, &Update::Part::range);
  STARLING_CHECK(std::ranges::adjacent_find(parts, {}, &Update::Part::range) == parts.end());
  if (cache_) write_to_cache();
  push(context);
}

/// Applies the worker's own update to the cache, so that the worker sees its own writes. Assumes
/// that every other worker has made as many updates and samples as this one.
void RangeClient::write_to_cache() {
  const auto workers =
      static_cast<std::uint64_t>(std::ranges::count(configuration_->members, true, &Member::works));
  for (const auto& [range, values] : write_.update.parts)
    cache_->apply(range, values, write_.update.samples, workers, workers * (write_.step - 1),
                  workers * write_.samples_total);
}

void RangeClient::enter(const OwnershipContext& context, const Enter& enter) {
  write_ = {.step = enter.step, .update = {}, .samples_total = 0};
  is_join_ = true;
  for (RangeId range = 0; range < position_.size(); ++range)
    write_.update.parts.push_back({range, {}});
  push(context);
}

void RangeClient::push(const OwnershipContext& context) {
  phase_ = Phase::pushing;
  expect_answers(write_.update.parts.size());
  send_unsent(context);
  if (unanswered_ == 0) finish_write(context);
}

void RangeClient::end(const OwnershipContext& context, const EndWrites& end) {
  ended_at_ = end.step;
  send_end(context);
}

void RangeClient::send_end(const OwnershipContext& context) const {
  for (const OwnerId owner : primaries_) context.send(owner, Ended{options_.worker, *ended_at_});
}

RangeId RangeClient::range_of(std::uint32_t part) const {
  return phase_ == Phase::pulling ? plan_[part].range : write_.update.parts[part].range;
}

OwnerId RangeClient::primary_of(RangeId range) const {
  return configuration_->ranges[range].owners.front().id;
}

void RangeClient::expect_answers(std::size_t parts) {
  unanswered_ = parts;
  is_answered_.assign(parts, false);
  sent_to_.assign(parts, not_sent);
}

/// Pulls or pushes the parts that are neither answered nor in flight; queues those for which the
/// owner's window is full.
void RangeClient::send_unsent(const OwnershipContext& context) {
  windows_.resize(primaries_.size());
  for (OwnerWindow& window : windows_) {
    window.in_flight = 0;
    window.queued.clear();
  }
  for (std::uint32_t part = 0; part < sent_to_.size(); ++part)
    if (!is_answered_[part] && sent_to_[part] != not_sent) ++window_of(sent_to_[part]).in_flight;
  for (std::uint32_t part = 0; part < sent_to_.size(); ++part)
    if (!is_answered_[part] && sent_to_[part] == not_sent) send_or_queue(context, part);
  for (OwnerWindow& window : windows_) std::ranges::reverse(window.queued);
}

RangeClient::OwnerWindow& RangeClient::window_of(OwnerId owner) {
  const auto at = std::ranges::lower_bound(primaries_, owner);
  STARLING_CHECK(at != primaries_.end() && *at == owner);
  return windows_[static_cast<std::size_t>(at - primaries_.begin())];
}

void RangeClient::send_or_queue(const OwnershipContext& context, std::uint32_t part) {
  OwnerWindow& window = window_of(primary_of(range_of(part)));
  if (window.in_flight < options_.window)
    send_part(context, part);
  else
    window.queued.push_back(part);
}

void RangeClient::send_part(const OwnershipContext& context, std::uint32_t part) {
  const RangeId range = range_of(part);
  const OwnerId owner = primary_of(range);
  ++window_of(owner).in_flight;
  sent_to_[part] = owner;
  if (phase_ == Phase::pulling)
    context.send(owner, Pull{options_.worker, range, read_step_,
                             cache_ ? rows_to_pull_[part] : plan_[part].rows});
  else
    context.send(owner,
                 Push{options_.worker, options_.incarnation, range, write_.step,
                      write_.update.samples, write_.samples_total, write_.update.parts[part].values,
                      is_join_, configuration_->ranges[range].owner_epoch});
}

/// The part `answered` has an answer: sends the next part that is queued for the same owner.
void RangeClient::refill_window(const OwnershipContext& context, std::uint32_t answered) {
  if (sent_to_[answered] == not_sent) return;  // a former owner has answered
  OwnerWindow& window = window_of(sent_to_[answered]);
  --window.in_flight;
  while (!window.queued.empty()) {
    const std::uint32_t next = window.queued.back();
    window.queued.pop_back();
    if (!is_answered_[next]) return send_part(context, next);
  }
}

void RangeClient::on(const OwnershipContext& context, const Value& value) {
  if (phase_ != Phase::pulling || value.after_step != read_step_) return;
  const std::uint32_t part = position_.at(value.range);
  if (part == not_planned || is_answered_[part]) return;
  if (cache_) {
    const Rows& rows = plan_[part].rows;
    cache_->put(value.range, value.value, read_floor_);
    values_[part] = {value.range, value.after_step, cache_->read(value.range, rows)};
  } else {
    values_[part] = value;
  }
  is_answered_[part] = true;
  if (--unanswered_ > 0) return refill_window(context, part);
  finish_read(context);
}

void RangeClient::finish_read(const OwnershipContext& context) {
  phase_ = Phase::idle;
  context.out.push_back(ReadDone{read_step_, std::exchange(values_, {})});
}

void RangeClient::on(const OwnershipContext& context, const Ack& ack) {
  if (phase_ != Phase::pushing || ack.step != write_.step) return;
  if (ack.incarnation != options_.incarnation ||
      ack.owner_epoch != configuration_->ranges.at(ack.range).owner_epoch)
    return;
  const auto& parts = write_.update.parts;
  const auto part = std::ranges::lower_bound(parts, ack.range, {}, &Update::Part::range);
  if (part == parts.end() || part->range != ack.range) return;
  const auto position = static_cast<std::size_t>(part - parts.begin());
  if (is_answered_[position]) return;
  is_answered_[position] = true;
  if (--unanswered_ > 0) return refill_window(context, static_cast<std::uint32_t>(position));
  finish_write(context);
}

void RangeClient::finish_write(const OwnershipContext& context) {
  phase_ = Phase::idle;
  write_.update = {};
  context.out.push_back(Written{write_.step});
}

}  // namespace starling::core
