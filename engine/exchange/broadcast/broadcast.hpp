/// The broadcast exchange: every worker has a copy of all parameters, reads its own copy, and sends
/// its updates to all other workers. It is the smallest complete exchange, and an example for new
/// ones (docs/design/0013-exchanges.md).
///
/// A step counts as soon as the copies of all workers contain its update, so a worker that sees the
/// step of another one reads all its updates up to this step. The copies apply the updates of
/// different workers in different orders: they stay equal, up to rounding, only if the order does
/// not matter, as with plain SGD. An optimiser with state of its own, such as momentum, makes them
/// differ a little.
///
/// If a worker is gone, the workers that have its last update pass it on to the others, until the
/// copies of all contain it. A worker that joins asks others for a copy, range by range, and gets
/// the last updates with it. Until it has the copy of a range, it neither applies nor acknowledges
/// updates of the range, so a step of another worker that changes the range does not count before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/engine/exchange/broadcast/messages.hpp"
#include "starling/engine/exchange/whole_models.hpp"

namespace starling::core {

/// One member's part of the exchange; see the concept Exchange for the functions. Members that
/// are no workers have no copy.
class BroadcastExchange {
 public:
  using Messages = BroadcastMessages;
  using Context = BroadcastContext;
  static constexpr std::string_view name = "broadcast";
  static constexpr std::span<const std::string_view> arguments{};
  static constexpr std::string_view summary =
      "every worker has the whole model, and sends its updates to all others";
  static constexpr bool supports(Mode mode) { return mode == Mode::peer; }
  static constexpr bool gathers = false;
  static constexpr bool is_barrier = false;
  static constexpr ExchangeContent content = ExchangeContent::updates;
  static constexpr bool places_ranges = false;

  explicit BroadcastExchange(ExchangeOptions options);

  void read(const Context& context, Read read);
  void write(const Context& context, Write write);
  void enter(const Context&, const Enter&) {}  // the exchange does not gather
  void end(const Context&, const EndWrites&) {}

  void on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former);
  void on_timer(const Context& context);

  [[nodiscard]] bool on(const Context& context, MemberId from,
                        const std::shared_ptr<const Share>& share);
  [[nodiscard]] bool on(const Context& context, MemberId from, const ShareApplied& applied);
  [[nodiscard]] bool on(const Context& context, MemberId from, const CopyRequest& request);
  [[nodiscard]] bool on(const Context& context, MemberId from, const CopyReply& reply);
  void on(const Context&, const Ended&) {}
  void on(const Context& context, const Snapshot& request) const;

  /// The worker with the lowest id answers observers, for all ranges.
  [[nodiscard]] static std::optional<MemberId> answerer(std::string_view,
                                                        const Configuration& configuration,
                                                        RangeId) {
    return first_worker(configuration);
  }
  [[nodiscard]] bool answers_for(RangeId range) const {
    return has_copy(range) && first_worker(*configuration_) == options_.self.id;
  }
  [[nodiscard]] std::optional<Value> value(RangeId range, const Rows& rows) const;
  [[nodiscard]] RangeState state(RangeId range) const;
  [[nodiscard]] std::vector<WorkerProgress> progress() const;
  [[nodiscard]] static ReadCounts read_counts() { return {}; }
  [[nodiscard]] std::vector<RangeId> full_ranges() const {
    return copied_ranges(*this, copies_.size());
  }
  [[nodiscard]] static bool may_leave() { return true; }
  [[nodiscard]] std::uint64_t full_ranges_version() const { return full_ranges_version_; }

  /// True if this member has a copy of the range.
  [[nodiscard]] bool has_copy(RangeId range) const {
    return range < copies_.size() && copies_[range].values.value != nullptr;
  }
  /// Returns the elements of the copy. Requires: has_copy(range), and that T is their type.
  template <class T>
  [[nodiscard]] std::span<const T> copy(RangeId range) const {
    return std::as_const(*copies_[range].values.value).template as<T>();
  }
  /// Returns the number of updates that the copy contains. Requires: has_copy(range).
  [[nodiscard]] std::uint64_t updates(RangeId range) const { return copies_[range].values.updates; }

 private:
  struct Copy {
    /// Its buffers are null until has_copy() is true of the range.
    RangeValues values;
    StepsOfWorkers progress;
    /// The last Share of each worker that changed this range. Other workers may not have it yet.
    /// Empty in a job of one process, in which no worker dies alone.
    std::map<MemberIncarnation, std::shared_ptr<const Share>> last;
    /// The shares that have come before the copy, with their senders.
    std::vector<std::pair<MemberId, std::shared_ptr<const Share>>> waiting;
  };
  /// A share that this member sends, and the other workers whose copies may not contain it yet.
  struct OutgoingShare {
    std::shared_ptr<const Share> share;
    std::vector<MemberIncarnation> missing;
    /// False while it waits for its turn, because too many shares are in flight.
    bool is_sent = false;
  };

  [[nodiscard]] std::vector<MemberIncarnation> other_workers() const {
    return core::other_workers(*configuration_, options_.self.id);
  }
  void take_initial_states();
  [[nodiscard]] bool install(const Context& context, const RangeCopy& copy);
  bool apply(const std::shared_ptr<const Share>& share);
  void pass_on(std::shared_ptr<const Share> share);
  void renew_missing(const Context& context, const Configuration& before,
                     OutgoingShare& sent) const;
  void send_next(const Context& context);
  void request_copy(const Context& context);
  void ask(const Context& context, CopySource::Next next);
  void finish_read(const Context& context);
  [[nodiscard]] RangeCopy range_copy(RangeId range) const;

  ExchangeOptions options_;
  ConfigurationPtr configuration_;
  /// By range; empty if this member is no worker.
  std::vector<Copy> copies_;

  /// A read that waits for copies.
  std::optional<Read> waiting_read_;
  /// The step of the current write, and its parts; 0 and empty if there is no write.
  Step write_step_ = 0;
  std::vector<OutgoingShare> own_shares_;
  /// The last shares of workers that are gone, until the copies of all contain them.
  std::vector<OutgoingShare> shares_to_pass_on_;

  /// Says which worker to ask for the copies that this one lacks.
  CopySource source_;
  /// How many copies have been installed, each of which adds a range to full_ranges().
  std::uint64_t full_ranges_version_ = 0;
};

}  // namespace starling::core
