#include "starling/engine/core/member/message_validator.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace starling::core {
namespace {

/// Validates messages of member 1 in a job with a dense parameter of 8 elements (range 0) and a
/// row-sparse parameter of 4 rows of 3 elements (range 1).
class MessageValidatorTest : public testing::Test {
 protected:
  static Slice slice(std::size_t count, Rows rows = nullptr) {
    const std::vector<float> values(count, 1.0F);
    return {Buffer::copy_of<float>(values), 0, count, std::move(rows)};
  }
  static Rows rows(std::vector<std::uint32_t> indices) {
    return std::make_shared<const std::vector<std::uint32_t>>(std::move(indices));
  }
  [[nodiscard]] bool is_valid(const PeerMessage& peer_message) const {
    return core::is_valid({configuration_, 1, 16}, role_, peer_message);
  }
  /// Returns three booleans: the tensor is accepted as a value, as an update, as a forwarded
  /// update.
  [[nodiscard]] std::vector<bool> accepted_as(RangeId range, const Slice& tensor) const {
    Push push{};
    push.worker = 1;
    push.incarnation = 1;
    push.range = range;
    push.step = 1;
    push.update = tensor;
    return {is_valid(Value{range, 0, tensor}), is_valid(push),
            is_valid(Forward{range, 1, 1, std::make_shared<const Push>(push), 0, 2})};
  }

  static AnyRoleOptions options(const Layout& layout) {
    TrainingOptions training;
    training.exchange.layout = std::make_shared<const Layout>(layout);
    training.exchange.applier = merge_applier<float>([](const auto&, auto, auto) {});
    return std::make_shared<const TrainingOptions>(std::move(training));
  }

  const Layout layout_ =
      make_layout({{.name = "d", .shape = {8}}, {.name = "r", .shape = {4, 3}, .row_sparse = true}},
                  sizeof(float), 1);
  const Configuration configuration_ =
      first_configuration({{0, 1, true, true, 1}, {1, 1, true, true, 2}}, 2, 2, false);
  const AnyRole role_ = make_role(options(layout_), {{}, 16, {}});
};

const std::vector<bool> all_accepted{true, true, true};
const std::vector<bool> all_refused{false, false, false};

TEST_F(MessageValidatorTest, AcceptsTensorsThatFitTheirRange) {
  ASSERT_EQ(layout_.ranges.size(), 2U);
  EXPECT_EQ(accepted_as(0, slice(8)), all_accepted);
  EXPECT_EQ(accepted_as(1, slice(12)), all_accepted);
  EXPECT_EQ(accepted_as(1, slice(6, rows({0, 3}))), all_accepted);
  EXPECT_EQ(accepted_as(1, slice(0, rows({}))), all_accepted);
}

TEST_F(MessageValidatorTest, RefusesTensorsThatDoNotFitTheirRange) {
  EXPECT_EQ(accepted_as(2, slice(8)), all_refused);
  EXPECT_EQ(accepted_as(0, slice(9)), all_refused);
  EXPECT_EQ(accepted_as(0, slice(7)), all_refused);
  EXPECT_EQ(accepted_as(0, slice(6, rows({0, 1}))), all_refused) << "has no rows";
  EXPECT_EQ(accepted_as(1, slice(6, rows({0, 4}))), all_refused) << "has no such row";
  EXPECT_EQ(accepted_as(1, slice(6, rows({0}))), all_refused) << "too long for one row";
}

TEST_F(MessageValidatorTest, RefusesTensorsThatDoNotFitTheirBuffer) {
  Slice beyond_end = slice(8);
  beyond_end.offset = 1;
  EXPECT_EQ(accepted_as(0, beyond_end), all_refused);
  Slice without_buffer = slice(8);
  without_buffer.buffer = nullptr;
  EXPECT_EQ(accepted_as(0, without_buffer), all_refused);
  const std::vector<double> values(8, 1.0);
  EXPECT_EQ(accepted_as(0, {Buffer::copy_of<double>(values), 0, 8, nullptr}), all_refused);
  Slice wrapping = slice(8);
  wrapping.offset = SIZE_MAX;
  EXPECT_EQ(accepted_as(0, wrapping), all_refused);
}

/// Bulk-synchronous workers send empty updates for ranges that their batch did not change.
TEST_F(MessageValidatorTest, AcceptsAnEmptyUpdateButNoEmptyValue) {
  EXPECT_EQ(accepted_as(0, {}), (std::vector<bool>{false, true, true}));
}

/// A majority decides on each epoch, so no correct member is many epochs ahead. The highest epoch
/// of the type is refused, because no other could follow.
TEST_F(MessageValidatorTest, RefusesEpochsTooFarAhead) {
  const auto configuration_at = [&](Epoch epoch) {
    Configuration next = configuration_;
    next.epoch = epoch;
    return std::make_shared<const Configuration>(next);
  };
  const Epoch last = ~Epoch{0};
  EXPECT_TRUE(is_valid(PeerMessage{configuration_at(configuration_.epoch + 1)}));
  EXPECT_TRUE(is_valid(PeerMessage{configuration_at(configuration_.epoch + epoch_jump_max)}));
  EXPECT_FALSE(is_valid(PeerMessage{configuration_at(configuration_.epoch + epoch_jump_max + 1)}));
  EXPECT_FALSE(is_valid(PeerMessage{configuration_at(last)}));
  EXPECT_TRUE(core::is_valid(configuration_at(epoch_max), 16));
  EXPECT_FALSE(core::is_valid(configuration_at(epoch_max + 1), 16));
  EXPECT_FALSE(core::is_valid(configuration_at(last), 16));
}

TEST_F(MessageValidatorTest, RefusesAPromiseWithALaterAcceptedBallot) {
  Configuration next = configuration_;
  next.epoch = configuration_.epoch + 1;
  const auto value = std::make_shared<const Configuration>(next);
  const auto promise = [&](Ballot accepted) {
    return PeerMessage{CouncilMessage{Promise{next.epoch, {5, 0}, accepted, value}}};
  };
  EXPECT_TRUE(is_valid(promise({4, 1})));
  EXPECT_FALSE(is_valid(promise({6, 1})));
  EXPECT_FALSE(is_valid(promise({~std::uint64_t{0}, 1})));
}

TEST_F(MessageValidatorTest, ChecksTheRangesOfQuestionsAndAnswers) {
  EXPECT_TRUE(is_valid(MemberQuestion{1, AskStep{}}));
  EXPECT_TRUE(is_valid(MemberQuestion{1, AskValue{1, rows({2})}}));
  EXPECT_FALSE(is_valid(MemberQuestion{1, AskValue{2, nullptr}}));
  EXPECT_TRUE(is_valid(MemberAnswer{1, Refusal{"busy"}}));
  EXPECT_TRUE(is_valid(MemberAnswer{1, Value{0, 0, slice(8)}}));
  EXPECT_FALSE(is_valid(MemberAnswer{1, Value{0, 0, slice(9)}}));
  EXPECT_FALSE(is_valid(MemberAnswer{1, Value{2, 0, slice(8)}}));
}

}  // namespace
}  // namespace starling::core
