/// The members of a job that are on this node, and the packets between them and the others.
/// Internal to LocalJob.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/actor/job/node_callbacks.hpp"
#include "starling/engine/core/member/member_core.hpp"

namespace starling::actor {

/// A member's last report, which is known even if its actor has ended. Thread-safe.
class LastReport {
 public:
  explicit LastReport(const core::Member& self) : incarnation(self.incarnation) {
    report_.member = self.id;
    report_.incarnation = self.incarnation;
  }

  void update(actor::MemberReport report, core::ConfigurationPtr configuration) {
    const std::lock_guard lock{mutex_};
    is_asked_ = false;
    configuration_ = std::move(configuration);
    if (report_.state != actor::MemberReport::State::failed) report_ = std::move(report);
  }
  void fail(const std::string& why) {
    const std::lock_guard lock{mutex_};
    report_.state = actor::MemberReport::State::failed;
    report_.why = why;
  }
  /// Call this when a Pause is sent: until the member has handled that Pause, the member does not
  /// count as paused.
  void on_pause_sent() {
    const std::lock_guard lock{mutex_};
    ++pauses_sent_;
  }
  /// Records that the member is asked for a report, until update() records the answer. Returns
  /// false if the member has not answered the last question yet.
  [[nodiscard]] bool begin_report_request() {
    const std::lock_guard lock{mutex_};
    return !std::exchange(is_asked_, true);
  }
  [[nodiscard]] actor::MemberReport get() const {
    const std::lock_guard lock{mutex_};
    actor::MemberReport report = report_;
    report.is_paused = report.is_paused && report.pauses == pauses_sent_;
    return report;
  }
  [[nodiscard]] core::ConfigurationPtr configuration() const {
    const std::lock_guard lock{mutex_};
    return configuration_;
  }

  const core::Incarnation incarnation;
  /// True once the council has excluded the member.
  std::atomic<bool> is_excluded = false;

 private:
  mutable std::mutex mutex_;
  actor::MemberReport report_;
  core::ConfigurationPtr configuration_;
  std::uint64_t pauses_sent_ = 0;
  bool is_asked_ = false;
};

/// The options that a member on a node has whatever its role is; the caller adds the role.
[[nodiscard]] inline core::MemberOptions member_options(const core::Member& self,
                                                        const core::ConfigurationPtr& first,
                                                        const std::vector<core::MemberId>& seeds,
                                                        std::size_t members_max,
                                                        core::Time wait_for_nodes) {
  core::MemberOptions options;
  options.self = self;
  options.members_max = static_cast<core::MemberId>(members_max);
  options.first_configuration = first;
  options.seeds = seeds;
  options.council.give_up_after = wait_for_nodes;
  // Twice the node's own limit: a node without a majority gives the job up first, and logs which
  // nodes it waited for.
  options.council.stuck_after = 2 * wait_for_nodes;
  // Longer times than in a simulation: with real clocks and threads, an acknowledgement may be
  // late, and its message must not be sent twice because of that.
  options.channel.resend_initial = std::chrono::milliseconds{200};
  options.channel.resend_min = std::chrono::milliseconds{50};
  options.channel.acknowledge_delay_max = std::chrono::milliseconds{10};
  return options;
}

/// `Handle` is the typed actor of a member. Thread-safe.
template <class Handle>
class LocalMembers {
 public:
  struct LocalMember {
    Handle actor;
    std::shared_ptr<LastReport> last_report;
  };
  using SendEnvelopes = std::function<void(std::vector<core::Envelope>)>;

  /// `send` sends packets to members on other nodes.
  explicit LocalMembers(SendEnvelopes send) : send_(std::move(send)) {}

  /// Returns the callbacks for a member's actor. This object must outlive the actor.
  [[nodiscard]] std::shared_ptr<const NodeCallbacks> callbacks(
      const std::shared_ptr<LastReport>& last_report) {
    return std::make_shared<const NodeCallbacks>(NodeCallbacks{
        .send = [this](std::vector<core::Envelope> envelopes) { send(std::move(envelopes)); },
        .on_excluded = [last_report] { last_report->is_excluded = true; },
        .report_exception = [last_report](const std::string& why) { last_report->fail(why); },
        .publish =
            [last_report](MemberReport report, core::ConfigurationPtr configuration) {
              last_report->update(std::move(report), std::move(configuration));
            }});
  }
  void add(core::MemberId id, const Handle& actor, const std::shared_ptr<LastReport>& last_report) {
    const std::lock_guard lock{mutex_};
    members_[id] = {actor, last_report};
    not_started_.push_back(actor);
  }
  /// Starts the members that were added since the last call.
  void start() {
    std::vector<Handle> added;
    {
      const std::lock_guard lock{mutex_};
      added.swap(not_started_);
    }
    messenger_.post([added = std::move(added)] {
      for (const Handle& member : added) actor::post(member, actor::start_atom_v);
    });
  }

  void deliver(core::Envelope envelope, bool may_handle_inline) {
    const std::size_t bytes =
        envelope.packet.payload ? core::payload_bytes(*envelope.packet.payload) : 0;
    // CAF does not bound mailboxes.
    const std::size_t waiting = waiting_bytes_->load();
    if (waiting > 0 && bytes > 0 && waiting + bytes > mailbox_bytes_max) return;
    const Handle member = find(envelope.to);
    if (!member) return;
    *waiting_bytes_ += bytes;
    actor::EnvelopePtr counted{new core::Envelope{std::move(envelope)},
                               [waiting = waiting_bytes_, bytes](const core::Envelope* handled) {
                                 *waiting -= bytes;
                                 delete handled;
                               }};
    if (may_handle_inline)
      actor::post_and_run(member, std::move(counted));
    else
      actor::post(member, std::move(counted));
  }

  void end_members(const std::vector<core::MemberId>& members) {
    for (const core::MemberId id : members) {
      Handle removed;
      {
        const std::lock_guard lock{mutex_};
        const auto member = members_.find(id);
        if (member == members_.end()) continue;
        removed = member->second.actor;
        members_.erase(member);
      }
      messenger_.post([removed] { actor::post(removed, actor::quit_atom_v); });
    }
  }
  /// Ends all members. Messages that wait in `messenger_` do not reach them.
  void close() {
    messenger_.close();
    for_each([](const Handle& member) { actor::post(member, actor::quit_atom_v); });
    const std::lock_guard lock{mutex_};
    members_.clear();
    not_started_.clear();
  }

  [[nodiscard]] std::vector<MemberReport> reports() {
    std::vector<MemberReport> reports;
    std::vector<Handle> asked;
    for (const LocalMember& member : all()) {
      reports.push_back(member.last_report->get());
      if (member.last_report->begin_report_request()) asked.push_back(member.actor);
    }
    if (!asked.empty())
      messenger_.post([asked = std::move(asked)] {
        for (const Handle& member : asked) actor::post(member, actor::report_atom_v);
      });
    return reports;
  }
  [[nodiscard]] core::ConfigurationPtr configuration() {
    core::ConfigurationPtr latest;
    for (const LocalMember& member : all()) {
      const auto known = member.last_report->configuration();
      if (known && (!latest || known->epoch > latest->epoch)) latest = known;
    }
    return latest;
  }

  [[nodiscard]] std::vector<LocalMember> all() {
    const std::lock_guard lock{mutex_};
    std::vector<LocalMember> all;
    for (const auto& [id, member] : members_) all.push_back(member);
    return all;
  }
  template <class F>
  void for_each(F f) {
    for (const LocalMember& member : all()) f(member.actor);
  }
  /// Calls `post` for each member, on a thread of this object's.
  template <class F>
  void post_to_all(F post) {
    messenger_.post([this, post] { for_each(post); });
  }
  /// Runs `work` on a thread of this object's.
  void run_later(EventLoop::Work work) { messenger_.post(std::move(work)); }

 private:
  /// The most bytes of received tensors that may wait in mailboxes. Further packets are dropped,
  /// and their senders send them again.
  static constexpr std::size_t mailbox_bytes_max = std::size_t{64} << 20U;

  /// Returns the member here with this id and, if it is given, this incarnation; or an empty
  /// handle. Ignores excluded members. A member on another node may have the same id.
  Handle find(core::MemberId id, std::optional<core::Incarnation> incarnation = std::nullopt) {
    const std::lock_guard lock{mutex_};
    const auto member = members_.find(id);
    if (member == members_.end()) return {};
    const LastReport& report = *member->second.last_report;
    const bool is_other = incarnation && *incarnation != report.incarnation;
    return report.is_excluded || is_other ? Handle{} : member->second.actor;
  }
  void send(std::vector<core::Envelope> envelopes) {
    std::vector<core::Envelope> remote;
    for (core::Envelope& envelope : envelopes)
      if (const Handle member = find(envelope.to, envelope.packet.to))
        actor::post(member, std::make_shared<const core::Envelope>(std::move(envelope)));
      else
        remote.push_back(std::move(envelope));
    if (!remote.empty() && send_) send_(std::move(remote));
  }

  SendEnvelopes send_;
  std::mutex mutex_;
  std::map<core::MemberId, LocalMember> members_;
  std::vector<Handle> not_started_;
  std::shared_ptr<std::atomic<std::size_t>> waiting_bytes_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  /// Posts messages of the node's event loop to members. The loop itself must not, because CAF
  /// takes a lock to wake an actor: if a thread of the job loses its processor while it holds the
  /// lock, the loop would wait until that thread has a processor again (measured: 50 to 90 ms with
  /// 20 busy jobs).
  EventLoop messenger_{ThreadPriority::members};
};

}  // namespace starling::actor
