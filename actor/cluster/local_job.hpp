/// A node's part of a job that runs on several nodes: the members that live here, each an actor,
/// and the threads that compute for them. Members elsewhere are reached by packets.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "starling/actor/job/assignment.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/actor/types.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

struct LocalJobOptions {
  /// Members' ids are below this.
  std::size_t members_max = 256;
  /// Control threads; 0: as many as a job in one process has.
  std::size_t control_threads = 0;
  /// Takes packets to the nodes of members that are not here: those of one event, in order. Called
  /// from several threads.
  std::function<void(std::vector<core::Envelope>)> send;
};

/// Thread-safe.
class LocalJob {
 public:
  LocalJob() = default;
  virtual ~LocalJob() = default;
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;

  /// Starts the members `here`, which found the job together with the members elsewhere that
  /// `first` names.
  virtual void found(const std::vector<core::Member>& here,
                     const core::ConfigurationPtr& first) = 0;
  /// Lets `self` ask the members `seeds` to be taken in.
  virtual void join(const core::Member& self, const std::vector<core::MemberId>& seeds) = 0;

  /// Delivers a packet to a member here, and drops it where the member is not here. `at_once`: an
  /// idle member handles it in the caller's thread.
  virtual void deliver(core::Envelope envelope, bool at_once) = 0;
  /// Passes failure detection's view of a member on to the members here.
  virtual void judge(const actor::LivenessUpdate& update) = 0;
  /// Stops workers at the end of their step; ranges are still served.
  virtual void stop() = 0;
  /// Lets workers begin no update for `duration` from now; 0: they go on.
  virtual void pause(core::Time duration) = 0;
  /// Lets members here hand over what they own, and leave.
  virtual void leave() = 0;

  /// Ends members that were excluded, and forgets them.
  virtual void dismiss(const std::vector<core::MemberId>& members) = 0;

  /// Asks every member here for its report; a member that does not answer within 500 ms has its
  /// last one returned.
  [[nodiscard]] virtual std::vector<actor::MemberReport> reports() = 0;
  /// The ranges that members here are primary of, as they are now; each member shows as many as it
  /// is asked for.
  [[nodiscard]] virtual std::vector<core::RangeState> ranges(
      const actor::ReadRanges& wanted = {}) = 0;
  /// The latest configuration that a member here knows; null before the first.
  [[nodiscard]] virtual core::ConfigurationPtr configuration() = 0;
};

/// Makes this node's part of the job, without members yet. An Error says what cannot work on
/// several nodes.
template <class T>
[[nodiscard]] Result<std::unique_ptr<LocalJob>> make_local_job(Assignment<T> assignment,
                                                               LocalJobOptions options);

extern template Result<std::unique_ptr<LocalJob>> make_local_job<float>(Assignment<float>,
                                                                        LocalJobOptions);
extern template Result<std::unique_ptr<LocalJob>> make_local_job<double>(Assignment<double>,
                                                                         LocalJobOptions);

}  // namespace starling::actor
