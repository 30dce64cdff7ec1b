/// The leader exchange (leader stochastic gradient descent, LSGD: Teng et al., arXiv 1905.10395):
/// every worker trains a copy of the model with an optimizer of its own. After each `every` steps
/// it moves toward the worker of its group that has the lowest loss, and after each `global_every`
/// steps toward the worker that has the lowest loss of all:
///
///     x := x + pull (leader's x - x)
///
/// A worker that knows of no lower loss than its own does not move. So workers that are evenly
/// spread about a maximum of the loss leave it, although the mean of their copies is at the
/// maximum. docs/design/0028-leader.md describes the consequences.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/leader/messages.hpp"

namespace starling::core {

/// When and how far a worker moves toward a leader.
struct LeaderSettings {
  /// After how many steps of the worker it moves. At least 1.
  Step every = 8;
  /// The number of workers in a group. A group has consecutive workers in the order of ids.
  std::size_t group = 4;
  /// By which part of the difference a worker moves toward the leader of its group: more than 0, at
  /// most 1.
  double pull = 0.3;
  /// After how many steps of the worker it moves toward the leader of all workers instead: a
  /// multiple of `every`.
  Step global_every = 32;
  /// By which part of the difference a worker moves toward the leader of all workers: more than 0,
  /// at most 1.
  double global_pull = 0.3;

  bool operator==(const LeaderSettings&) const = default;
};

/// Reads "leader:every=N,group=N,pull=P,global_every=N,global_pull=P", in which each part has a
/// default: that of global_every is 4 times every, that of global_pull is pull. Refuses values out
/// of range.
[[nodiscard]] Result<LeaderSettings> parse_leader(std::string_view name);

/// One member's part of the exchange; see the concept Exchange for the functions.
class LeaderExchange : public WorkerModel {
 public:
  using Messages = LeaderMessages;
  using Context = LeaderContext;
  static constexpr std::string_view name = "leader";
  /// These are examples, the first of which is the default.
  static constexpr std::array<std::string_view, 2> arguments{"every=8,group=4,pull=0.3",
                                                             "every=1,group=2"};
  static constexpr std::string_view summary =
      "every worker trains a copy of the model; every few steps it moves toward the worker of its "
      "group, or of all, that has the lowest loss";

  explicit LeaderExchange(const ExchangeOptions& options);

  /// Refuses an argument that parse_leader() refuses.
  [[nodiscard]] static Result<void> check_argument(std::string_view argument);

  void write(const Context& context, const Write& write);
  void end(const Context& context, const EndWrites& end);

  void on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former);

  using WorkerModel::on;
  [[nodiscard]] bool on(const Context& context, MemberId from, const LossReport& report);
  [[nodiscard]] bool on(const Context& context, MemberId from, const LossReceived& received);
  [[nodiscard]] bool on(const Context& context, MemberId from, const LeaderRequest& request) const;
  [[nodiscard]] bool on(const Context& context, MemberId from, const LeaderReply& reply);
  [[nodiscard]] bool on(const Context& context, MemberId from, const ModelReply& reply);
  void on(const Context& context, const Ended& ended);

  /// True once all others have the report of the worker's last step.
  [[nodiscard]] bool may_leave() const;

  /// Returns how often the copy has changed.
  [[nodiscard]] std::uint64_t versions() const noexcept { return versions_; }
  /// True while a step waits for the answers of others.
  [[nodiscard]] bool is_writing() const noexcept { return writing_.has_value(); }
  /// Returns the last finished step that is a multiple of `global_every`, of which all others have
  /// a report; 0 if there is none. A report to the group or at the end does not change the result.
  [[nodiscard]] Step reported_to_all() const noexcept { return reported_to_all_; }
  /// Returns the worker toward which this one moves now, if any.
  [[nodiscard]] std::optional<MemberIncarnation> leader() const {
    return move_ ? std::optional{move_->leader} : std::nullopt;
  }

 private:
  struct Move {
    MemberIncarnation leader;
    double part = 0;
    /// The next range to ask for, and the number of ranges that were asked for and have not come.
    RangeId next = 0;
    std::size_t in_flight = 0;
  };
  /// The sum of the worker's losses over its samples since its last report.
  struct LossSum {
    double sum = 0;
    std::uint64_t samples = 0;
  };
  /// The last report of another worker.
  struct Reported {
    std::optional<double> loss;
    /// The number of samples in this worker's steps when the report came.
    std::uint64_t own_samples = 0;
    /// True if the other worker makes no more steps.
    bool has_ended = false;
  };

  [[nodiscard]] bool apply(const Context& context, const Write& write);
  [[nodiscard]] std::vector<MemberIncarnation> others_of_group() const;
  [[nodiscard]] std::uint64_t expected_samples() const;
  [[nodiscard]] Reported& reported_by(const MemberIncarnation& worker);
  void report(const Context& context, const std::vector<MemberIncarnation>& to);
  [[nodiscard]] std::optional<MemberIncarnation> leader_among(
      const std::vector<MemberIncarnation>& others) const;
  void ask_for_values(const Context& context);
  void finish_write(const Context& context);

  LeaderSettings settings_;
  /// The last report of each other worker that is present.
  std::map<MemberIncarnation, Reported> reported_;
  /// The number of samples in this worker's steps when the job started.
  std::uint64_t first_samples_ = 0;
  LossSum since_report_;
  /// The loss of the last report that had one.
  std::optional<double> loss_;
  /// This worker's last report, and the workers that have not answered it.
  LossReport report_;
  std::set<MemberIncarnation> awaited_;
  std::optional<Move> move_;
  /// The step of a write that waits for answers.
  std::optional<Step> writing_;
  Step reported_to_all_ = 0;
  bool has_ended_ = false;
  std::uint64_t versions_ = 0;
};

}  // namespace starling::core
