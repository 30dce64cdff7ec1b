/// Judges a replicated job from outside, event by event, on integer-valued updates.
///
/// Every incarnation of every worker has a slot in every range: two numbers, how many of its steps
/// are in, and the sum of their numbers. Steps rise by one, so the two say exactly which are in,
/// and whether any is twice. Two more numbers tell the order of all updates. What is judged:
///
/// * one configuration an epoch; only the primary of a view acknowledges and sends on in it, and
///   only the primary of an epoch answers reads;
/// * what was acknowledged is in every full owner of the range, and nothing is in twice;
/// * nobody says that it is further than it is, or has not begun when it has;
/// * no barrier is passed that its rule forbids, on true steps and on all that was drawn, nor,
/// where
///   a coordinator keeps them, without the word of the one whom the worker's configuration names;
/// * what a worker reads holds, for everyone in the view that let it pass, all updates up to its
///   step - s;
/// * in the end all copies of a range are equal in all that an owner knows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/engine/core/member_core.hpp"
#include "starling/engine/sim/scenario.hpp"

namespace starling::sim {

/// Lives that a run can tell apart.
inline constexpr std::size_t lives_max = 48;

class InvariantChecker {
 public:
  using MemberCore = core::MemberCore<double>;

  explicit InvariantChecker(const Scenario& scenario);

  /// A node has begun a new incarnation; gives its slot, or nothing where there are too many.
  std::optional<std::size_t> on_birth(core::Member member, const MemberCore* node);
  /// The node runs no more.
  void on_death(NodeId id);

  /// To be called after each event of a node, first of all.
  void on_event(NodeId id);
  /// To be called for each effect that is carried out, in order.
  void on_dispatch(NodeId id, const core::Envelope& envelope);
  void on_plan(NodeId id, core::Step step);
  void on_compute(NodeId id, const core::Compute& compute);

  /// After healing, when nothing is under way: all owners of all ranges hold the same.
  void expect_equal_copies();

  /// The first thing that was wrong; empty while all is well.
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }
  [[nodiscard]] const core::ConfigurationPtr& latest() const noexcept { return epochs_.back(); }
  /// What was ever proposed for the epoch after the latest.
  [[nodiscard]] const std::vector<core::ConfigurationPtr>& proposed() const { return proposed_; }
  /// True where `owner` of the latest configuration owns the range without a break as it sees it
  /// itself, so that it must hold all that was acknowledged once it is full.
  [[nodiscard]] const MemberCore* full_owner(core::RangeId range,
                                             const core::RangeOwner& owner) const;

  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  [[nodiscard]] std::size_t lives() const noexcept { return lives_.size(); }

 private:
  struct Life {
    core::Member member;
    core::Step first = 0;
    core::Step reached = 0;
    bool begun = false;
    /// As of before the event.
    bool had_begun = false;
    bool done = false;
  };
  /// The last word of one coordinator to one worker. It counts when the worker goes on by it: one
  /// that was cut off may let go those who do not hear it any more.
  struct Word {
    /// Its incarnation's slot.
    std::size_t by;
    core::Step step;
    /// Whom it saw then, and why they do not let the worker go on; empty where they do.
    std::vector<std::size_t> view = {};
    std::string objection = {};
  };
  /// What one worker was told in its last draw; nothing: it was not answered.
  struct Asked {
    std::size_t slot;
    std::optional<core::Step> told;
  };
  struct Draw {
    std::uint64_t number = 0;
    std::size_t expected = 0;
    /// A pass was judged by it: the next one needs another.
    bool used = false;
    std::vector<Asked> asked;
  };
  /// What was last seen of a range at a node.
  struct Seen {
    core::Epoch view = 0;
    std::uint64_t updates = 0;
    bool full = false;
  };
  /// Which messages have gone to another: what comes again is known by its number.
  struct Sent {
    core::Incarnation incarnation = 0;
    std::uint64_t last = 0;
    /// Bit i stands for number last - 1 - i.
    std::uint64_t before = 0;
  };
  struct Place {
    const MemberCore* node = nullptr;
    std::size_t slot = 0;
    core::Epoch epoch = 0;
    /// What it knew before the event.
    core::ConfigurationPtr former = nullptr;
    core::ConfigurationPtr known = nullptr;
    std::vector<Seen> seen = {};
    Draw draw = {};
    /// Who let it pass.
    std::vector<std::size_t> view = {};
    /// By receiver and traffic class.
    std::vector<Sent> sent = std::vector<Sent>(std::size_t{2} * nodes_max);
  };

  void violate(const std::string& what);
  [[nodiscard]] std::string incarnation_name(std::size_t slot) const;
  [[nodiscard]] std::optional<std::size_t> slot_of(NodeId id, core::Incarnation incarnation) const;
  [[nodiscard]] core::Step& acknowledged(std::size_t slot, core::RangeId range) {
    return acknowledged_[range * lives_max + slot];
  }
  /// nullptr where nobody has adopted it.
  [[nodiscard]] const core::Configuration* known(core::Epoch epoch) const {
    return epoch < epochs_.size() ? epochs_[epoch].get() : nullptr;
  }
  void on_configuration(Place& place);
  void follow_worker(NodeId id, Place& place);
  void inspect(NodeId id, core::RangeId range, bool must_hold);
  [[nodiscard]] core::Step count_held(const MemberCore& node, std::size_t slot,
                                      core::RangeId range) const;
  void expect_held(std::size_t slot, core::RangeId range, core::Step step);
  /// True for what is not sent again.
  bool is_new(Place& place, const core::Envelope& envelope);
  template <class M>
  void judge(NodeId, const core::Envelope&, const M&) {}
  void judge(NodeId id, const core::Envelope& envelope, const core::Ack& ack);
  void judge(NodeId id, const core::Envelope& envelope, const core::Value& value);
  void judge(NodeId id, const core::Envelope& envelope, const core::Install& install);
  void judge(NodeId id, const core::Envelope& envelope, const core::Forward& forward);
  void judge(NodeId id, const core::Envelope& envelope, const core::Held& held);
  void judge(NodeId id, const core::Envelope& envelope, const core::StepQuery& query);
  void judge(NodeId id, const core::Envelope& envelope, const core::StepAnswer& answer);
  void judge(NodeId id, const core::Envelope& envelope, const core::Arrived& arrived);
  void judge(NodeId id, const core::Envelope& envelope, const core::WorkerStatus& status);
  void judge(NodeId id, const core::Envelope& envelope, const core::Proceed& proceed);
  void judge(NodeId id, const core::Envelope& envelope, const core::CouncilMessage& message);
  void expect_primary(NodeId id, core::RangeId range, core::Epoch view, const char* does);
  /// True where this incarnation kept the steps in what a node knew at some time in its last event.
  [[nodiscard]] bool is_coordinator(const core::Member& member, const Place& place) const;
  void judge_pass(NodeId id, core::Step step);
  /// Empty where the draw lets a worker pass.
  [[nodiscard]] std::string why_not_pass(const Draw& draw, core::Step floor) const;
  /// The coordinator `id` lets the worker of `to` go on.
  void note_word(NodeId id, NodeId to, std::size_t slot, core::Step step,
                 const core::Configuration& known);
  /// Whom it saw then.
  [[nodiscard]] std::vector<std::size_t> seen_by(NodeId id, NodeId to,
                                                 const core::Configuration& known) const;
  /// Empty where those in `view` let a worker go on.
  [[nodiscard]] std::string why_not_proceed(const core::Configuration& known,
                                            const std::vector<std::size_t>& view,
                                            core::Step floor) const;
  [[nodiscard]] static std::size_t others(const core::Configuration& configuration);
  [[nodiscard]] bool has_reached(std::size_t slot, core::Step floor) const;

  Scenario scenario_;
  std::vector<Life> lives_;
  std::vector<Place> places_;
  /// By epoch; the first is none.
  std::vector<core::ConfigurationPtr> epochs_;
  std::vector<core::ConfigurationPtr> proposed_;
  std::vector<core::Step> acknowledged_;
  /// By slot, one of each coordinator that let it go.
  std::vector<std::vector<Word>> words_;
  std::uint64_t steps_ = 0;
  std::uint64_t passes_ = 0;
  std::string violation_;
};

}  // namespace starling::sim
