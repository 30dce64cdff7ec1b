#include "starling/engine/exchange/gossip/gossip.hpp"

#include <algorithm>
#include <string>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/gossip/push_weight.hpp"
#include "starling/models/optimizer/compressions/bf16.hpp"

namespace starling::core {

static_assert(Exchange<GossipExchange>);

Result<GossipSettings> parse_gossip(std::string_view name) {
  constexpr Step lag_max = 64;
  const auto spec = Spec::parse(name);
  if (!spec) return Error{"exchange: " + spec.error().message};
  SpecReader reader(*spec);
  GossipSettings settings;
  if (const std::string graph = reader.positional(); !graph.empty()) {
    if (const auto known = parse_gossip_graph(graph))
      settings.graph = *known;
    else
      return Error{"exchange: gossip: " + quote(graph) + " is unknown; " +
                   suggest(graph, std::vector<std::string>{GossipExchange::arguments.begin(),
                                                           GossipExchange::arguments.end()})};
  }
  settings.steps_in_flight_max = reader.count("lag", settings.steps_in_flight_max, 0, lag_max);
  if (auto done = reader.finish(); !done) return Error{"exchange: " + done.error().message};
  return settings;
}

GossipExchange::GossipExchange(const ExchangeOptions& options)
    : WorkerModel(options), settings_(parse_gossip(options.name).value()), push_sums_(ranges()) {}

Result<void> GossipExchange::check_argument(std::string_view argument) {
  if (auto settings = parse_gossip(std::string{name} + ":" + std::string{argument}); !settings)
    return settings.error();
  return {};
}

// --- this worker's writes -----------------------------------------------------------------------

void GossipExchange::write(const Context& context, const Write& write) {
  apply(write);
  writing_ = write.step;
  if (const auto target = draw_target(context, write.step)) {
    begin_transfer(context, *target, write.step);
  }
  send_next(context);
}

/// Applies the update to the worker's copy, so that w z, the numerator of push-sum, moves by
/// lr * (samples / batch) * gradient, as if the worker were alone. So the mean of all numerators
/// moves as far as one worker's update moves a model that all workers share.
void GossipExchange::apply(const Write& write) {
  if (write.step <= known_steps(self()).step) return;  // a checkpoint contains it
  record_progress(self(), {write.step, write.samples_total});
  const std::uint64_t samples = samples_of_all();
  const Applier& applier = *options().applier;
  const std::size_t workers = others().size() + 1;
  const double factor =
      static_cast<double>(workers) * applier.weight(write.update.samples, workers);
  for (const Update::Part& part : write.update.parts) {
    if (initial_state_contains(part.range, write.step)) continue;
    PushSumState& own = push_sums_[part.range];
    values(part.range).samples = samples;
    applier.apply(*options().layout, part.range, values(part.range), part.values,
                  factor / own.weight);
    ++own.versions;
  }
}

/// Returns the worker to which this one sends after a step; nullopt if no other one is running.
std::optional<MemberIncarnation> GossipExchange::draw_target(const Context& context,
                                                             Step step) const {
  std::vector<MemberIncarnation> workers = others();
  std::erase_if(workers, [&](const MemberIncarnation& other) { return ended_.contains(other); });
  if (workers.empty()) return std::nullopt;
  const auto place = std::ranges::upper_bound(workers, self());
  const auto own = static_cast<std::size_t>(place - workers.begin());
  workers.insert(place, self());
  return workers[gossip_target(settings_.graph, own, workers.size(), step, context.random)];
}

/// Returns how much of the weight of a range the worker sends: all once it has ended.
double GossipExchange::weight_to_send(RangeId range) const {
  const PushSumState& own = push_sums_[range];
  return ended_at_ ? own.weight : push_weight(own.weight, own.weight_min);
}

/// Returns how many messages count for the window of a target: all that are in flight or, once this
/// worker has ended, those to this target: handing over waits for no other target.
std::size_t GossipExchange::in_flight(const MemberIncarnation& target) const {
  std::size_t count = 0;
  for (const Transfer& transfer : transfers_)
    if (!ended_at_ || transfer.target == target) count += transfer.in_flight.size();
  return count;
}

/// Begins a transfer with all that this worker knows of the progress of all workers.
void GossipExchange::begin_transfer(const Context& context, const MemberIncarnation& target,
                                    Step step) {
  const Step number = next_number(step);
  context.send(target.id, KnownProgress{number, progress()});
  transfers_.push_back({.step = step, .target = target, .in_flight = {{number, {}}}});
}

/// Sends the next ranges while fewer than `window` messages are in flight. Answers the
/// write once others have acknowledged all transfers but those of the last steps_in_flight_max
/// steps.
void GossipExchange::send_next(const Context& context) {
  for (Transfer& transfer : transfers_) {
    std::size_t count = in_flight(transfer.target);
    for (; transfer.next < ranges() && count < options().window; ++transfer.next) {
      const double weight = weight_to_send(transfer.next);
      if (weight == 0) continue;
      const Step number = next_number(transfer.step);
      send(context, transfer.target.id, transfer.next, number, weight);
      transfer.in_flight.push_back({number, std::exchange(push_sums_[transfer.next].taken, {})});
      ++count;
    }
  }
  std::erase_if(transfers_, [&](const Transfer& transfer) {
    return transfer.next == ranges() && transfer.in_flight.empty();
  });
  if (writing_ &&
      (transfers_.empty() || transfers_.front().step + settings_.steps_in_flight_max > *writing_))
    context.out.push_back(Written{*std::exchange(writing_, std::nullopt)});
  hand_over(context);
}

void GossipExchange::send(const Context& context, MemberId to, RangeId range, Step number,
                          double weight) {
  context.send(to,
               PushSum{range, number, weight,
                       options().rounds_to_bf16 && !ended_at_
                           ? round_to_send(range, weight)
                           : slice_of(options().layout->ranges[range], values(range), nullptr)});
  push_sums_[range].weight -= weight;
  ++push_sums_[range].versions;
}

/// Returns the values of a range with the precision of bfloat16. Adds the rounding error, times the
/// weight that is sent divided by the weight that is left, to this worker's copy. Requires: some
/// weight is left.
Slice GossipExchange::round_to_send(RangeId range, double weight) {
  RangeValues& own = values(range);
  const auto current = std::as_const(*own.value).as<float>();
  const auto rounded = Buffer::make<float>(current.size());
  const auto corrected = Buffer::make<float>(current.size());
  const std::span<float> errors = corrected->as<float>();
  std::ranges::copy(current, rounded->as<float>().begin());
  std::ranges::fill(errors, 0.0F);
  models::Bf16::round(rounded->as<float>(), errors);
  const auto part = static_cast<float>(weight / (push_sums_[range].weight - weight));
  std::ranges::transform(current, errors, errors.begin(),
                         [part](float value, float error) { return value + part * error; });
  own.value = corrected;
  return {rounded, 0, current.size(), nullptr, true};
}

bool GossipExchange::on(const Context& context, MemberId from, const GossipReceived& received) {
  for (Transfer& transfer : transfers_) {
    const auto sent = std::ranges::find(transfer.in_flight, received.step, &Sent::number);
    if (transfer.target.id != from || sent == transfer.in_flight.end()) continue;
    acknowledge(context, sent->contains);
    transfer.in_flight.erase(sent);
    send_next(context);
    break;
  }
  return true;
}

/// Acknowledges PushSums, and removes them from the list.
void GossipExchange::acknowledge(const Context& context, std::vector<Taken>& taken) const {
  for (const auto& [sender, step] : std::exchange(taken, {}))
    if (is_present(sender)) context.send(sender.id, GossipReceived{step});
}

// --- what others send ---------------------------------------------------------------------------

bool GossipExchange::on(const Context& context, MemberId from,
                        const std::shared_ptr<const PushSum>& sent) {
  if (ranges() == 0) return true;
  if (has_all_ranges_)
    mix_in(context, from, *sent);
  else
    push_sums_[sent->range].waiting.emplace_back(from, sent);
  return true;
}

/// Mixes this worker's copy with what another one has sent. Requires: has_all_ranges_.
void GossipExchange::mix_in(const Context& context, MemberId from, const PushSum& sent) {
  PushSumState& own = push_sums_[sent.range];
  own.weight += sent.weight;
  options().applier->mix(values(sent.range), sent.value, sent.weight / own.weight);
  ++own.versions;
  if (const Member* sender = configuration().find(from))
    own.taken.push_back({{sender->id, sender->incarnation}, sent.step});
  if (!ended_at_) acknowledge(context, own.taken);
  hand_over(context);
}

bool GossipExchange::on(const Context& context, MemberId from, const KnownProgress& known) {
  record_progress(known.workers);
  if (configuration().find(from) != nullptr) context.send(from, GossipReceived{known.step});
  if (ended_at_) {
    must_hand_over_ = true;
    hand_over(context);
  }
  return true;
}

// --- the end of workers -------------------------------------------------------------------------

/// Tells the others to send no more to this worker.
void GossipExchange::end(const Context& context, const EndWrites& end) {
  ended_at_ = last_number_ = end.step;
  must_hand_over_ = true;
  for (Transfer& transfer : transfers_) transfer.next = ranges();
  for (const MemberIncarnation& other : others()) context.send(other.id, ended_message());
  hand_over(context);
}

/// Returns the message that tells others of this worker's end. Requires: the worker has ended. The
/// step in the message is 0 if the worker never had a copy, and so added no weight; else it is at
/// least 1, even if the worker made no step.
Ended GossipExchange::ended_message() const {
  return {self().id, has_all_ranges() ? std::max<Step>(*ended_at_, 1) : 0, is_leaving_};
}

void GossipExchange::leave(const Context& context) {
  is_leaving_ = true;
  if (!ended_at_) return;
  must_hand_over_ = true;
  for (const MemberIncarnation& other : others()) context.send(other.id, ended_message());
  hand_over(context);
}

/// Stops sending to the worker that has ended, even the rest of a transfer.
void GossipExchange::on(const Context& context, const Ended& ended) {
  const Member* worker = configuration().find(ended.worker);
  if (worker == nullptr || ranges() == 0) return;
  const auto former = handover_target(configuration());
  ended_.insert({worker->id, worker->incarnation});
  if (ended.leaves) leaving_[{worker->id, worker->incarnation}] = ended.step;
  if (ended_at_) {
    must_hand_over_ |= handover_target(configuration()) != former;
    return hand_over(context);
  }
  for (Transfer& transfer : transfers_)
    if (transfer.target.id == ended.worker) transfer.next = ranges();
  send_next(context);
}

bool GossipExchange::has_weight() const {
  return std::ranges::any_of(push_sums_, [](const PushSumState& own) { return own.weight > 0; });
}

/// Returns the worker to which workers hand over when they end: the one with the lowest id among
/// the workers that are not leaving, because it replies to observers once the others have left.
/// nullopt if all are leaving.
std::optional<MemberIncarnation> GossipExchange::handover_target(
    const Configuration& configuration) const {
  for (const Member& member : configuration.members) {  // ascending by id
    if (!member.works) continue;
    const MemberIncarnation worker{member.id, member.incarnation};
    const bool leaves = worker == self() ? is_leaving_ : leaving_.contains(worker);
    if (!leaves) return worker;
  }
  return std::nullopt;
}

/// True once others have taken all that this worker has sent, and handover_target() has all that
/// this worker's copy contains, and all that others have sent to this worker.
bool GossipExchange::may_leave() const {
  if (ranges() == 0 || !has_configuration()) return true;
  const auto target = handover_target(configuration());
  if (!target || *target == self()) return transfers_.empty();
  const bool is_waiting =
      std::ranges::any_of(push_sums_, [](const PushSumState& own) { return !own.waiting.empty(); });
  return ended_at_ && transfers_.empty() && !must_hand_over_ && !has_weight() && !is_waiting;
}

/// If the worker has ended, sends all that it knows and all the weight that it has to
/// handover_target(). The values stay here as a copy without weight, in case handover_target()
/// dies. A PushSum that comes after the end is acknowledged only when handover_target() has its
/// weight, so that its sender neither counts the step nor leaves before.
void GossipExchange::hand_over(const Context& context) {
  if (!ended_at_) return;
  const auto target = handover_target(configuration());
  if (!target || *target == self()) {
    for (PushSumState& own : push_sums_) acknowledge(context, own.taken);
    for (Transfer& transfer : transfers_)
      for (Sent& sent : transfer.in_flight) acknowledge(context, sent.contains);
    return;
  }
  bool is_handing_over = false;
  for (Transfer& transfer : transfers_) {
    if (transfer.target != *target) transfer.next = ranges();
    is_handing_over |= transfer.next < ranges();
  }
  if (is_handing_over || (!std::exchange(must_hand_over_, false) && !has_weight())) return;
  begin_transfer(context, *target, *ended_at_);
  send_next(context);
}

// --- members ------------------------------------------------------------------------------------

/// If workers have left, the workers that stay have the weight of the leavers, too. Lowers this
/// worker's weight by the same factor as the others do, but not below its weight_min. So the mean
/// weight stays 1, and updates move the mean of the copies as far as before. Returns false, and
/// changes nothing, if handover_target(before), which got the leavers' weight, is not in `next` or
/// has ended.
bool GossipExchange::lower_weights(const Configuration& before, const Configuration& next) {
  const auto is_in_next = [&](const MemberIncarnation& worker) {
    return next.contains(worker.id, worker.incarnation);
  };
  const auto target = handover_target(before);
  if (!target || !is_in_next(*target) || ended_.contains(*target)) return false;
  if (*target == self() && ended_at_) return false;
  const auto stay = std::ranges::count_if(before.members, [&](const Member& member) {
    return member.works && is_in_next({member.id, member.incarnation});
  });
  // Workers that never had a copy had no weight (ended_message()).
  const auto left = std::ranges::count_if(
      leaving_, [&](const auto& worker) { return worker.second > 0 && !is_in_next(worker.first); });
  const double factor = static_cast<double>(stay) / static_cast<double>(stay + left);
  for (PushSumState& own : push_sums_)
    own.weight = std::max(own.weight * factor, std::min(own.weight, own.weight_min));
  return true;
}

void GossipExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                      Epoch former) {
  const ConfigurationPtr before = set_configuration(next);
  if (ranges() == 0) return;
  if (former == 0 && next->epoch == 1) {
    take_initial_states();
    has_all_ranges_ = true;
    for (PushSumState& own : push_sums_) own.weight = 1;
    return;
  }
  const auto is_gone = [&](const MemberIncarnation& worker) {
    return !next->contains(worker.id, worker.incarnation);
  };
  if (ended_at_) {
    for (const MemberIncarnation& other : others())
      if (!before->contains(other.id, other.incarnation)) context.send(other.id, ended_message());
    must_hand_over_ |= handover_target(*next) != handover_target(*before);
  }
  const bool is_handed_over = before && lower_weights(*before, *next);
  const auto is_dead_worker = [&](const Member& member) {
    const MemberIncarnation worker{member.id, member.incarnation};
    return member.works && is_gone(worker) && !(is_handed_over && leaving_.contains(worker));
  };
  const bool have_died = before && std::ranges::any_of(before->members, is_dead_worker);
  // A worker may leave and die before it has handed over all. Only handover_target() can know that.
  const bool have_left = is_handed_over && std::ranges::any_of(leaving_, [&](const auto& worker) {
                           return is_gone(worker.first);
                         });
  // A worker that has only its weight_min sends nothing (push_weight()). If dead workers had most
  // of the weight, that may be so for all others. So weight_min falls to half of the weight.
  const double lowest = have_died ? 0 : first_weight_min / 2;
  for (PushSumState& own : push_sums_)
    if ((have_died || have_left) && own.weight > 0)
      own.weight_min = std::min(own.weight_min, std::max(own.weight / 2, lowest));
  std::erase_if(ended_, is_gone);
  std::erase_if(leaving_, [&](const auto& worker) { return is_gone(worker.first); });
  // Weight that was sent to a worker that is gone is lost with it. The rest stays here.
  for (Transfer& transfer : transfers_)
    if (is_gone(transfer.target)) {
      transfer.next = ranges();
      for (Sent& sent : std::exchange(transfer.in_flight, {})) acknowledge(context, sent.contains);
    }
  send_next(context);
  request_missing_copies(context);
}

/// A worker that joins gets a weight of 1 once it has the copies of all ranges, like the workers
/// with which the job started, but 0 if it has told the others that it leaves (ended_message()).
bool GossipExchange::on(const Context& context, MemberId from, const ModelReply& reply) {
  if (!install(context, from, reply)) return true;
  if (has_all_ranges()) {
    has_all_ranges_ = true;
    for (PushSumState& own : push_sums_) {
      own.weight = ended_at_ && is_leaving_ ? 0 : 1;
      for (const auto& [sender, sent] : std::exchange(own.waiting, {}))
        mix_in(context, sender, *sent);
    }
  }
  request_copy(context);
  hand_over(context);
  return true;
}

}  // namespace starling::core
