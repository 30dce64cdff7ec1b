/// Tests how a node starts a submitted job on all nodes. The test plays the other nodes.
#include "starling/actor/cluster/submissions.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <vector>

#include "tests/actor/cluster/counting_job.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

constexpr wire::JobId job_id = 7;
const wire::JobSettings settings{
    {"mode", "peer"}, {"workers", "2"}, {"steps", "9"}, {"barrier", "asp"}, {"delay", "1"}};

/// A submission to nodes 1 and 2. Both have prepared the job and were asked to start it:
/// requests_[2] is the request to node 1, and requests_[3] the one to node 2.
class StartedSubmission : public testing::Test {
 protected:
  struct SentRequest {
    NodeAddress target;
    wire::RequestBody body;
    Requests::OnReply on_reply;
  };

  void SetUp() override {
    prepare(job_id);
    submissions_.submit({"client", 1}, {job_id, settings}, "client", {node(1), node(2)});
    ASSERT_EQ(requests_.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) reply(i, wire::ReplyBody{wire::JobPrepared{1, 3}});
    ASSERT_EQ(requests_.size(), 4U);
    ASSERT_TRUE(std::holds_alternative<wire::StartJob>(requests_[2].body));
  }
  void TearDown() override { prepared_.close(); }

  /// Lets this node prepare a job.
  void prepare(wire::JobId job) {
    std::promise<void> is_prepared;
    loop_.call([&] {
      prepared_.prepare(job, settings, 2, "node 1", [&](const auto& prepared) {
        EXPECT_TRUE(prepared);
        is_prepared.set_value();
      });
      return true;
    });
    is_prepared.get_future().wait();
  }
  static core::NodeRecord node(core::NodeId id) {
    return {.id = id, .address = "tcp://127.0.0.1:" + std::to_string(id), .name = "n"};
  }
  /// Replies to a request, given by its index in `requests_`.
  void reply(std::size_t request, Result<wire::ReplyBody> body) {
    requests_.at(request).on_reply(std::move(body));
  }

  EventLoop loop_;
  PreparedJobs prepared_{loop_,
                         [](const wire::JobSettings& all) { return prepare_counting_job(all); }};
  /// The requests to nodes, in the order in which they were sent.
  std::vector<SentRequest> requests_;
  /// The replies to the client.
  std::vector<wire::ReplyBody> answers_;
  /// The records of jobs that were refused.
  std::vector<wire::JobRecord> records_;
  /// True: node 2 is not in the cluster any more.
  bool is_node_2_gone_ = false;
  Submissions submissions_{
      prepared_,
      [this](wire::NodeId id) { return is_node_2_gone_ && id == 2; },
      [this](const NodeAddress& target, wire::RequestBody body, std::chrono::milliseconds,
             Requests::OnReply on_reply) {
        requests_.push_back({target, std::move(body), std::move(on_reply)});
      },
      [this](const Requester&, wire::ReplyBody body) { answers_.push_back(std::move(body)); },
      [](const std::string&, const std::string&) {},
      [this](const wire::JobRecord& record) { records_.push_back(record); }};
};

TEST_F(StartedSubmission, BeginsWhenAllNodesHaveStarted) {
  reply(2, wire::ReplyBody{wire::Done{}});
  EXPECT_TRUE(answers_.empty());
  reply(3, wire::ReplyBody{wire::Done{}});
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<wire::JobStarted>(answers_[0]));
}

TEST_F(StartedSubmission, FailsIfALiveNodeDoesNotAnswer) {
  reply(2, wire::ReplyBody{wire::Done{}});
  reply(3, Error{"no answer within 30 s"});
  ASSERT_EQ(answers_.size(), 1U);
  const auto* refused = std::get_if<wire::Refused>(&answers_[0]);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->why, "node at tcp://127.0.0.1:2: no answer within 30 s");
  const auto closed = std::ranges::count_if(requests_, [](const SentRequest& a) {
    return std::holds_alternative<wire::CloseJob>(a.body);
  });
  EXPECT_GE(closed, 2) << "every node is asked to close the job";
}

TEST_F(StartedSubmission, FailsIfTheNodesHaveReadDifferentData) {
  constexpr wire::JobId other_job = 8;
  prepare(other_job);
  submissions_.submit({"client", 2}, {other_job, settings}, "client", {node(1), node(2)});
  ASSERT_EQ(requests_.size(), 6U);
  reply(4, wire::ReplyBody{wire::JobPrepared{1, 3}});
  reply(5, wire::ReplyBody{wire::JobPrepared{2, 3}});
  ASSERT_EQ(answers_.size(), 1U);
  const auto* refused = std::get_if<wire::Refused>(&answers_[0]);
  ASSERT_NE(refused, nullptr);
  EXPECT_TRUE(refused->why.ends_with("these do not: tcp://127.0.0.1:2")) << refused->why;
}

/// A late reply to the first start says nothing about the second, which is to be closed too.
TEST_F(StartedSubmission, IsClosedUnderBothIdsIfItsSecondStartFails) {
  submissions_.submit({"other", 2}, {9, settings}, "client", {node(1)});
  is_node_2_gone_ = true;
  submissions_.remove_gone_nodes();
  ASSERT_EQ(requests_.size(), 6U);
  const wire::JobId second_id = std::get<wire::StartJob>(requests_[5].body).job;
  reply(2, wire::ReplyBody{wire::Done{}});
  EXPECT_TRUE(answers_.empty());
  submissions_.forget_older_than(-1h);
  EXPECT_EQ(submissions_.open_count(), 2U) << "no submission is concluded";
  EXPECT_TRUE(submissions_.answer_if_known({"late", 3}, job_id));
  reply(5, wire::ReplyBody{wire::Refused{"no memory"}});
  EXPECT_EQ(answers_.size(), 2U) << "to both clients";
  std::vector<wire::JobId> closed;
  for (std::size_t i = 6; i < requests_.size(); ++i)
    closed.push_back(std::get<wire::CloseJob>(requests_[i].body).job);
  EXPECT_EQ(closed, (std::vector{job_id, second_id}));
  EXPECT_TRUE(submissions_.answer_if_known({"later", 4}, job_id));
  EXPECT_EQ(answers_.size(), 3U);
  submissions_.forget_older_than(1h);
  EXPECT_TRUE(submissions_.answer_if_known({"later", 5}, job_id));
  submissions_.forget_older_than(-1h);
  EXPECT_FALSE(submissions_.answer_if_known({"later", 6}, job_id));
}

TEST_F(StartedSubmission, IsNoRecordIfItOnlyNeedsAnotherName) {
  submissions_.submit({"client", 2}, {8, settings}, "client", {node(1), node(2)});
  reply(4, wire::ReplyBody{wire::Refused{"has that name", true}});
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(std::get<wire::Refused>(answers_[0]).is_name_taken);
  EXPECT_TRUE(records_.empty());
  submissions_.close(job_id);
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].job, job_id);
  EXPECT_EQ(records_[0].summary.state, wire::JobState::stopped);
}

TEST_F(StartedSubmission, NamesTheNodeThatRefusesTheStart) {
  reply(2, wire::ReplyBody{wire::Done{}});
  reply(3, wire::ReplyBody{wire::Refused{"no memory"}});
  ASSERT_EQ(answers_.size(), 1U);
  const auto* refused = std::get_if<wire::Refused>(&answers_[0]);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->why, "node at tcp://127.0.0.1:2: no memory");
  EXPECT_EQ(records_.at(0).summary.state, wire::JobState::failed);
}

/// The client's CloseJob may reach another node before this one.
TEST_F(StartedSubmission, IsStoppedIfItsClientHasClosedItOnAnotherNode) {
  reply(3, wire::ReplyBody{wire::Refused{closed_reason}});
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(std::get<wire::Refused>(answers_[0]).why, "the job was closed meanwhile");
  EXPECT_EQ(records_.at(0).summary.state, wire::JobState::stopped);
}

TEST_F(StartedSubmission, IsStartedAgainWithoutANodeThatIsLeaving) {
  reply(2, wire::ReplyBody{wire::Done{}});
  reply(3, wire::ReplyBody{wire::Refused{leaving_reason}});
  EXPECT_TRUE(answers_.empty());
  ASSERT_EQ(requests_.size(), 5U);
  EXPECT_EQ(requests_[4].target.node, 1U);
  EXPECT_EQ(std::get<wire::StartJob>(requests_[4].body).previous_ids,
            std::vector<wire::JobId>{job_id});
  reply(4, wire::ReplyBody{wire::Done{}});
  ASSERT_EQ(answers_.size(), 1U);
  const auto* begun = std::get_if<wire::JobStarted>(&answers_[0]);
  ASSERT_NE(begun, nullptr);
  EXPECT_EQ(begun->lost, std::vector<std::string>{"n"});
}

TEST_F(StartedSubmission, IsPreparedWithoutANodeThatIsLeaving) {
  constexpr wire::JobId other_job = 8;
  prepare(other_job);
  submissions_.submit({"client", 2}, {other_job, settings}, "client", {node(1), node(2)});
  ASSERT_EQ(requests_.size(), 6U);
  reply(5, wire::ReplyBody{wire::Refused{leaving_reason}});
  EXPECT_EQ(requests_.size(), 6U) << "the first node has not prepared the job";
  reply(4, wire::ReplyBody{wire::JobPrepared{1, 3}});
  ASSERT_EQ(requests_.size(), 7U);
  EXPECT_EQ(requests_[6].target.node, 1U);
  EXPECT_TRUE(std::holds_alternative<wire::StartJob>(requests_[6].body));
  EXPECT_TRUE(answers_.empty());
}

TEST_F(StartedSubmission, FailsIfItsOwnNodeIsLeaving) {
  reply(2, wire::ReplyBody{wire::Refused{leaving_reason}});
  ASSERT_EQ(answers_.size(), 1U);
  const auto* refused = std::get_if<wire::Refused>(&answers_[0]);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->why, "node at tcp://127.0.0.1:1: this node is leaving");
}

TEST_F(StartedSubmission, IsStartedAgainWithoutANodeThatIsGone) {
  reply(2, wire::ReplyBody{wire::Done{}});
  is_node_2_gone_ = true;
  reply(3, Error{"no answer within 30 s"});
  EXPECT_TRUE(answers_.empty());
  ASSERT_EQ(requests_.size(), 5U);
  EXPECT_EQ(requests_[4].target.node, 1U);
  reply(4, wire::ReplyBody{wire::Done{}});
  ASSERT_EQ(answers_.size(), 1U);
  const auto* begun = std::get_if<wire::JobStarted>(&answers_[0]);
  ASSERT_NE(begun, nullptr);
  EXPECT_NE(begun->job, job_id) << "messages of the first start must not reach the second";
}

}  // namespace
}  // namespace starling::actor
