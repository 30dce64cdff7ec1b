/// Actors by which a node runs its part of a job, besides the members. Internal to LocalJob.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "starling/actor/interfaces.hpp"

namespace starling::actor {

/// The actor that a user's own actors get as JobActors::job on a node: stops the whole job when it
/// receives Stop.
class JobStopper : public JobHandle::base {
 public:
  JobStopper(caf::actor_config& config, std::function<void()> stop_job)
      : JobHandle::base(config), stop_job_(std::move(stop_job)) {}

  JobHandle::behavior_type make_behavior() override {
    return {[this](const core::Stop&) {
      if (stop_job_) stop_job_();
    }};
  }

 private:
  std::function<void()> stop_job_;
};

/// Asks members for their ranges, passes all answers on, and ends.
class RangeReader : public caf::event_based_actor {
 public:
  RangeReader(caf::actor_config& config, std::vector<MemberActor> members,
              const ReadRanges& request, std::function<void(std::vector<core::RangeState>)> on_read)
      : caf::event_based_actor(config),
        members_(std::move(members)),
        request_(request),
        on_read_(std::move(on_read)) {}

  caf::behavior make_behavior() override {
    unanswered_ = members_.size();
    if (members_.empty()) on_read_({});
    for (const MemberActor& member : std::exchange(members_, {}))
      request(member, timeout, request_)
          .then(
              [this](std::vector<core::RangeState>& states) {
                std::ranges::move(states, std::back_inserter(ranges_));
                on_answer();
              },
              [this](const caf::error&) { on_answer(); });
    return {};
  }

 private:
  /// The longest wait for a member's answer.
  static constexpr std::chrono::seconds timeout{2};

  void on_answer() {
    if (--unanswered_ == 0) on_read_(std::move(ranges_));
  }

  std::vector<MemberActor> members_;
  ReadRanges request_;
  std::function<void(std::vector<core::RangeState>)> on_read_;
  std::vector<core::RangeState> ranges_;
  std::size_t unanswered_ = 0;
};

}  // namespace starling::actor
