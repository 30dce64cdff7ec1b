/// The core of one member of a small job, of which the test plays the other members.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {

inline constexpr MemberId members_max = 8;

inline Configuration initial_configuration() {
  std::vector<Member> members;
  for (MemberId id = 0; id < 3; ++id) members.push_back({id, 1});
  return first_configuration(std::move(members), 1, 2);
}

/// Runs the core of one member of a job of three peers, and records its effects. The test plays the
/// other members.
class SingleMember {
 public:
  explicit SingleMember(Member self = {0, 1}, bool is_initial = true,
                        std::optional<MemberId> coordinator = std::nullopt, bool starts = true)
      : core_(options(self, is_initial, coordinator)) {
    if (starts) run([](auto& core, const auto& context) { core.start(context); });
  }

  /// Calls `event(core, context)`. The effects replace those of the last event.
  template <class Event>
  void run(Event event) {
    effects_.clear();
    event(core_, MemberContext{now_, random_, effects_});
  }
  void receive(const Envelope& envelope) {
    run([&](auto& core, const auto& context) { core.on_packet(context, envelope); });
  }
  /// Delivers a message of another member, through its channel.
  void receive(MemberId from, PeerMessage peer_message, Epoch epoch = 1) {
    receive({.from = from,
             .to = core_.self().id,
             .epoch = epoch,
             .packet = {.from = 1,
                        .to = core_.self().incarnation,
                        .sequence = ++sequences_[from],
                        .payload = std::make_shared<const PeerMessage>(std::move(peer_message))}});
  }
  /// Delivers a message that any sender has sent without a channel.
  void receive_unreliable(MemberId from, Incarnation incarnation, PeerMessage peer_message) {
    receive({.from = from,
             .to = core_.self().id,
             .packet = {.from = incarnation,
                        .payload = std::make_shared<const PeerMessage>(std::move(peer_message))}});
  }

  /// Returns the messages of type `M` that the last event sent, each with its receiver.
  template <class M>
  std::vector<std::pair<MemberId, M>> sent() const {
    std::vector<std::pair<MemberId, M>> all;
    for (const MemberEffect& effect : effects_)
      if (const auto* dispatch = std::get_if<Dispatch>(&effect); dispatch != nullptr)
        if (const auto& payload = dispatch->envelope.packet.payload)
          if (const auto* message = std::get_if<M>(&**payload))
            all.emplace_back(dispatch->envelope.to, *message);
    return all;
  }
  std::vector<MemberTimer> timers() const { return effects_of<MemberTimer>(); }
  std::vector<MemberAnswer> answers() const { return effects_of<MemberAnswer>(); }
  /// Returns why the member failed in the last event; empty if it did not fail.
  std::string failure() const {
    for (const MemberEffect& effect : effects_)
      if (const auto* fail = std::get_if<Fail>(&effect)) return fail->why;
    return {};
  }
  MemberCore& core() { return core_; }
  void advance(Time time) { now_ += time; }

 private:
  template <class Effect>
  std::vector<Effect> effects_of() const {
    std::vector<Effect> all;
    for (const MemberEffect& effect : effects_)
      if (const auto* one = std::get_if<Effect>(&effect)) all.push_back(*one);
    return all;
  }
  static MemberOptions options(Member self, bool is_initial, std::optional<MemberId> coordinator) {
    TrainingOptions training;
    if (coordinator) training.mode = Mode::central;
    training.worker.barrier = {barrier::Asp{}, std::nullopt};
    Layout layout;
    layout.parameters.push_back({.name = "sum", .shape = {1}});
    layout.offsets.push_back(0);
    layout.ranges.push_back({0, 1, 0, {{0, 0, 0, 1}}});
    layout.size = 1;
    training.exchange.layout = std::make_shared<const Layout>(std::move(layout));
    training.exchange.applier = merge_applier<double>([](const auto&, auto, auto) {});
    auto zero = Buffer::make<double>(1);
    zero->as<double>()[0] = 0;
    training.exchange.initial_states = std::make_shared<const std::vector<RangeState>>(
        1, RangeState{
               .range = 0, .value = {std::move(zero), 0, 1, nullptr}, .slots = {}, .ledger = {}});
    MemberOptions options;
    options.self = self;
    options.members_max = members_max;
    options.role = std::make_shared<const TrainingOptions>(std::move(training));
    Configuration first = initial_configuration();
    first.coordinator = coordinator;
    if (is_initial)
      options.first_configuration = std::make_shared<const Configuration>(std::move(first));
    options.seeds = {1, 2};
    return options;
  }

  Time now_{};
  Random random_{1};
  MemberEffects effects_;
  MemberCore core_;
  std::map<MemberId, std::uint64_t> sequences_;
};

/// Returns a configuration of epoch 2 without member `departed`, and with this coordinator.
inline ConfigurationPtr without(MemberId departed, MemberId coordinator) {
  auto next = std::make_shared<Configuration>(initial_configuration());
  next->epoch = 2;
  std::erase_if(next->members, [&](const Member& member) { return member.id == departed; });
  std::erase(next->council, departed);
  for (Ownership& range : next->ranges)
    std::erase_if(range.owners, [&](const RangeOwner& owner) { return owner.id == departed; });
  next->departed = {{departed, 1}};
  next->coordinator = coordinator;
  return next;
}

}  // namespace starling::core
