/// Actors that a user's own actors get as MemberHandles. They pass questions on to members, and
/// hold no state of the protocol.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/base/text.hpp"

namespace starling::actor {

/// Stands for one member of the job, on any node; or, if no member is given, for whichever member
/// can answer: the coordinator, or the primary owner of a range. It passes each question to the
/// relay, a member on this node. The relay asks the member that answers, over their link
/// (channel.hpp).
class RemoteMember : public MemberHandle::base {
 public:
  /// `find_relay` returns a member on this node, or null if there is none.
  RemoteMember(caf::actor_config& config, std::optional<core::MemberId> member,
               std::function<MemberActor()> find_relay)
      : MemberHandle::base(config), member_(member), find_relay_(std::move(find_relay)) {}

  MemberHandle::behavior_type make_behavior() override {
    return {
        [this](step_atom) { return ask<core::Step>(core::AskStep{}, &core::WorkerStep::step); },
        [this](steps_atom) { return ask<core::StepsReport>(core::AskSteps{}); },
        [this](read_atom, const core::AskValue& question) { return ask<core::Value>(question); },
    };
  }

 private:
  /// A question without an answer fails after this time.
  static constexpr std::chrono::seconds timeout{10};

  /// Asks `question`, and returns the promise of the answer's field `field`, or of the whole answer
  /// if T is the type of the whole answer.
  template <class T, class Expected = T>
  caf::typed_response_promise<T> ask(core::Question question, T Expected::*field = nullptr) {
    auto promise = make_response_promise<T>();
    const MemberActor relay = find_relay_();
    if (!relay) {
      promise.deliver(refusal("this node has no member in the job"));
      return promise;
    }
    request(relay, timeout, AskMember{member_, std::move(question)})
        .then(
            [promise, field](core::Answer& answer) mutable {
              (void)field;
              if (auto* expected = std::get_if<Expected>(&answer)) {
                if constexpr (std::is_same_v<T, Expected>)
                  promise.deliver(std::move(*expected));
                else
                  promise.deliver(expected->*field);
              } else if (const auto* refused = std::get_if<core::Refusal>(&answer)) {
                promise.deliver(refusal(printable(refused->why)));
              } else {
                promise.deliver(refusal("the member gave the answer to another question"));
              }
            },
            [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
    return promise;
  }

  std::optional<core::MemberId> member_;
  std::function<MemberActor()> find_relay_;
};

/// Stands for a job in one process, and passes messages on to the observer. User actors get a
/// handle of this actor instead of the observer's, because the observer has a thread of its own,
/// and an actor system does not end while anybody holds a handle of such an actor.
class LocalJobHandle : public JobHandle::base {
 public:
  LocalJobHandle(caf::actor_config& config, ObserverActor observer)
      : JobHandle::base(config), observer_(std::move(observer)) {}

  void on_exit() override { observer_ = ObserverActor{}; }

  JobHandle::behavior_type make_behavior() override {
    return {
        [this](const core::Stop& stop) { actor::send(this, observer_, stop); },
        [this](actors_atom) -> Answer<JobActorsPtr> { return delegate(observer_, actors_atom_v); }};
  }

 private:
  ObserverActor observer_;
};

/// Stands for all owners of a job in one process. It passes a question for values to the owner of
/// the range; the owner's answer goes to the requester directly.
class LocalOwners : public MemberHandle::base {
 public:
  LocalOwners(caf::actor_config& config, std::vector<MemberActor> owner_by_range)
      : MemberHandle::base(config), owner_by_range_(std::move(owner_by_range)) {}

  void on_exit() override { owner_by_range_.clear(); }

  MemberHandle::behavior_type make_behavior() override {
    return {
        [](step_atom) -> Answer<core::Step> { return refusal("owners compute no updates"); },
        [](steps_atom) -> Answer<core::StepsReport> {
          return refusal("owners do not keep the workers' steps");
        },
        [this](read_atom, const core::AskValue& question) -> Answer<core::Value> {
          if (question.range >= owner_by_range_.size())
            return refusal("range " + std::to_string(question.range) + ": valid: below " +
                           std::to_string(owner_by_range_.size()));
          return delegate(owner_by_range_[question.range], read_atom_v, question);
        },
    };
  }

 private:
  std::vector<MemberActor> owner_by_range_;
};

}  // namespace starling::actor
