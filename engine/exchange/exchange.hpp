/// An exchange is the protocol that carries updates between workers. The worker asks it to read the
/// parameters for a step, and to write the update of the step. The exchange says when the values
/// are there and when the update counts: only then is the worker's step reported to others as
/// finished. docs/concepts/exchanges.md says for each exchange when an update, and so its step,
/// counts. Each exchange is a class in a folder of its own, with its own messages;
/// core/training/exchanges.hpp lists them.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/deals/deal.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/role/role.hpp"
#include "starling/engine/exchange/applier.hpp"

namespace starling::core {

/// The options of every exchange.
struct ExchangeOptions {
  /// The name of an exchange in the list (core/training/exchanges.hpp), and perhaps a colon and an
  /// argument: "gossip:ring".
  std::string name = "owners";
  /// This member; the training role sets it.
  Member self;
  std::shared_ptr<const Layout> layout;
  /// How updates change the parameters. All members of a job share it.
  ApplierPtr applier;
  /// The number of workers with which the job starts.
  std::size_t workers = 1;
  /// Worker ids are below this. 0: they are below `workers`, because no worker joins later.
  std::size_t workers_max = 0;
  /// The state of each range when the job starts.
  std::shared_ptr<const std::vector<RangeState>> initial_states;
  /// At most this many messages with tensors are in flight from one member to another, each with
  /// one range. At least 1.
  std::size_t window = 64;
  /// True if the worker keeps what it has read, and reads again only what is too old for the
  /// barrier (check_cache() in core/training/exchanges.hpp).
  bool cache = false;
  /// True if workers may hand over parts of an update that is not whole yet (WriteParts).
  bool has_early_parts = false;
  /// True if members send elements with the precision of bfloat16, and keep the rounding errors.
  /// Only for exchanges with E::can_round_to_bf16, and for elements that are floats.
  bool rounds_to_bf16 = false;
  /// True in bulk-synchronous jobs of an exchange that gathers the updates of a step, and applies
  /// them together in the order of the workers. The training role sets it.
  bool bsp = false;
  /// bsp only: a Snapshot of a later round, as if the exchange had received it at the start.
  Snapshot pending_snapshot = {.request_id = 0};
};

/// Returns what follows the colon in the name of an exchange; empty if there is none.
[[nodiscard]] constexpr std::string_view exchange_argument(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon == std::string_view::npos ? std::string_view{} : name.substr(colon + 1);
}

/// The answer to a Read: the values, one for each range of the plan and in its order.
struct ReadDone {
  Step step;
  std::vector<Value> values;
};
/// The answer to a Write or an Enter: the update counts. Workers that the barrier lets pass after
/// this answer read the update, as far as the exchange promises that.
struct Written {
  /// The step of the Write or Enter. If the exchange is itself the barrier, the answer to an Enter
  /// has instead the step after which the worker begins.
  Step step;
};
/// Send the observer this state: part of the answer to a Snapshot.
struct ObservedState {
  std::shared_ptr<RangeState> state;
};

/// Counts what workers have read. A range counts once for each step that needs it.
struct ReadCounts {
  std::uint64_t ranges = 0;
  /// The number of these that were not wholly in the worker's cache.
  std::uint64_t pulled = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.ranges, m.pulled); }
  ReadCounts& operator+=(const ReadCounts& other) noexcept {
    ranges += other.ranges;
    pulled += other.pulled;
    return *this;
  }
};

template <class Messages>
using ExchangeEffect =
    std::variant<SendToMember<Messages>, SetTimer, ReadDone, Written, ObservedState, Fail>;
template <class Messages>
using ExchangeEffects = std::vector<ExchangeEffect<Messages>>;

/// The argument `context` of an exchange's functions: each handles one event. `Sent` are the
/// messages that the exchange may send.
template <class Sent>
struct ExchangeContext {
  using Messages = Sent;
  Time now;
  Random& random;
  ExchangeEffects<Messages>& out;

  void send(MemberId to, AnyOf<Messages> message) const {
    out.push_back(SendToMember<Messages>{to, std::move(message)});
  }
  void send_to_observer(RangeState state) const {
    out.push_back(ObservedState{std::make_shared<RangeState>(std::move(state))});
  }
};

/// The form in which the members of an exchange send each other the workers' updates. Algorithms,
/// whose updates need not be gradients, work only with `updates`.
enum class ExchangeContent {
  /// The updates of steps, as the workers computed them.
  updates,
  /// Sums of updates.
  sums,
  /// Models, or how they have changed.
  models,
};

/// The functions that the training role requires of an exchange. One call at a time; not
/// thread-safe. Messages between members of one epoch arrive once and in order.
template <class E>
concept Exchange = requires(E exchange, const E& constant, const typename E::Context& context,
                            const ConfigurationPtr& configuration, ExchangeOptions options,
                            Step step, const Ended& ended, const Snapshot& snapshot, RangeId range,
                            const Rows& rows, std::string_view name) {
  /// The name in the grammar of flags.
  { E::name } -> std::convertible_to<std::string_view>;
  /// The arguments that may follow the name and a colon; the first one is the default. If other
  /// arguments may follow, too, E::check_argument(argument) returns an error for each that may not.
  { E::arguments } -> std::convertible_to<std::span<const std::string_view>>;
  /// The messages between members that only this exchange has. For each of them there is a function
  /// on(context, from, message), which returns false if the sender knows another configuration and
  /// must be sent this member's, and a function is_valid(scope, message) that says whether the
  /// sender may send it. `message` is a reference or a shared pointer.
  typename E::Messages;
  /// One line for help texts: how an update becomes what others read.
  { E::summary } -> std::convertible_to<std::string_view>;
  /// True if jobs of this mode can use the exchange.
  { E::supports(Mode::peer) } -> std::same_as<bool>;
  /// True if the exchange can gather the updates of a step (ExchangeOptions::bsp).
  { E::gathers } -> std::convertible_to<bool>;
  /// True if the last step of a round counts only when the exchange has the updates of all workers
  /// for the round, or for the one before if rounds overlap with steps. Then the exchange is itself
  /// a barrier like bsp, no member needs to see every step, and a worker that joins asks the
  /// exchange at which step to begin (Enter).
  { E::is_barrier } -> std::convertible_to<bool>;
  /// The form in which members send each other updates.
  { E::content } -> std::convertible_to<ExchangeContent>;
  /// True if the council decides which members have which ranges (Configuration::ranges). If not,
  /// configurations name no ranges.
  { E::places_ranges } -> std::convertible_to<bool>;
  /// An exchange may also have:
  /// - E::model_lags: true if steps count before the model that is evaluated and saved contains
  ///   them. Then only the ledgers of this model say which steps the model contains;
  /// - E::can_round_to_bf16: true if the exchange supports ExchangeOptions::rounds_to_bf16, and
  ///   E::check_rounding(name), which refuses the names with which the exchange does not;
  /// - E::check_workers(name, workers), which refuses numbers of workers that it does not support;
  /// - E::shards_optimizer(name): true if only two workers hold each part of the optimizer's state;
  /// - leave(context), called when this member is to leave, perhaps before its worker has ended;
  /// - write_parts(context, WriteParts), by which the worker gives parts of an update before the
  ///   Write, in the buckets of E::buckets(name, layout, element_bytes).

  /// The context of every function: an ExchangeContext that may send `Messages` and Ended.
  typename E::Context;
  E{std::move(options)};

  // --- for the worker of this member ---
  exchange.read(context, Read{});
  exchange.write(context, Write{});
  exchange.enter(context, Enter{});
  exchange.end(context, EndWrites{});

  // --- for the other members ---
  /// Adopts a configuration. `former` is the epoch of the one that this member knew before, perhaps
  /// several epochs earlier, or 0 if it knew none.
  exchange.on_configuration(context, configuration, Epoch{});
  /// Another member's worker has made its last step.
  exchange.on(context, ended);
  exchange.on_timer(context);

  /// Returns false while this member, whose worker has ended, must not leave, because others may
  /// lack an update of that worker that counts.
  { constant.may_leave() } -> std::same_as<bool>;

  // --- for observers and actors that are not members ---
  /// Sends the observer the states of the ranges for which answers_for() is true.
  exchange.on(context, snapshot);
  /// Returns the member that observers ask about the range in a configuration. `name` is
  /// ExchangeOptions::name.
  { E::answerer(name, *configuration, range) } -> std::same_as<std::optional<MemberId>>;
  /// Returns true if this member replies to observers: it is the answerer and has the values.
  { constant.answers_for(range) } -> std::same_as<bool>;
  /// Returns the current values of the range, or of rows of it; nullopt if this member is
  /// not the answerer or lacks the values, or if there are no such rows.
  { exchange.value(range, rows) } -> std::same_as<std::optional<Value>>;
  /// Returns the current state of the range. Requires: answers_for(range).
  { constant.state(range) } -> std::same_as<RangeState>;
  /// Returns how far each worker has got, as far as this member knows. A worker has at least one
  /// entry, for one of its incarnations, once it has written an update.
  { constant.progress() } -> std::same_as<std::vector<WorkerProgress>>;
  /// Counts what the worker of this member has read; all zero if it reads without asking others.
  { constant.read_counts() } -> std::same_as<ReadCounts>;

  // --- for the council, which decides where ranges are (Configuration::ranges) ---
  /// Returns the ranges of which this member is full (PendingChanges::full): it holds every
  /// acknowledged update of them. Ascending.
  { constant.full_ranges() } -> std::same_as<std::vector<RangeId>>;
  /// Returns how often full_ranges() has changed.
  { constant.full_ranges_version() } -> std::same_as<std::uint64_t>;
};

/// All that the validity of an exchange's message depends on.
struct ExchangeScope : MessageScope {
  /// The layout of the job's parameters.
  const Layout& layout;
  std::size_t element_bytes;

  [[nodiscard]] bool has_range(RangeId range) const { return range < layout.ranges.size(); }
  [[nodiscard]] bool fits_range(RangeId range, const Slice& slice) const {
    return has_range(range) && fits(layout.ranges[range], slice, element_bytes);
  }
};

}  // namespace starling::core
