/// The ownership exchange: each range has owners, which apply the updates that workers push and
/// answer the workers' pulls (docs/design/0006-range-ownership.md). Servers or peers own ranges;
/// the council decides who owns which range (Configuration::ranges).
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "starling/engine/exchange/ownership/range_client.hpp"
#include "starling/engine/exchange/ownership/replica.hpp"

namespace starling::core {

/// One member's part of the exchange; see the concept Exchange for the functions.
class OwnershipExchange {
 public:
  using Messages = OwnershipMessages;
  using Context = OwnershipContext;
  static constexpr std::string_view name = "owners";
  static constexpr std::span<const std::string_view> arguments{};
  static constexpr std::string_view summary =
      "each part of the model has owners, which apply the updates that workers push";
  static constexpr bool supports(Mode) { return true; }
  static constexpr bool gathers = true;
  static constexpr bool is_barrier = false;
  static constexpr ExchangeContent content = ExchangeContent::updates;
  static constexpr bool places_ranges = true;

  explicit OwnershipExchange(ExchangeOptions options);

  void read(const Context& context, Read read) { client_.read(context, std::move(read)); }
  void write(const Context& context, Write write) { client_.write(context, std::move(write)); }
  void enter(const Context& context, const Enter& enter) { client_.enter(context, enter); }
  void end(const Context& context, const EndWrites& end) { client_.end(context, end); }

  void on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former);
  void on_timer(const Context&) {}

  [[nodiscard]] bool on(const Context& context, MemberId from, const Pull& pull);
  [[nodiscard]] bool on(const Context& context, MemberId from, const Value& value);
  [[nodiscard]] bool on(const Context& context, MemberId from,
                        const std::shared_ptr<const Push>& push);
  [[nodiscard]] bool on(const Context& context, MemberId from, const Ack& ack);
  [[nodiscard]] bool on(const Context& context, MemberId from, const Install& install);
  [[nodiscard]] bool on(const Context& context, MemberId from, const Forward& forward);
  [[nodiscard]] bool on(const Context& context, MemberId from, const Held& held);
  void on(const Context& context, const Ended& ended) { replica_.on(context, ended); }
  void on(const Context& context, const Snapshot& request) { replica_.on(context, request); }

  /// The primary of a range answers observers.
  [[nodiscard]] static std::optional<MemberId> answerer(std::string_view,
                                                        const Configuration& configuration,
                                                        RangeId range);
  [[nodiscard]] bool answers_for(RangeId range) const { return replica_.is_primary(range); }
  [[nodiscard]] std::optional<Value> value(RangeId range, const Rows& rows);
  [[nodiscard]] RangeState state(RangeId range) const { return replica_.shard().state(range); }
  [[nodiscard]] std::vector<WorkerProgress> progress() const { return replica_.shard().progress(); }
  [[nodiscard]] ReadCounts read_counts() const { return client_.counts(); }
  [[nodiscard]] std::vector<RangeId> full_ranges() const { return replica_.full_ranges(); }
  [[nodiscard]] static bool may_leave() { return true; }
  [[nodiscard]] std::uint64_t full_ranges_version() const { return replica_.full_ranges_version(); }

  /// The ranges that this member owns, if any.
  [[nodiscard]] Replica& replica() noexcept { return replica_; }
  [[nodiscard]] const Replica& replica() const noexcept { return replica_; }

 private:
  bool works_;
  RangeClient client_;
  Replica replica_;
};

}  // namespace starling::core
