/// The elastic exchange (elastic averaging SGD: Zhang, Choromanska and LeCun, arXiv 1412.6651):
/// every worker has a copy of the model, and applies its updates to it with an optimizer of its
/// own. A center has owners, as the model of the ownership exchange has. After each `every` steps
/// of a worker, its copy x and the center c move toward each other:
///
///     d = pull (x - c);  x := x - d;  c := c + d
///
/// A job's result is the center. docs/design/0026-elastic.md describes the consequences.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/ownership/ownership.hpp"

namespace starling::core {

/// When and how far a worker's copy and the center move toward each other.
struct ElasticSettings {
  /// The number of steps of the worker from one move to the next. At least 1.
  Step every = 8;
  /// The part of their difference by which the copy and the center each move: more than 0, at most
  /// 0.5. With 0.5, one worker and the center meet half-way. ElasticExchange::pull() returns the
  /// part that many workers use.
  double pull = 0.1;

  bool operator==(const ElasticSettings&) const = default;
};

/// Reads "elastic:every=N,pull=P", in which each part has a default. Refuses values out of range.
[[nodiscard]] Result<ElasticSettings> parse_elastic(std::string_view name);

/// One member's part of the exchange; see the concept Exchange for the functions. Members that are
/// no workers have no copy. A worker gets its copy from the center when it first reads.
class ElasticExchange {
 public:
  using Messages = OwnershipMessages;
  using Context = OwnershipContext;
  static constexpr std::string_view name = "elastic";
  /// These are examples, the first of which is the default.
  static constexpr std::array<std::string_view, 2> arguments{"every=8,pull=0.1", "every=1"};
  static constexpr std::string_view summary =
      "every worker trains a copy of the model; every few steps it and a center, which has owners, "
      "move toward each other";
  static constexpr bool supports(Mode) { return true; }
  static constexpr bool gathers = false;
  static constexpr bool is_barrier = false;
  static constexpr ExchangeContent content = ExchangeContent::models;
  static constexpr bool places_ranges = true;
  static constexpr bool model_lags = true;

  explicit ElasticExchange(ExchangeOptions options);

  /// Refuses an argument that is not every=N,pull=P.
  [[nodiscard]] static Result<void> check_argument(std::string_view argument);

  void read(const Context& context, Read read);
  void write(const Context& context, Write write);
  void enter(const Context&, const Enter&) {}  // the exchange does not gather
  void end(const Context& context, const EndWrites& end);

  void on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former);
  void on_timer(const Context&) {}

  /// Any message of the ownership exchange.
  template <class M>
  requires requires(OwnershipExchange& owners, const Context& context, const M& message) {
    { owners.on(context, MemberId{}, message) } -> std::same_as<bool>;
  }
  [[nodiscard]] bool on(const Context& context, MemberId from, const M& message) {
    const std::size_t answers_from = context.out.size();
    const bool is_known = center_.on(context, from, message);
    take_answer(context, answers_from);
    return is_known;
  }
  void on(const Context& context, const Ended& ended) { center_.on(context, ended); }
  void on(const Context& context, const Snapshot& request) { center_.on(context, request); }

  // Others read the center.
  [[nodiscard]] static std::optional<MemberId> answerer(std::string_view exchange,
                                                        const Configuration& configuration,
                                                        RangeId range) {
    return OwnershipExchange::answerer(exchange, configuration, range);
  }
  [[nodiscard]] bool answers_for(RangeId range) const { return center_.answers_for(range); }
  [[nodiscard]] std::optional<Value> value(RangeId range, const Rows& rows) {
    return center_.value(range, rows);
  }
  [[nodiscard]] RangeState state(RangeId range) const { return center_.state(range); }
  /// The steps after which workers have last moved the center.
  [[nodiscard]] std::vector<WorkerProgress> progress() const { return center_.progress(); }
  [[nodiscard]] static ReadCounts read_counts() { return {}; }
  [[nodiscard]] std::vector<RangeId> full_ranges() const { return center_.full_ranges(); }
  [[nodiscard]] bool may_leave() const { return phase_ == Phase::idle; }
  [[nodiscard]] std::uint64_t full_ranges_version() const { return center_.full_ranges_version(); }

  /// The ranges of the center that this member owns, if any.
  [[nodiscard]] const Replica& replica() const noexcept { return center_.replica(); }
  /// Returns the pull of the settings, but at most 1 / (workers + 1): if all workers move the
  /// center at the same time, the center and the mean of their copies then meet, and do not pass
  /// each other. Above twice that pull, their difference would grow without bound.
  [[nodiscard]] double pull() const {
    return std::min(settings_.pull, 1 / static_cast<double>(workers_ + 1));
  }
  /// Returns the step after which the owners have the worker's last move.
  [[nodiscard]] Step moved_at() const noexcept { return moved_at_; }
  [[nodiscard]] bool has_copy() const { return !copy_.empty(); }
  /// Returns the values with which the worker computes. Requires: has_copy(), and that T is their
  /// type.
  template <class T>
  [[nodiscard]] std::span<const T> copy(RangeId range) const {
    return std::as_const(*copy_[range].value).template as<T>();
  }

 private:
  ///     idle --the first read--> getting_copy --the center's values--> idle
  ///     idle --each `every`-th write, the end--> reading_center --the center's values-->
  ///         moving_center --the owners have the move--> idle
  enum class Phase { idle, getting_copy, reading_center, moving_center };

  template <class Event>
  void call_center(const Context& context, Event event);
  void take_answer(const Context& context, std::size_t first);
  void on_center_read(const Context& context, std::vector<Value> values);
  void on_center_moved(const Context& context);
  void answer_read(const Context& context, const Read& read);
  void apply(const Write& write);
  void begin_move(const Context& context);
  [[nodiscard]] Update move_toward(const std::vector<Value>& center);

  ElasticSettings settings_;
  ExchangeOptions options_;
  OwnershipExchange center_;
  std::size_t workers_ = 1;
  /// The copy, by range; empty if this member has none.
  std::vector<RangeValues> copy_;
  Phase phase_ = Phase::idle;
  /// The read that waits for the copy.
  Read waiting_read_;
  /// The worker's last step, and the number of samples of all its steps up to it.
  Step step_ = 0;
  std::uint64_t samples_total_ = 0;
  /// The step after which the worker last moved the center, and the samples of the steps since
  /// then.
  Step moved_at_ = 0;
  std::uint64_t samples_since_move_ = 0;
  /// The number of samples of all workers that the center contained when the worker last read it,
  /// plus those that the worker's own move added then.
  std::uint64_t center_samples_ = 0;
  bool has_ended_ = false;
};

static_assert(Exchange<ElasticExchange>);

}  // namespace starling::core
