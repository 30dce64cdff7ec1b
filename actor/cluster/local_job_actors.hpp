/// Actors by which a node runs its part of a job, besides the members. Internal to LocalJob.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/actor/job/member_handles.hpp"

namespace starling::actor {

/// The actor that a user's own actors get as JobActors::job on a node.
class NodeJobHandle : public JobHandle::base {
 public:
  /// `stop_job` stops the job on all nodes; it may be null. `make_actors` returns the present
  /// actors, or null if the job is over.
  NodeJobHandle(caf::actor_config& config, std::function<void()> stop_job,
                std::function<JobActorsPtr()> make_actors)
      : JobHandle::base(config),
        stop_job_(std::move(stop_job)),
        make_actors_(std::move(make_actors)) {}

  JobHandle::behavior_type make_behavior() override {
    return {[this](const core::Stop&) {
              if (stop_job_) stop_job_();
            },
            [this](actors_atom) -> Answer<JobActorsPtr> {
              auto actors = make_actors_();
              if (!actors) return refusal("the job is over");
              return actors;
            }};
  }

 private:
  std::function<void()> stop_job_;
  std::function<JobActorsPtr()> make_actors_;
};

/// The actors that stand for a job and its members on a node, as a user's own actors see them.
/// Thread-safe.
class NodeJobActors {
 public:
  /// `find_relay` returns a member on this node that asks the other members; see RemoteMember.
  NodeJobActors(caf::actor_system& system, std::function<MemberActor()> find_relay)
      : system_(system), find_relay_(std::move(find_relay)) {}

  /// Spawns the actors for the configuration that `find_configuration` returns. From now on, the
  /// user's own actors may ask for the actors of later configurations. Requires: called at most
  /// once.
  JobActorsPtr spawn_all(std::function<core::ConfigurationPtr()> find_configuration,
                         std::function<void()> stop_job) {
    find_configuration_ = std::move(find_configuration);
    model_ = spawn(std::nullopt);
    job_ = system_.spawn<NodeJobHandle>(std::move(stop_job), [this] { return make(); });
    return make();
  }

  /// Ends the actors.
  void end() {
    const std::lock_guard lock{mutex_};
    has_ended_ = true;
    for (auto& [id, handle] : members_) end(handle);
    end(model_);
    end(coordinator_);
    end(job_);
    members_.clear();
  }

 private:
  template <class Handle>
  static void end(Handle& handle) {
    if (handle) caf::anon_send_exit(std::exchange(handle, {}), caf::exit_reason::user_shutdown);
  }

  JobActorsPtr make() {
    const core::ConfigurationPtr configuration = find_configuration_();
    auto actors = std::make_shared<JobActors>();
    const std::lock_guard lock{mutex_};
    if (has_ended_) return nullptr;
    for (const core::Member& member : configuration->members) {
      if (!member.works && !member.owns) continue;
      MemberHandle& handle = members_[member.id];
      if (!handle) handle = spawn(member.id);
      if (member.works) actors->workers.push_back(handle);
      if (member.owns) actors->owners.push_back(handle);
    }
    actors->model = model_;
    if (configuration->coordinator) {
      if (!coordinator_) coordinator_ = spawn(std::nullopt);
      actors->coordinator = coordinator_;
    }
    actors->job = job_;
    return actors;
  }

  /// Spawns the actor that asks `member` or, if `member` is nullopt, the member that can answer the
  /// question (RemoteMember).
  MemberHandle spawn(std::optional<core::MemberId> member) {
    return system_.spawn<RemoteMember>(member, find_relay_);
  }

  caf::actor_system& system_;
  const std::function<MemberActor()> find_relay_;
  std::function<core::ConfigurationPtr()> find_configuration_;
  /// Guards the fields below.
  std::mutex mutex_;
  bool has_ended_ = false;
  std::map<core::MemberId, MemberHandle> members_;
  MemberHandle model_;
  MemberHandle coordinator_;
  JobHandle job_;
};

/// Asks members for their ranges, passes all answers on together, and then ends.
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
