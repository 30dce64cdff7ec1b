#include "starling/engine/core/member/message_validator.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace starling::core {
namespace {

/// A dense parameter of 8 elements and one of 4 rows of 3, and member 1, which sends all messages.
class ValidatedTensors : public testing::Test {
 protected:
  static Slice slice(std::size_t count, Rows rows = nullptr) {
    const std::vector<float> values(count, 1.0F);
    return {Buffer::copy_of<float>(values), 0, count, std::move(rows)};
  }
  static Rows rows(std::vector<std::uint32_t> all) {
    return std::make_shared<const std::vector<std::uint32_t>>(std::move(all));
  }
  [[nodiscard]] bool is_valid(const PeerMessage& peer_message) const {
    return MessageValidator{now_, 1, 16, layout_, sizeof(float)}.is_valid(peer_message);
  }
  /// As a value, as an update, and as an update that is handed on.
  [[nodiscard]] std::vector<bool> may_bring(RangeId range, const Slice& tensor) const {
    Push push;
    push.worker = 1;
    push.incarnation = 1;
    push.range = range;
    push.step = 1;
    push.update = tensor;
    return {is_valid(Value{range, 0, tensor}), is_valid(push),
            is_valid(Forward{range, 1, 1, std::make_shared<const Push>(push)})};
  }

  const Layout layout_ =
      cut({{.name = "d", .shape = {8}}, {.name = "r", .shape = {4, 3}, .row_sparse = true}},
          sizeof(float), 1);
  const Configuration now_ =
      first_configuration({{0, 1, true, true, 1}, {1, 1, true, true, 2}}, 2, 2, false);
};

const std::vector<bool> all{true, true, true};
const std::vector<bool> none{false, false, false};

TEST_F(ValidatedTensors, AreTakenWhereTheyAreOfTheirRange) {
  ASSERT_EQ(layout_.ranges.size(), 2U);
  EXPECT_EQ(may_bring(0, slice(8)), all);
  EXPECT_EQ(may_bring(1, slice(12)), all);
  EXPECT_EQ(may_bring(1, slice(6, rows({0, 3}))), all);
  EXPECT_EQ(may_bring(1, slice(0, rows({}))), all);
}

TEST_F(ValidatedTensors, AreRefusedWhereTheyAreOfNoSuchRange) {
  EXPECT_EQ(may_bring(2, slice(8)), none);
  EXPECT_EQ(may_bring(0, slice(9)), none);
  EXPECT_EQ(may_bring(0, slice(7)), none);
  EXPECT_EQ(may_bring(0, slice(6, rows({0, 1}))), none) << "has no rows";
  EXPECT_EQ(may_bring(1, slice(6, rows({0, 4}))), none) << "has no such row";
  EXPECT_EQ(may_bring(1, slice(6, rows({0}))), none) << "too long for one row";
}

TEST_F(ValidatedTensors, AreRefusedWhereTheyAreNotInMemoryAsTheySay) {
  Slice behind = slice(8);
  behind.offset = 1;
  EXPECT_EQ(may_bring(0, behind), none);
  Slice nothing = slice(8);
  nothing.buffer = nullptr;
  EXPECT_EQ(may_bring(0, nothing), none);
  const std::vector<double> values(8, 1.0);
  EXPECT_EQ(may_bring(0, {Buffer::copy_of<double>(values), 0, 8, nullptr}), none);
  Slice wrapping = slice(8);
  wrapping.offset = SIZE_MAX;
  EXPECT_EQ(may_bring(0, wrapping), none);
}

/// As bulk-synchronous workers say of ranges that their batch did not concern.
TEST_F(ValidatedTensors, NeedNotBeThereInAnUpdate) {
  EXPECT_EQ(may_bring(0, {}), (std::vector<bool>{false, true, true}));
}

/// A majority decides each epoch, so no member is many epochs ahead; after the last there would be
/// no next.
TEST_F(ValidatedTensors, AreOfAnEpochThatThereMayBe) {
  const auto at = [&](Epoch epoch) {
    Configuration next = now_;
    next.epoch = epoch;
    return std::make_shared<const Configuration>(next);
  };
  const Epoch last = ~Epoch{0};
  EXPECT_TRUE(is_valid(PeerMessage{at(now_.epoch + 1)}));
  EXPECT_TRUE(is_valid(PeerMessage{at(now_.epoch + epoch_jump_max)}));
  EXPECT_FALSE(is_valid(PeerMessage{at(now_.epoch + epoch_jump_max + 1)}));
  EXPECT_FALSE(is_valid(PeerMessage{at(last)}));
  EXPECT_TRUE(is_sound(at(epoch_max), 16));
  EXPECT_FALSE(is_sound(at(epoch_max + 1), 16));
  EXPECT_FALSE(is_sound(at(last), 16));
}

TEST_F(ValidatedTensors, AreAcceptedBeforeWhatIsPromised) {
  Configuration next = now_;
  next.epoch = now_.epoch + 1;
  const auto value = std::make_shared<const Configuration>(next);
  const auto promise = [&](Ballot accepted) {
    return PeerMessage{CouncilMessage{Promise{next.epoch, {5, 0}, accepted, value}}};
  };
  EXPECT_TRUE(is_valid(promise({4, 1})));
  EXPECT_FALSE(is_valid(promise({6, 1})));
  EXPECT_FALSE(is_valid(promise({~std::uint64_t{0}, 1})));
}

}  // namespace
}  // namespace starling::core
