#include "starling/actor/cluster/cluster_job.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace starling::actor {
namespace {

/// Records the senders of the packets that are delivered to it.
class RecordingJob final : public LocalJob {
 public:
  RecordingJob(std::vector<core::MemberId>& senders, core::ConfigurationPtr configuration)
      : senders_(senders), configuration_(std::move(configuration)) {}
  void start_user_actors(const core::ConfigurationPtr&, OnStarted) override {}
  void add_initial_members(const std::vector<core::Member>&,
                           const core::ConfigurationPtr&) override {}
  void add_joiner(const core::Member&, const std::vector<core::MemberId>&) override {}
  void start_members() override {}
  void deliver(core::Envelope envelope, bool) override { senders_.push_back(envelope.from); }
  void report_liveness(const actor::LivenessUpdate&) override {}
  void stop() override {}
  void pause(core::Time) override {}
  void leave() override {}
  void end_members(const std::vector<core::MemberId>&) override {}
  std::vector<actor::MemberReport> reports() override { return {}; }
  void read_ranges(const actor::ReadRanges&,
                   std::function<void(std::vector<core::RangeState>)> on_read) override {
    on_read({});
  }
  TraceBuffer::Part read_trace(std::uint64_t) override { return {}; }
  core::Time now() override { return {}; }
  core::ConfigurationPtr configuration() override { return configuration_; }

 private:
  std::vector<core::MemberId>& senders_;
  core::ConfigurationPtr configuration_;
};

/// Makes RecordingJobs.
class PreparedRecordingJob final : public PreparedJob {
 public:
  PreparedRecordingJob(std::vector<core::MemberId>& senders, core::ConfigurationPtr configuration)
      : senders_(senders), configuration_(std::move(configuration)) {}
  [[nodiscard]] const JobOptions& options() const override { return options_; }
  [[nodiscard]] std::size_t ranges() const override { return 1; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 1; }
  [[nodiscard]] Result<std::unique_ptr<LocalJob>> make_local_job(
      LocalJobOptions options) const override {
    send_ = std::move(options.send);
    return std::unique_ptr<LocalJob>{std::make_unique<RecordingJob>(senders_, configuration_)};
  }
  /// Sends as a member here does.
  void send(std::vector<core::Envelope> envelopes) const { send_(std::move(envelopes)); }

 private:
  std::vector<core::MemberId>& senders_;
  core::ConfigurationPtr configuration_;
  JobOptions options_;
  mutable std::function<void(std::vector<core::Envelope>)> send_;
};

TEST(ClusterJob, DropsPacketsOfAMemberFromAnotherNode) {
  const wire::NodeId own_node = 7;
  const wire::NodeId node_of_1 = 8;
  const wire::NodeId other_node = 9;
  const auto first = std::make_shared<const core::Configuration>(core::first_configuration(
      {{0, 1, true, true, own_node}, {1, 1, true, true, node_of_1}}, 1, 2, false));
  std::vector<core::MemberId> senders;
  const auto prepared = std::make_shared<PreparedRecordingJob>(senders, first);
  ClusterJob job{1, own_node, {}, {}, prepared, {}, {}, {}, {}};
  ASSERT_TRUE(job.bootstrap(first, {}));
  const auto deliver = [&](wire::NodeId node, core::MemberId from, core::Incarnation incarnation) {
    core::Envelope envelope;
    envelope.from = from;
    envelope.packet.from = incarnation;
    job.deliver(node, envelope, false);
  };
  deliver(node_of_1, 1, 1);
  EXPECT_EQ(senders, (std::vector<core::MemberId>{1}));
  deliver(other_node, 1, 1);
  deliver(other_node, 0, 1);
  EXPECT_EQ(senders, (std::vector<core::MemberId>{1}));
  // A new incarnation of a member may be on another node. A joining member may be on any node.
  deliver(other_node, 1, 2);
  deliver(other_node, 5, 1);
  EXPECT_EQ(senders, (std::vector<core::MemberId>{1, 1, 5}));
}

/// Two nodes that join have drawn the same id. An answer goes to the one for which it is meant.
TEST(ClusterJob, AnswersEachOfTwoJoiningMembersOfOneId) {
  const wire::NodeId own_node = 7;
  const auto first = std::make_shared<const core::Configuration>(
      core::first_configuration({{0, 1, true, true, own_node}}, 1, 2, false));
  std::vector<core::MemberId> senders;
  const auto prepared = std::make_shared<PreparedRecordingJob>(senders, first);
  std::vector<wire::NodeId> sent_to;
  ClusterJob job{1,
                 own_node,
                 {},
                 {},
                 prepared,
                 {},
                 [&](wire::NodeId node, wire::TrafficClass, std::span<wire::Frame>) {
                   sent_to.push_back(node);
                 },
                 {},
                 {}};
  ASSERT_TRUE(job.bootstrap(first, {}));
  const auto envelope = [](core::MemberId from, core::Incarnation incarnation, core::MemberId to) {
    core::Envelope made;
    made.from = from;
    made.to = to;
    made.packet.from = incarnation;
    return made;
  };
  job.deliver(8, envelope(57, 100, 0), false);
  job.deliver(9, envelope(57, 200, 0), false);
  for (const core::Incarnation incarnation : {100U, 200U}) {
    core::Envelope answer = envelope(0, 1, 57);
    answer.packet.to = incarnation;
    prepared->send({answer});
  }
  EXPECT_EQ(sent_to, (std::vector<wire::NodeId>{8, 9}));
}

}  // namespace
}  // namespace starling::actor
