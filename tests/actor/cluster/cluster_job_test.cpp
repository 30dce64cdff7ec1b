#include "starling/actor/cluster/cluster_job.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace starling::actor {
namespace {

/// Records the senders of the messages that it receives.
class ListeningJob final : public LocalJob {
 public:
  ListeningJob(std::vector<core::MemberId>& heard, core::ConfigurationPtr now)
      : heard_(heard), now_(std::move(now)) {}
  void found(const std::vector<core::Member>&, const core::ConfigurationPtr&) override {}
  void join(const core::Member&, const std::vector<core::MemberId>&) override {}
  void deliver(core::Envelope envelope, bool) override { heard_.push_back(envelope.from); }
  void judge(const actor::LivenessUpdate&) override {}
  void stop() override {}
  void pause(core::Time) override {}
  void leave() override {}
  void dismiss(const std::vector<core::MemberId>&) override {}
  std::vector<actor::MemberReport> reports() override { return {}; }
  std::vector<core::RangeState> ranges(const actor::ReadRanges&) override { return {}; }
  core::ConfigurationPtr configuration() override { return now_; }

 private:
  std::vector<core::MemberId>& heard_;
  core::ConfigurationPtr now_;
};

class PreparedListeningJob final : public PreparedJob {
 public:
  PreparedListeningJob(std::vector<core::MemberId>& heard, core::ConfigurationPtr now)
      : heard_(heard), now_(std::move(now)) {}
  [[nodiscard]] const JobOptions& options() const override { return options_; }
  [[nodiscard]] std::size_t ranges() const override { return 1; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 1; }
  [[nodiscard]] Result<std::unique_ptr<LocalJob>> make_local_job(LocalJobOptions) const override {
    return std::unique_ptr<LocalJob>{std::make_unique<ListeningJob>(heard_, now_)};
  }

 private:
  std::vector<core::MemberId>& heard_;
  core::ConfigurationPtr now_;
  JobOptions options_;
};

TEST(ClusterJob, HearsOfAMemberFromNoOtherNodeThanItsOwn) {
  const wire::NodeId own = 7;
  const wire::NodeId theirs = 8;
  const wire::NodeId stranger = 9;
  const auto first = std::make_shared<const core::Configuration>(core::first_configuration(
      {{0, 1, true, true, own}, {1, 1, true, true, theirs}}, 1, 2, false));
  std::vector<core::MemberId> heard;
  ClusterJob job{1, own, {}, {}, std::make_shared<PreparedListeningJob>(heard, first), {}, {}};
  ASSERT_TRUE(job.start(first, true));
  const auto say = [&](wire::NodeId node, core::MemberId from, core::Incarnation incarnation) {
    core::Envelope envelope;
    envelope.from = from;
    envelope.packet.from = incarnation;
    job.deliver(node, envelope, false);
  };
  say(theirs, 1, 1);
  EXPECT_EQ(heard, (std::vector<core::MemberId>{1}));
  say(stranger, 1, 1);
  say(stranger, 0, 1);
  EXPECT_EQ(heard, (std::vector<core::MemberId>{1}));
  // A member in a new incarnation may be on another node, and a member that joins on any.
  say(stranger, 1, 2);
  say(stranger, 5, 1);
  EXPECT_EQ(heard, (std::vector<core::MemberId>{1, 1, 5}));
}

}  // namespace
}  // namespace starling::actor
