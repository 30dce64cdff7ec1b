#include "starling/engine/exchange/broadcast/broadcast.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace starling::core {
static_assert(Exchange<BroadcastExchange>);

BroadcastExchange::BroadcastExchange(ExchangeOptions options) : options_(std::move(options)) {
  if (options_.self.works) copies_.resize(options_.layout->ranges.size());
}

// --- this worker's reads and writes -------------------------------------------------------------

void BroadcastExchange::read(const Context& context, Read read) {
  waiting_read_ = std::move(read);
  finish_read(context);
}

/// Answers the read if this worker has copies of all ranges.
void BroadcastExchange::finish_read(const Context& context) {
  for (RangeId range = 0; range < copies_.size(); ++range)
    if (!has_copy(range)) return;
  if (!waiting_read_) return;
  const Read read = *std::exchange(waiting_read_, std::nullopt);
  context.out.push_back(read_from(*options_.layout, read, [&](RangeId range) -> const RangeValues& {
    return copies_[range].values;
  }));
}

void BroadcastExchange::write(const Context& context, Write write) {
  write_step_ = write.step;
  own_shares_.clear();
  const auto workers =
      static_cast<std::uint32_t>(std::ranges::count(configuration_->members, true, &Member::works));
  for (Update::Part& part : write.update.parts) {
    auto share =
        std::make_shared<const Share>(Share{.worker = {options_.self.id, options_.self.incarnation},
                                            .range = part.range,
                                            .step = write.step,
                                            .samples = write.update.samples,
                                            .samples_total = write.samples_total,
                                            .update = std::move(part.values),
                                            .workers = workers});
    // A worker that resumes begins at the lowest step of its ranges, so other ranges may have the
    // step already.
    (void)apply(share);
    own_shares_.push_back({std::move(share), other_workers()});
  }
  send_next(context);
}

/// Sends shares while fewer than `window` are in flight: first those that this member passes on,
/// then the parts of its update. Ends the write once the copies of all workers contain all parts.
void BroadcastExchange::send_next(const Context& context) {
  std::size_t in_flight = 0;
  const auto send_or_stop = [&](OutgoingShare& sent) {
    if (sent.missing.empty()) return false;
    if (++in_flight > options_.window) return true;
    if (!std::exchange(sent.is_sent, true))
      for (const MemberIncarnation& other : sent.missing) context.send(other.id, *sent.share);
    return false;
  };
  if (!std::ranges::any_of(shares_to_pass_on_, send_or_stop))
    (void)std::ranges::any_of(own_shares_, send_or_stop);
  const auto is_everywhere = [](const OutgoingShare& sent) { return sent.missing.empty(); };
  if (write_step_ == 0 || !std::ranges::all_of(own_shares_, is_everywhere)) return;
  own_shares_.clear();
  context.out.push_back(Written{std::exchange(write_step_, 0)});
}

bool BroadcastExchange::on(const Context& context, MemberId from, const ShareApplied& applied) {
  const bool is_own =
      applied.worker == MemberIncarnation{options_.self.id, options_.self.incarnation};
  std::vector<OutgoingShare>& shares = is_own ? own_shares_ : shares_to_pass_on_;
  const auto share = std::ranges::find_if(shares, [&](const OutgoingShare& sent) {
    return sent.share->worker == applied.worker && sent.share->range == applied.range &&
           sent.share->step == applied.step;
  });
  if (share == shares.end()) return true;
  std::erase_if(share->missing, [&](const auto& other) { return other.id == from; });
  if (!is_own && share->missing.empty()) shares_to_pass_on_.erase(share);
  send_next(context);
  return true;
}

// --- the updates of others ----------------------------------------------------------------------

bool BroadcastExchange::on(const Context& context, MemberId from,
                           const std::shared_ptr<const Share>& share) {
  if (copies_.empty()) return true;
  if (!has_copy(share->range)) {
    copies_[share->range].waiting.emplace_back(from, share);
    return true;
  }
  const bool is_new = apply(share);
  if (configuration_->find(from) != nullptr)
    context.send(from, ShareApplied{share->worker, share->range, share->step});
  if (is_new && !configuration_->contains(share->worker.id, share->worker.incarnation)) {
    copies_[share->range].last.erase(share->worker);
    pass_on(share);
    send_next(context);
  }
  return true;
}

/// Applies an update to this member's copy, unless the copy contains it already. Returns true if
/// the update was applied. Requires: has_copy(share->range).
bool BroadcastExchange::apply(const std::shared_ptr<const Share>& share) {
  Copy& copy = copies_[share->range];
  WorkerSteps& progress = copy.progress[share->worker];
  if (share->step <= progress.step) return false;
  progress.step = share->step;
  options_.applier->apply(*options_.layout, share->range, copy.values, share->update,
                          options_.applier->weight(share->samples, share->workers));
  copy.values.samples += share->samples_total - progress.samples;
  progress.samples = share->samples_total;
  if (!configuration_->is_of_one_process()) copy.last[share->worker] = share;
  return true;
}

/// Makes send_next() send `share`, the last one of a worker that is gone, to all other workers.
void BroadcastExchange::pass_on(std::shared_ptr<const Share> share) {
  std::vector<MemberIncarnation> others = other_workers();
  if (!others.empty()) shares_to_pass_on_.push_back({std::move(share), std::move(others)});
}

// --- members ------------------------------------------------------------------------------------

void BroadcastExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                         Epoch former) {
  const ConfigurationPtr before = std::exchange(configuration_, next);
  if (copies_.empty()) return;
  if (former == 0 && next->epoch == 1) return take_initial_states();
  for (OutgoingShare& part : own_shares_)
    if (!part.missing.empty()) renew_missing(context, *before, part);
  for (OutgoingShare& share : shares_to_pass_on_) renew_missing(context, *before, share);
  std::erase_if(shares_to_pass_on_,
                [](const OutgoingShare& share) { return share.missing.empty(); });
  const auto is_gone = [&](const MemberIncarnation& worker) {
    return !next->contains(worker.id, worker.incarnation);
  };
  for (Copy& copy : copies_)
    std::erase_if(copy.last, [&](const auto& entry) {
      if (!is_gone(entry.first)) return false;
      pass_on(entry.second);
      return true;
    });
  send_next(context);
  if (!source_.asked() || is_gone(*source_.asked())) request_copy(context);
}

/// Removes the workers that are gone from `sent.missing`, and adds those that have joined since
/// `before`. Requires: the share is missing somewhere; else each copy that a joining worker can get
/// contains it.
void BroadcastExchange::renew_missing(const Context& context, const Configuration& before,
                                      OutgoingShare& sent) const {
  std::erase_if(sent.missing, [&](const MemberIncarnation& worker) {
    return !configuration_->contains(worker.id, worker.incarnation);
  });
  for (const MemberIncarnation& other : other_workers()) {
    if (before.contains(other.id, other.incarnation)) continue;
    sent.missing.push_back(other);
    if (sent.is_sent) context.send(other.id, *sent.share);
  }
}

void BroadcastExchange::take_initial_states() {
  for (const RangeState& state : *options_.initial_states) {
    Copy& copy = copies_.at(state.range);
    copy.values = values_of(*options_.layout, *options_.applier, state);
    for (MemberId worker = 0; worker < state.ledger.size(); ++worker) {
      const LedgerEntry& entry = state.ledger[worker];
      if (entry.step > 0 || entry.samples > 0)
        copy.progress[{worker, entry.incarnation}] = {entry.step, entry.samples};
    }
  }
}

// --- copies for workers that join ---------------------------------------------------------------

/// Asks for the next copy that this worker lacks; answers a waiting read once it lacks none.
void BroadcastExchange::request_copy(const Context& context) {
  const bool has_all = full_ranges().size() == copies_.size();
  if (!has_all) return ask(context, source_.begin(other_workers()));
  source_.end();
  finish_read(context);
}

/// Does what `next` says: asks for the first range of which this worker has no copy, or waits, or
/// ends the job.
void BroadcastExchange::ask(const Context& context, CopySource::Next next) {
  if (auto* timer = std::get_if<SetTimer>(&next)) return context.out.push_back(*timer);
  if (auto* failure = std::get_if<Fail>(&next)) return context.out.push_back(std::move(*failure));
  RangeId range = 0;
  while (has_copy(range)) ++range;
  context.send(std::get<MemberId>(next), CopyRequest{range});
}

bool BroadcastExchange::on(const Context& context, MemberId from, const CopyRequest& request) {
  CopyReply reply{.range = request.range, .copy = nullptr};
  if (has_copy(request.range))
    reply.copy = std::make_shared<const RangeCopy>(range_copy(request.range));
  context.send(from, std::move(reply));
  return true;
}

bool BroadcastExchange::on(const Context& context, MemberId from, const CopyReply& reply) {
  const bool is_asked = source_.asked() && source_.asked()->id == from;
  if (copies_.empty() || has_copy(reply.range) || !is_asked) return true;
  if (reply.copy && install(context, *reply.copy)) {
    source_.on_copy();
    request_copy(context);
  } else {
    ask(context, source_.on_refusal(context.now, other_workers()));
  }
  return true;
}

void BroadcastExchange::on_timer(const Context& context) {
  if (source_.on_timer(context.now)) request_copy(context);
}

/// Takes a copy, and applies the updates that have come before it. Returns false if the copy does
/// not fit, which happens only if its sender is faulty.
bool BroadcastExchange::install(const Context& context, const RangeCopy& received) {
  Copy& copy = copies_[received.state.range];
  if (!fits(*options_.layout, *options_.applier, received.state)) return false;
  copy.values = values_of(*options_.layout, *options_.applier, received.state);
  for (const WorkerProgress& progress : received.progress)
    copy.progress[progress.worker] = {progress.step, progress.samples};
  for (const Share& share : received.last)
    copy.last[share.worker] = std::make_shared<const Share>(share);
  ++full_ranges_version_;
  for (const auto& [from, share] : std::exchange(copy.waiting, {})) (void)on(context, from, share);
  return true;
}

RangeCopy BroadcastExchange::range_copy(RangeId range) const {
  RangeCopy copy{.state = state(range), .progress = {}, .last = {}};
  copy.state.ledger.clear();
  for (const auto& [worker, progress] : copies_[range].progress)
    copy.progress.push_back({worker, progress.step, progress.samples});
  for (const auto& [worker, share] : copies_[range].last) copy.last.push_back(*share);
  for (const OutgoingShare& sent : shares_to_pass_on_)
    if (sent.share->range == range) copy.last.push_back(*sent.share);
  return copy;
}

// --- observers ----------------------------------------------------------------------------------

void BroadcastExchange::on(const Context& context, const Snapshot& request) const {
  send_states_to_observer(*this, context, request, copies_.size());
}

std::optional<Value> BroadcastExchange::value(RangeId range, const Rows& rows) const {
  if (!answers_for(range) || !has_rows(options_.layout->ranges[range], rows)) return std::nullopt;
  return Value{range, 0, slice_of(options_.layout->ranges[range], copies_[range].values, rows)};
}

RangeState BroadcastExchange::state(RangeId range) const {
  return state_of(range, copies_[range].values, copies_[range].progress, options_.workers);
}

std::vector<WorkerProgress> BroadcastExchange::progress() const {
  StepsOfWorkers highest;
  const auto add = [&](const MemberIncarnation& worker, const WorkerSteps& progress) {
    if (progress.step >= highest[worker].step) highest[worker] = progress;
  };
  for (const Copy& copy : copies_) {
    for (const auto& [worker, progress] : copy.progress) add(worker, progress);
    for (const auto& [from, share] : copy.waiting)
      add(share->worker, {share->step, share->samples_total});
  }
  return progress_of(highest);
}

}  // namespace starling::core
