/// A worker's part of the ownership exchange: it pulls the ranges that a step reads from their
/// owners, and pushes the update to them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "starling/engine/exchange/ownership/messages.hpp"
#include "starling/engine/exchange/ownership/range_cache.hpp"

namespace starling::core {

struct RangeClientOptions {
  MemberId worker = 0;
  Incarnation incarnation = 0;
  /// ExchangeOptions::bsp.
  bool bsp = false;
  /// At most this many pulls or pushes to one owner are in flight, each of one range. This bounds
  /// how much of a large model is in flight. At least 1.
  std::size_t window = 64;
};

/// One call at a time; not thread-safe. Repeated or late messages do no harm. The client sends a
/// message again only to new owners, so the caller must see to it that no message gets lost.
///
///     idle --read--> pulling --all values have come (ReadDone)--> idle
///     idle --write, enter--> pushing --all owners hold the update (Written)--> idle
class RangeClient {
 public:
  /// Without a cache, the client pulls every range of a read.
  explicit RangeClient(const RangeClientOptions& options,
                       std::optional<RangeCache> cache = std::nullopt)
      : options_(options), cache_(std::move(cache)) {}

  /// Adopts a configuration: sends the new owners the pulls and pushes that the former ones have
  /// not answered. Call it before all else. Requires: no range is lost.
  void on_configuration(const OwnershipContext& context, ConfigurationPtr next);

  // Requires, for read(), write() and enter(): the client is idle.
  void read(const OwnershipContext& context, Read read);
  void write(const OwnershipContext& context, Write write);
  /// bsp only: announces to the owners of all ranges that this worker has joined.
  void enter(const OwnershipContext& context, const Enter& enter);
  void end(const OwnershipContext& context, const EndWrites& end);

  void on(const OwnershipContext& context, const Value& value);
  void on(const OwnershipContext& context, const Ack& ack);

  [[nodiscard]] const ReadCounts& counts() const noexcept { return counts_; }

 private:
  enum class Phase { idle, pulling, pushing };

  // In the functions below, `part` is a position in plan_ while the client is pulling, and in
  // write_.update.parts while it is pushing.
  [[nodiscard]] RangeId range_of(std::uint32_t part) const;
  [[nodiscard]] OwnerId primary_of(RangeId range) const;
  void push(const OwnershipContext& context);
  void read_from_cache();
  void write_to_cache();
  void finish_read(const OwnershipContext& context);
  void finish_write(const OwnershipContext& context);
  void expect_answers(std::size_t parts);
  void send_unsent(const OwnershipContext& context);
  void send_or_queue(const OwnershipContext& context, std::uint32_t part);
  void send_part(const OwnershipContext& context, std::uint32_t part);
  void refill_window(const OwnershipContext& context, std::uint32_t answered);
  void send_end(const OwnershipContext& context) const;

  RangeClientOptions options_;
  std::optional<RangeCache> cache_;
  ReadCounts counts_;
  ConfigurationPtr configuration_;
  /// The primary owners of all ranges, ascending.
  std::vector<OwnerId> primaries_;

  Phase phase_ = Phase::idle;
  /// The step of the current read, the step up to which its values must contain all updates, and
  /// the step that all workers are known to have reached.
  Step read_step_ = 0;
  Step read_oldest_ = 0;
  Step read_floor_ = 0;
  /// The ranges of the current read.
  std::vector<RangeRows> plan_;
  /// True if plan_ has all ranges, whole.
  bool plans_all_ = false;
  /// The rows to pull, in the plan's order. Empty without a cache: the client then pulls the rows
  /// of the plan.
  std::vector<Rows> rows_to_pull_;
  /// The values read so far, in the plan's order.
  std::vector<Value> values_;
  /// The position in the plan by range, or not_planned.
  std::vector<std::uint32_t> position_;
  /// The update that is being pushed, sorted by range; kept until every owner holds it.
  Write write_;
  /// True while enter() announces this worker: the client sends the primary owner of each range a
  /// push without an update (Push::is_join).
  bool is_join_ = false;
  /// For each part of the plan or of the update: true if it has an answer. `values_` does not show
  /// this: a part without rows has no buffer even when it is answered.
  std::vector<bool> is_answered_;
  std::size_t unanswered_ = 0;
  /// One owner's window: the number of parts in flight to it, and a stack of the parts that wait
  /// because the window is full. The back is sent first.
  struct OwnerWindow {
    std::size_t in_flight = 0;
    std::vector<std::uint32_t> queued;
  };
  /// In the order of primaries_.
  std::vector<OwnerWindow> windows_;
  OwnerWindow& window_of(OwnerId owner);
  /// The owner that each part was sent to, or not_sent.
  std::vector<OwnerId> sent_to_;
  /// The worker's last step, if it has ended.
  std::optional<Step> ended_at_;
};

}  // namespace starling::core
