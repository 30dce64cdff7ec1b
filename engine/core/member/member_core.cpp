#include "starling/engine/core/member/member_core.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/engine/exchange/ownership/peer.hpp"

namespace starling::core {
namespace {

/// True for messages to observers: cores send them to no member, and PeerMessage holds none.
template <class M>
constexpr bool is_for_observers = std::is_same_v<M, Snapshot> || std::is_same_v<M, RangeState>;

/// True for messages that an owner refuses where they do not fit its own configuration.
template <class M>
constexpr bool is_for_owners =
    std::is_constructible_v<std::variant<Push, Pull, Install, Forward, Held>, M>;

template <class T>
bool is_bsp(const MemberOptions<T>& options) {
  return keeps_steps_centrally(options.mode) && barrier::is_bsp(options.worker.barrier);
}

}  // namespace

template <class T>
MemberCore<T>::MemberCore(MemberOptions<T> options)
    : options_(std::move(options)), council_([&] {
        CouncilOptions council = options_.council;
        council.self = options_.self;
        council.bsp = is_bsp(options_);
        return council;
      }()) {
  options_.worker.id = options_.self.id;
  options_.worker.incarnation = options_.self.incarnation;
  options_.worker.central = keeps_steps_centrally(options_.mode);
  options_.worker.joins = !options_.first;
  if (options_.first) {
    const LedgerEntry first = first_entry(*options_.start, options_.self.id);
    options_.worker.first = first.step;
    options_.worker.samples = first.samples;
  }
  options_.worker.bsp = options_.shard.bsp = is_bsp(options_);
  options_.shard.workers_max = options_.members_max;
  replica_.emplace(ReplicaOptions<T>{options_.self.id, options_.shard, options_.start});
}

template <class T>
void MemberCore<T>::start(const MemberContext& context) {
  STARLING_CHECK(state_ == State::idle);
  state_ = State::joining;
  joining_since_ = context.now;
  if (options_.first)
    adopt(context, options_.first);
  else
    ask_again(context);
  settle(context);
}

template <class T>
void MemberCore<T>::on_packet(const MemberContext& context, const Envelope& envelope) {
  const Packet<PeerMessagePtr>& packet = envelope.packet;
  if (state_ == State::idle || state_ == State::failed || envelope.to != options_.self.id) return;
  if (packet.sequence == 0 && packet.payload) return receive_unreliable(context, envelope);
  if (state_ != State::excluded && packet.payload && packet.to == options_.self.incarnation) {
    // Adopts a decided configuration ahead of its turn, so that its new members are accepted.
    const auto* next = std::get_if<ConfigurationPtr>(&**packet.payload);
    if (next != nullptr && is_news(*next)) adopt(context, *next);
  }
  if (!configuration_) return;
  const bool known = configuration_->contains(envelope.from, packet.from);
  const bool mine = !packet.to || *packet.to == options_.self.incarnation;
  if (state_ != State::member || !known || !mine) {
    if (envelope.epoch < configuration_->epoch)
      send_unreliable(context, envelope.from, packet.from, peer_message_of(configuration_));
    return settle(context);
  }
  Link& other = *link(envelope.from);
  // A sender may falsely claim a later epoch, so that epoch's configuration is still sent.
  other.epoch_sent = std::max(other.epoch_sent, std::min(envelope.epoch, configuration_->epoch));
  LinkEffects effects;
  other.on({context.now, effects}, envelope, configuration_->epoch);
  act_on(context, envelope.from, envelope.traffic_class, std::move(effects));
  settle(context);
}

template <class T>
void MemberCore<T>::on_timer(const MemberContext& context, TimerKey key) {
  if (state_ != State::member && state_ != State::joining) return;
  if (key == worker_key) {
    run_worker(context, [](Worker& worker, const Context& c) { worker.on_timer(c); });
  } else if (key == coordinator_key) {
    run_coordinator(context, [](Coordinator& all, const Context& c) { all.on_timer(c); });
  } else if (key == council_key) {
    run_council(context, [](Council& council, const CouncilContext& c) { council.on_timer(c); });
  } else if (key == own_key) {
    timer_.fired(context.now);
    ask_again(context);
  } else if (key == probe_key) {
    probe_epoch(context);
  } else if (Link* other = link(Link::other_of(key)); other && other->has_timer(key)) {
    LinkEffects effects;
    other->channel(Link::traffic_class_of(key)).on_timer({context.now, effects});
    act_on(context, Link::other_of(key), Link::traffic_class_of(key), std::move(effects));
  }
  settle(context);
}

template <class T>
void MemberCore<T>::on_plan(const MemberContext& context, Step step,
                            std::vector<RangeRows> wanted) {
  if (state_ != State::member) return;
  run_worker(context, [&](Worker& w, const Context& c) { w.on_plan(c, step, std::move(wanted)); });
  settle(context);
}

template <class T>
void MemberCore<T>::on_update(const MemberContext& context, Step step, Update update) {
  if (state_ != State::member) return;
  run_worker(context,
             [&](Worker& w, const Context& c) { w.on_update(c, step, std::move(update)); });
  settle(context);
}

template <class T>
void MemberCore<T>::on_failure(const MemberContext& context, Step step, const std::string& why) {
  if (state_ != State::member) return;
  run_worker(context, [&](Worker& w, const Context& c) { w.on_failure(c, step, why); });
  settle(context);
}

template <class T>
void MemberCore<T>::suspect(const MemberContext& context, MemberId id, Incarnation incarnation) {
  if (state_ != State::member) return;
  run_council(context,
              [&](Council& council, const auto& c) { council.suspect(c, id, incarnation); });
  settle(context);
}

template <class T>
void MemberCore<T>::trust(const MemberContext& context, MemberId id, Incarnation incarnation) {
  if (state_ != State::member) return;
  run_council(context, [&](Council& council, const auto& c) { council.trust(c, id, incarnation); });
  settle(context);
}

template <class T>
void MemberCore<T>::stop(const MemberContext& context) {
  if (state_ != State::member) return;
  run_worker(context, [](Worker& worker, const Context& c) { worker.on(c, Stop{}); });
  settle(context);
}

template <class T>
void MemberCore<T>::leave(const MemberContext& context) {
  if (state_ != State::member || std::exchange(leaving_, true)) return;
  run_worker(context, [](Worker& worker, const Context& c) { worker.on(c, Stop{}); });
  ask_again(context);
  settle(context);
}

template <class T>
void MemberCore<T>::on_message(const MemberContext& context, MemberId from, Incarnation incarnation,
                               const PeerMessagePtr& peer_message) {
  if (state_ != State::member || !configuration_->contains(from, incarnation)) return;
  deliver(context, from, peer_message);
  settle(context);
}

template <class T>
typename MemberCore<T>::Link* MemberCore<T>::link(MemberId id) const {
  return id < links_.size() ? links_[id].get() : nullptr;
}

template <class T>
void MemberCore<T>::act_on(const MemberContext& context, MemberId id, TrafficClass traffic_class,
                           LinkEffects effects) {
  const Epoch epoch = configuration_->epoch;
  const TimerKey key = link(id)->timer_of(traffic_class);
  for (auto& effect : effects) {
    if (auto* transmit = std::get_if<Transmit<PeerMessagePtr>>(&effect)) {
      context.out.push_back(
          Dispatch{{options_.self.id, id, epoch, traffic_class, std::move(transmit->packet)}});
    } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      context.out.push_back(MemberTimer{timer->at, key});
    } else if (auto* arrived = std::get_if<Deliver<PeerMessagePtr>>(&effect)) {
      // An earlier message may have removed the incarnation that sent this one.
      if (state_ == State::member && link(id) != nullptr && link(id)->has_timer(key))
        deliver(context, id, arrived->payload);
    }
  }
}

template <class T>
void MemberCore<T>::post(const MemberContext& context, MemberId to, PeerMessagePtr peer_message) {
  if (to == options_.self.id) {
    inbox_.push_back(std::move(peer_message));
    return;
  }
  if (link(to) == nullptr) return;  // no member (any more)
  send_configuration(context, to);
  send(context, to, std::move(peer_message));
}

/// Requires: there is a link.
template <class T>
void MemberCore<T>::send(const MemberContext& context, MemberId to, PeerMessagePtr peer_message) {
  const TrafficClass traffic_class = traffic_class_of(*peer_message);
  LinkEffects effects;
  if (!link(to)->channel(traffic_class).send({context.now, effects}, std::move(peer_message)))
    fail(context, "member " + std::to_string(to) + " is not known to be dead, and takes nothing");
  act_on(context, to, traffic_class, std::move(effects));
}

template <class T>
void MemberCore<T>::post_to_council(const MemberContext& context,
                                    const PeerMessagePtr& peer_message) {
  const ConfigurationPtr now = configuration_;
  for (const MemberId id : now->council) post(context, id, peer_message);
}

/// Sends a member the configuration ahead of the next message, unless the member knows it.
template <class T>
void MemberCore<T>::send_configuration(const MemberContext& context, MemberId id) {
  Link* other = link(id);
  if (other == nullptr || other->epoch_sent >= configuration_->epoch) return;
  other->epoch_sent = configuration_->epoch;
  send(context, id, peer_message_of(configuration_));
}

/// Sends a message to a node that may not be a member: it is not repeated.
template <class T>
void MemberCore<T>::send_unreliable(const MemberContext& context, MemberId to,
                                    std::optional<Incarnation> incarnation,
                                    PeerMessagePtr peer_message) const {
  Packet<PeerMessagePtr> packet;
  packet.from = options_.self.incarnation;
  packet.to = incarnation;
  packet.payload = std::move(peer_message);
  const Epoch epoch = configuration_ ? configuration_->epoch : 0;
  context.out.push_back(
      Dispatch{{options_.self.id, to, epoch, TrafficClass::control, std::move(packet)}});
}

template <class T>
void MemberCore<T>::receive_unreliable(const MemberContext& context, const Envelope& envelope) {
  const Packet<PeerMessagePtr>& packet = envelope.packet;
  if (packet.to && *packet.to != options_.self.incarnation) return;
  if (std::holds_alternative<EpochProbe>(**packet.payload)) {
    if (!configuration_) return;
    if (envelope.epoch < configuration_->epoch)
      send_unreliable(context, envelope.from, packet.from, peer_message_of(configuration_));
    else if (envelope.epoch > configuration_->epoch && state_ == State::member)
      send_unreliable(context, envelope.from, packet.from, peer_message_of(EpochProbe{}));
    return;
  }
  if (const auto* next = std::get_if<ConfigurationPtr>(&**packet.payload)) {
    if (state_ != State::excluded && is_news(*next)) adopt(context, *next);
  } else if (const auto* request = std::get_if<JoinRequest>(&**packet.payload)) {
    receive_join_request(context, envelope, request->member);
  } else if (const auto* refused = std::get_if<JoinRefused>(&**packet.payload)) {
    const auto& seeds = options_.seeds;
    if (state_ == State::joining && std::ranges::find(seeds, envelope.from) != seeds.end())
      fail(context, "not taken in: " + refused->why);
  }
  settle(context);
}

/// Handles a request to join of a node that is not a member.
template <class T>
void MemberCore<T>::receive_join_request(const MemberContext& context, const Envelope& envelope,
                                         const Member& member) {
  const Incarnation incarnation = envelope.packet.from;
  if (!configuration_ || member.id != envelope.from || member.incarnation != incarnation) return;
  if (state_ == State::excluded || configuration_->has_had(member.id, incarnation))
    send_unreliable(context, member.id, incarnation, peer_message_of(configuration_));
  else if (member.id >= options_.members_max)
    send_unreliable(context, member.id, incarnation,
                    peer_message_of(JoinRefused{"members are numbered below " +
                                                std::to_string(options_.members_max) +
                                                ", and this one is " + std::to_string(member.id)}));
  else if (state_ == State::member)
    post_to_council(context, peer_message_of(JoinRequest{member}));
}

template <class T>
bool MemberCore<T>::is_news(const ConfigurationPtr& next) const {
  if (configuration_)
    return may_follow(*configuration_, next, options_.members_max) &&
           next->epoch > configuration_->epoch;
  return is_sound(next, options_.members_max) &&
         next->ranges.size() == options_.shard.layout->ranges.size() &&
         next->coordinator.has_value() == keeps_steps_centrally(options_.mode);
}

template <class T>
void MemberCore<T>::settle(const MemberContext& context) {
  for (std::size_t i = 0; state_ == State::member && i < inbox_.size(); ++i)
    deliver(context, options_.self.id, PeerMessagePtr{inbox_[i]});
  inbox_.clear();
  if (state_ != State::member || reported_changes_ == replica_->changes()) return;
  reported_changes_ = replica_->changes();
  run_council(context, [&](Council& council, const auto& c) { council.hold(c, replica_->full()); });
  settle(context);
}

template <class T>
void MemberCore<T>::deliver(const MemberContext& context, MemberId from,
                            const PeerMessagePtr& peer_message) {
  const MessageValidator validator{*configuration_, from, options_.members_max,
                                   *options_.shard.layout, sizeof(T)};
  if (!validator.is_valid(*peer_message)) return;
  std::visit([&](const auto& message) { take(context, from, peer_message, message); },
             *peer_message);
}

template <class T>
void MemberCore<T>::take(const MemberContext& context, MemberId from, const PeerMessagePtr&,
                         const CouncilMessage& message) {
  bool current = true;
  run_council(context, [&](Council& council, const CouncilContext& c) {
    current = council.on(c, from, message);
  });
  if (!current) send_configuration(context, from);
}

template <class T>
template <class M>
void MemberCore<T>::take(const MemberContext& context, MemberId from,
                         const PeerMessagePtr& peer_message, const M& message) {
  if constexpr (std::is_same_v<M, ConfigurationPtr>) {
    if (message->epoch > configuration_->epoch) adopt(context, message);
  } else if constexpr (std::is_same_v<M, JoinRequest>) {
    run_council(context, [&](Council& council, const auto& c) { council.join(c, message.member); });
  } else if constexpr (std::is_same_v<M, LeaveRequest>) {
    run_council(context,
                [&](Council& council, const auto& c) { council.leave(c, message.member); });
  } else if constexpr (is_for_owners<M>) {
    const bool fits = run_replica(context, [&](Replica<T>& replica, const ReplicaContext& c) {
      if constexpr (std::is_same_v<M, Push>)
        return replica.on(c, std::shared_ptr<const Push>{peer_message, &message});
      else if constexpr (std::is_same_v<M, Pull>)
        return replica.on(c, message);
      else
        return replica.on(c, from, message);
    });
    if (!fits) send_configuration(context, from);
  } else if constexpr (Takes<Coordinator, M> && !Takes<Worker, M>) {
    if constexpr (std::is_same_v<M, Ended>)
      run_replica(context, [&](Replica<T>& replica, const ReplicaContext& c) {
        replica.on(c, message);
        return true;
      });
    run_coordinator(context, [&](Coordinator& all, const Context& c) { all.on(c, message); });
  } else if constexpr (Takes<Worker, M>) {
    run_worker(context, [&](Worker& worker, const Context& c) { worker.on(c, message); });
  }
}

template <class T>
void MemberCore<T>::adopt(const MemberContext& context, const ConfigurationPtr& next) {
  if (state_ == State::failed || state_ == State::excluded) return;
  if (!next->contains(options_.self.id, options_.self.incarnation)) {
    const bool had = next->has_had(options_.self.id, options_.self.incarnation);
    if (state_ == State::joining && !had) return;  // not yet taken in
    state_ = State::excluded;
    configuration_ = next;
    context.out.push_back(Excluded{});
    return;
  }
  const ConfigurationPtr former = std::exchange(configuration_, next);
  if (state_ != State::member)
    context.out.push_back(MemberTimer{context.now + options_.probe_every, probe_key});
  state_ = State::member;
  renew_links(*next);
  if (next->lost()) return fail(context, "a range has lost all its owners");
  run_replica(context, [&](Replica<T>& replica, const ReplicaContext& c) {
    replica.on_configuration(c, *next, former ? former->epoch : 0);
    return true;
  });
  inform_coordinator(context, former.get());
  inform_worker(context, former.get());
  send_status(context, former.get());
  run_council(context, [&](Council& council, const CouncilContext& c) {
    council.hold(c, replica_->full());
    council.on_configuration(c, configuration_);
  });
}

template <class T>
void MemberCore<T>::renew_links(const Configuration& next) {
  for (MemberId id = 0; id < links_.size(); ++id) {
    if (!links_[id]) continue;
    if (!next.contains(id, *links_[id]->channel(TrafficClass::control).other())) links_[id].reset();
  }
  for (const Member& member : next.members) {
    if (member.id == options_.self.id) continue;
    if (member.id >= links_.size()) links_.resize(member.id + 1);
    if (links_[member.id]) continue;
    const Channel<PeerMessagePtr> fresh{options_.self.incarnation, member.incarnation,
                                        options_.channel};
    links_[member.id] =
        std::make_unique<Link>(Link{{fresh, fresh}, 0, (++links_made_ << 32U) + member.id});
    if (next.epoch == 1) links_[member.id]->epoch_sent = 1;  // founders know it
  }
}

template <class T>
void MemberCore<T>::inform_worker(const MemberContext& context, const Configuration* former) {
  if (!options_.self.works) return;
  WorkerView all = view_of_worker(*configuration_, former);
  if (worker_)
    return run_worker(context, [&](Worker& w, const Context& c) { w.on_view(c, std::move(all)); });
  WorkerOptions& worker = options_.worker;
  worker.members = std::move(all.members);
  worker.owner_of = std::move(all.owner_of);
  worker.view_of = std::move(all.view_of);
  worker_.emplace(worker);
  run_worker(context, [](Worker& w, const Context& c) { w.start(c); });
}

template <class T>
void MemberCore<T>::inform_coordinator(const MemberContext& context, const Configuration* former) {
  const Configuration& now = *configuration_;
  if (now.coordinator != options_.self.id) return;
  if (coordinator_)
    return run_coordinator(context, [&](Coordinator& all, const Context& c) {
      std::vector<MemberId> left;
      for (const Member& member : former->lacking_in(now)) left.push_back(member.id);
      all.on_members(c, left, workers_of(now.lacking_in(*former)));
    });
  coordinator_.emplace(CoordinatorOptions{options_.worker.barrier, options_.worker.recheck, {}});
  const std::vector<MemberId> workers = workers_of(now.members);
  if (now.epoch == 1) {
    for (const MemberId worker : workers)
      coordinator_->on_founded(worker, first_entry(*options_.start, worker).step);
    return;
  }
  coordinator_->take_over(workers, owners_of(now));
  for (const Member& member : now.members)
    send_configuration(context, member.id);  // all wait for this
}

/// Sends a coordinator that is new to this member what this member knows of the steps.
template <class T>
void MemberCore<T>::send_status(const MemberContext& context, const Configuration* former) {
  const Configuration& now = *configuration_;
  if (!now.coordinator || now.epoch == 1) return;
  if (former != nullptr && now.keeps_coordinator_of(*former)) return;
  WorkerStatus status = worker_ ? worker_->status() : WorkerStatus{.member = options_.self.id};
  status.held = replica_->shard().highest_step();
  post(context, *now.coordinator, peer_message_of(status));
}

/// Sends the decided configuration to all members of the old and of the new one.
template <class T>
void MemberCore<T>::announce(const MemberContext& context, const ConfigurationPtr& former) {
  for (const Member& member : configuration_->members) {
    if (member.id == options_.self.id) continue;
    if (state_ == State::excluded)
      send_unreliable(context, member.id, member.incarnation, peer_message_of(configuration_));
    else
      send_configuration(context, member.id);
  }
  for (const Member& member : former->members)
    if (!configuration_->contains(member.id, member.incarnation) && member.id != options_.self.id)
      send_unreliable(context, member.id, member.incarnation, peer_message_of(configuration_));
}

/// Asks to join or to leave, again and again until that is done.
template <class T>
void MemberCore<T>::ask_again(const MemberContext& context) {
  if (state_ == State::joining) {
    if (context.now >= joining_since_ + options_.council.patience)
      return fail(context, "no member has let this one in");
    if (!options_.seeds.empty())
      send_unreliable(context, options_.seeds[context.random.below(options_.seeds.size())],
                      std::nullopt, peer_message_of(JoinRequest{options_.self}));
  } else if (state_ == State::member && leaving_) {
    if (!worker_ || worker_->done())
      post_to_council(context, peer_message_of(LeaveRequest{options_.self}));
  } else {
    return;
  }
  MemberEffects& out = context.out;
  Effects timers;
  timer_.want(Context{context.now, context.random, timers}, context.now + options_.ask_again);
  for (const Effect& timer : timers)
    out.push_back(MemberTimer{std::get<SetTimer>(timer).at, own_key});
}

template <class T>
void MemberCore<T>::probe_epoch(const MemberContext& context) {
  if (state_ != State::member) return;
  const auto& members = configuration_->members;
  const Member& other = members[context.random.below(members.size())];
  if (other.id != options_.self.id)
    send_unreliable(context, other.id, other.incarnation, peer_message_of(EpochProbe{}));
  context.out.push_back(MemberTimer{context.now + options_.probe_every, probe_key});
}

template <class T>
void MemberCore<T>::fail(const MemberContext& context, std::string why) {
  if (std::exchange(state_, State::failed) != State::failed)
    context.out.push_back(Fail{std::move(why)});
}

template <class T>
template <class Event>
void MemberCore<T>::run_worker(const MemberContext& context, Event event) {
  if (!worker_) return;
  Effects effects;
  event(*worker_, Context{context.now, context.random, effects});
  execute(context, std::move(effects), worker_key);
}

template <class T>
template <class Event>
void MemberCore<T>::run_coordinator(const MemberContext& context, Event event) {
  if (!coordinator_) return;
  Effects effects;
  event(*coordinator_, Context{context.now, context.random, effects});
  execute(context, std::move(effects), coordinator_key);
}

template <class T>
template <class Event>
bool MemberCore<T>::run_replica(const MemberContext& context, Event event) {
  Effects effects;
  std::vector<std::pair<MemberId, ReplicaMessage>> out;
  const Context core{context.now, context.random, effects};
  const bool fits = event(*replica_, ReplicaContext{core, out});
  for (auto& [to, message] : out)
    std::visit([&, to = to](auto& m) { post(context, to, peer_message_of(std::move(m))); },
               message);
  execute(context, std::move(effects), own_key);
  return fits;
}

template <class T>
template <class Event>
void MemberCore<T>::run_council(const MemberContext& context, Event event) {
  std::vector<CouncilEffect> effects;
  event(council_, CouncilContext{context.now, context.random, effects});
  for (CouncilEffect& effect : effects) {
    if (auto* send = std::get_if<CouncilSend>(&effect)) {
      post(context, send->to, peer_message_of(std::move(send->message)));
    } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      context.out.push_back(MemberTimer{timer->at, council_key});
    } else if (auto* why = std::get_if<Fail>(&effect)) {
      fail(context, std::move(why->why));
    } else {
      const ConfigurationPtr former = configuration_;
      adopt(context, std::get<Decided>(effect).configuration);
      announce(context, former);
    }
  }
}

template <class T>
void MemberCore<T>::execute(const MemberContext& context, Effects effects, TimerKey key) {
  for (Effect& effect : effects) {
    if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      context.out.push_back(MemberTimer{timer->at, key});
    } else if (auto* send = std::get_if<Send>(&effect)) {
      std::optional<MemberId> to;
      if (const auto* worker = std::get_if<ToWorker>(&send->to)) to = worker->id;
      if (const auto* owner = std::get_if<ToOwner>(&send->to)) to = owner->id;
      if (std::holds_alternative<ToCoordinator>(send->to)) to = configuration_->coordinator;
      if (!to) continue;  // no observer yet
      std::visit(
          [&]<class M>(M& message) {
            static_assert(std::is_constructible_v<PeerMessage, M> != is_for_observers<M>);
            if constexpr (!is_for_observers<M>)
              post(context, *to, peer_message_of(std::move(message)));
          },
          send->message);
    } else if (auto* plan = std::get_if<Plan>(&effect)) {
      context.out.push_back(*plan);
    } else if (auto* compute = std::get_if<Compute>(&effect)) {
      context.out.push_back(std::move(*compute));
    } else if (auto* done = std::get_if<Done>(&effect)) {
      context.out.push_back(*done);
    } else {
      fail(context, std::move(std::get<Fail>(effect).why));
    }
  }
}

template class MemberCore<float>;
template class MemberCore<double>;

}  // namespace starling::core
