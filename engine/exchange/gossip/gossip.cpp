#include "starling/engine/exchange/gossip/gossip.hpp"

#include <algorithm>
#include <string>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

GossipGraph graph_of(const ExchangeOptions& options) {
  const std::string_view argument = exchange_argument(options.name);
  const auto graph = parse_gossip_graph(argument.empty() ? gossip_graphs.front() : argument);
  STARLING_CHECK(graph.has_value());
  return *graph;
}

}  // namespace

static_assert(Exchange<GossipExchange>);

GossipExchange::GossipExchange(ExchangeOptions options)
    : options_(std::move(options)), graph_(graph_of(options_)) {
  if (options_.self.works) copies_.resize(options_.layout->ranges.size());
}

// --- this worker's reads and writes -------------------------------------------------------------

void GossipExchange::read(const Context& context, Read read) {
  waiting_read_ = std::move(read);
  finish_read(context);
}

/// Answers the read if this worker has copies of all ranges.
void GossipExchange::finish_read(const Context& context) {
  if (!waiting_read_ || full_ranges().size() < copies_.size()) return;
  const Read read = *std::exchange(waiting_read_, std::nullopt);
  context.out.push_back(read_from(*options_.layout, read, [&](RangeId range) -> const RangeValues& {
    return copies_[range].values;
  }));
}

void GossipExchange::write(const Context& context, const Write& write) {
  apply(write);
  const auto target = draw_target(context, write.step);
  if (!target) return context.out.push_back(Written{write.step});
  context.send(target->id, KnownProgress{write.step, progress()});
  sending_ = {.step = write.step, .target = *target, .in_flight = 1};
  send_next(context);
}

/// Adds the worker's update to its numerator: lr n/batch times the gradient, as if it were alone,
/// so the mean of all numerators moves by what the update of one of several workers moves a model
/// that they share.
void GossipExchange::apply(const Write& write) {
  if (write.step <= progress_[self()].step) return;  // a checkpoint contains it
  learn(self(), {write.step, write.samples_total});
  std::uint64_t samples = 0;
  for (const auto& [worker, progress] : progress_) samples += progress.samples;
  const std::size_t workers = others().size() + 1;
  const double weight =
      static_cast<double>(workers) * options_.applier->weight(write.update.samples, workers);
  for (const Update::Part& part : write.update.parts) {
    Copy& copy = copies_[part.range];
    copy.values.samples = samples;
    options_.applier->apply(*options_.layout, part.range, copy.values, part.values,
                            weight / copy.weight);
    ++copy.versions;
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
  return workers[gossip_target(graph_, own, workers.size(), step, context.random)];
}

/// Returns how much of the weight of a range the worker sends: all once it has ended; else half,
/// but no more than leaves it the least weight; 0 if that is too little to change anything.
double GossipExchange::weight_to_send(RangeId range) const {
  const auto& [values, weight, weight_min, versions, waiting] = copies_[range];
  if (ended_at_) return weight;
  const double sent = std::min(weight / 2, weight - weight_min);
  return sent < weight_min / 8 ? 0 : sent;
}

/// Sends the next ranges while fewer than `window` are in flight. Once the other worker has taken
/// all, the write is done.
void GossipExchange::send_next(const Context& context) {
  for (; sending_->next < copies_.size() && sending_->in_flight < options_.window;
       ++sending_->next) {
    const double weight = weight_to_send(sending_->next);
    if (weight == 0) continue;
    send(context, sending_->target.id, sending_->next, sending_->step, weight);
    ++sending_->in_flight;
  }
  if (sending_->in_flight > 0) return;
  const Step step = sending_->step;
  sending_.reset();
  if (ended_at_)
    hand_over(context);
  else
    context.out.push_back(Written{step});
}

/// Sends a part of the weight of a range.
void GossipExchange::send(const Context& context, MemberId to, RangeId range, Step step,
                          double weight) {
  Copy& copy = copies_[range];
  context.send(to, PushSum{range, step, weight,
                           slice_of(options_.layout->ranges[range], copy.values, nullptr)});
  copy.weight -= weight;
  ++copy.versions;
}

bool GossipExchange::on(const Context& context, MemberId from, const GossipReceived& received) {
  if (!sending_ || sending_->target.id != from || sending_->step != received.step ||
      sending_->in_flight == 0)
    return true;
  --sending_->in_flight;
  send_next(context);
  return true;
}

// --- what others send ---------------------------------------------------------------------------

bool GossipExchange::on(const Context& context, MemberId from,
                        const std::shared_ptr<const PushSum>& sent) {
  if (copies_.empty()) return true;
  if (has_copy(sent->range))
    add(context, from, *sent);
  else
    copies_[sent->range].waiting.emplace_back(from, sent);
  return true;
}

/// Mixes this worker's copy with what another one has sent. Requires: has_copy(sent.range).
void GossipExchange::add(const Context& context, MemberId from, const PushSum& sent) {
  Copy& copy = copies_[sent.range];
  copy.weight += sent.weight;
  options_.applier->mix(copy.values, sent.value, sent.weight / copy.weight);
  ++copy.versions;
  if (configuration_->find(from) != nullptr) context.send(from, GossipReceived{sent.step});
  hand_over(context);
}

bool GossipExchange::on(const Context& context, MemberId from, const KnownProgress& known) {
  learn(known.workers);
  if (configuration_->find(from) != nullptr) context.send(from, GossipReceived{known.step});
  if (ended_at_) {
    has_news_ = true;
    hand_over(context);
  }
  return true;
}

void GossipExchange::learn(const MemberIncarnation& worker, const WorkerSteps& progress) {
  WorkerSteps& known = progress_[worker];
  if (progress.step >= known.step) known = progress;
}

void GossipExchange::learn(const std::vector<WorkerProgress>& workers) {
  for (const WorkerProgress& one : workers) learn(one.worker, {one.step, one.samples});
}

// --- the end of workers -------------------------------------------------------------------------

/// Tells the others to send no more to this worker.
void GossipExchange::end(const Context& context, const EndWrites& end) {
  ended_at_ = end.step;
  has_news_ = true;
  for (const MemberIncarnation& other : others())
    context.send(other.id, Ended{options_.self.id, end.step});
  hand_over(context);
}

void GossipExchange::on(const Context&, const Ended& ended) {
  if (const Member* worker = configuration_->find(ended.worker))
    ended_.insert({worker->id, worker->incarnation});
}

bool GossipExchange::has_weight() const {
  return std::ranges::any_of(copies_, [](const Copy& copy) { return copy.weight > 0; });
}

/// True once the worker that answers for the model has all that this one's copy contains.
bool GossipExchange::may_leave() const {
  if (copies_.empty() || !configuration_ || is_answerer()) return true;
  return ended_at_ && !sending_ && !has_news_ && !has_weight();
}

/// If the worker has ended, sends all that it knows and all the weight that it has to the worker
/// that answers for the model. The values stay here as a copy without weight, for the case that the
/// other one dies.
void GossipExchange::hand_over(const Context& context) {
  if (!ended_at_ || sending_ || is_answerer()) return;
  if (!std::exchange(has_news_, false) && !has_weight()) return;
  const Member* target = configuration_->find(*first_worker(*configuration_));
  sending_ = {.step = *ended_at_, .target = {target->id, target->incarnation}, .in_flight = 1};
  context.send(target->id, KnownProgress{*ended_at_, progress()});
  send_next(context);
}

// --- members ------------------------------------------------------------------------------------

void GossipExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                      Epoch former) {
  const ConfigurationPtr before = std::exchange(configuration_, next);
  if (copies_.empty()) return;
  if (former == 0 && next->epoch == 1) return take_initial_states();
  const auto is_gone = [&](const MemberIncarnation& worker) {
    return !next->contains(worker.id, worker.incarnation);
  };
  std::erase_if(ended_, is_gone);
  if (ended_at_) {
    for (const MemberIncarnation& other : others())
      if (!before->contains(other.id, other.incarnation))
        context.send(other.id, Ended{options_.self.id, *ended_at_});
    const auto answerer = first_worker(*next);
    has_news_ |= answerer && !before->contains(*answerer, next->find(*answerer)->incarnation);
    has_news_ |= answerer != first_worker(*before);
  }
  // The dead may have had more than their part of all weight. If the workers that are left all had
  // their least weight, none of them would send any more.
  const auto is_gone_worker = [&](const Member& member) {
    return member.works && is_gone({member.id, member.incarnation});
  };
  if (before && std::ranges::any_of(before->members, is_gone_worker))
    for (Copy& copy : copies_)
      if (copy.weight > 0) copy.weight_min = std::min(copy.weight_min, copy.weight / 2);
  // Weight that was sent to a worker that is gone is lost with it. The rest stays here.
  if (sending_ && is_gone(sending_->target)) {
    sending_->next = static_cast<RangeId>(copies_.size());
    sending_->in_flight = 0;
    send_next(context);
  }
  hand_over(context);
  if (!source_.asked() || is_gone(*source_.asked())) request_copy(context);
}

void GossipExchange::take_initial_states() {
  for (const RangeState& state : *options_.initial_states) {
    Copy& copy = copies_.at(state.range);
    copy.values = values_of(*options_.layout, *options_.applier, state);
    copy.weight = 1;
    for (MemberId worker = 0; worker < state.ledger.size(); ++worker) {
      const LedgerEntry& entry = state.ledger[worker];
      if (entry.step > 0 || entry.samples > 0)
        learn({worker, entry.incarnation}, {entry.step, entry.samples});
    }
  }
}

// --- copies for workers that join ---------------------------------------------------------------

/// Asks for the next copy that this worker lacks; answers a waiting read once it lacks none.
void GossipExchange::request_copy(const Context& context) {
  if (full_ranges().size() < copies_.size()) return ask(context, source_.begin(others()));
  source_.end();
  finish_read(context);
}

/// Asks for the first range of which this worker has no copy, or waits, or ends the job.
void GossipExchange::ask(const Context& context, CopySource::Next next) {
  if (auto* timer = std::get_if<SetTimer>(&next)) return context.out.push_back(*timer);
  if (auto* failure = std::get_if<Fail>(&next)) return context.out.push_back(std::move(*failure));
  RangeId range = 0;
  while (has_copy(range)) ++range;
  context.send(std::get<MemberId>(next), ModelRequest{range});
}

bool GossipExchange::on(const Context& context, MemberId from, const ModelRequest& request) {
  ModelReply reply{.range = request.range, .copy = nullptr};
  if (has_copy(request.range)) {
    auto copy = std::make_shared<ModelCopy>(
        ModelCopy{.state = state(request.range), .progress = progress()});
    copy->state.ledger.clear();
    reply.copy = std::move(copy);
  }
  context.send(from, std::move(reply));
  return true;
}

/// A worker that joins brings a weight of 1, as those did with which the job has started.
bool GossipExchange::on(const Context& context, MemberId from, const ModelReply& reply) {
  const bool is_asked = source_.asked() && source_.asked()->id == from;
  if (copies_.empty() || has_copy(reply.range) || !is_asked) return true;
  if (!reply.copy || !fits(*options_.layout, *options_.applier, reply.copy->state)) {
    ask(context, source_.on_refusal(context.now, others()));
    return true;
  }
  Copy& copy = copies_[reply.range];
  copy.values = values_of(*options_.layout, *options_.applier, reply.copy->state);
  copy.weight = 1;
  learn(reply.copy->progress);
  ++changes_;
  for (const auto& [sender, sent] : std::exchange(copy.waiting, {})) add(context, sender, *sent);
  source_.on_copy();
  request_copy(context);
  hand_over(context);
  return true;
}

void GossipExchange::on_timer(const Context& context) {
  if (source_.on_timer(context.now)) request_copy(context);
}

// --- observers ----------------------------------------------------------------------------------

std::optional<Value> GossipExchange::value(RangeId range, const Rows& rows) const {
  if (!answers_for(range) || !has_rows(options_.layout->ranges[range], rows)) return std::nullopt;
  return Value{range, 0, slice_of(options_.layout->ranges[range], copies_[range].values, rows)};
}

RangeState GossipExchange::state(RangeId range) const {
  return state_of(range, copies_[range].values, progress_, options_.workers);
}

}  // namespace starling::core
