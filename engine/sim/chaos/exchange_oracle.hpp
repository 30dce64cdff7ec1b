/// The part of the InvariantChecker that depends on the exchange: which members hold a range, and
/// what they hold. To check a new exchange, write an oracle and add it to make_oracle().
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::sim {

/// Immutable; thread-safe. The functions that take a MemberCore require that its state is `member`.
class ExchangeOracle {
 public:
  using MemberCore = core::MemberCore;
  /// A value that differs between any two states of a range at one member.
  using Version = std::tuple<core::Epoch, std::uint64_t, bool>;

  virtual ~ExchangeOracle() = default;

  /// Returns the members that are to hold the range in a configuration. A member holds it without a
  /// break as long as its `since` is the same.
  [[nodiscard]] virtual std::vector<core::RangeOwner> holders(
      const core::Configuration& configuration, core::RangeId range) const = 0;
  /// True if the member has the whole range, according to the member itself.
  [[nodiscard]] virtual bool is_full(const MemberCore& member, core::RangeId range) const = 0;
  /// True if the member has the state of the optimizer that updates of the range need.
  [[nodiscard]] virtual bool has_state(const MemberCore&, core::RangeId) const { return true; }
  /// True if `member`, a holder of the range, is to have that state in the configuration.
  [[nodiscard]] virtual bool keeps_state(const core::Configuration&, core::MemberId,
                                         core::RangeId) const {
    return true;
  }
  /// Returns the member's elements of the range; empty if it has none.
  [[nodiscard]] virtual std::span<const double> values(const MemberCore& member,
                                                       core::RangeId range) const = 0;
  [[nodiscard]] virtual Version version(const MemberCore& member, core::RangeId range) const = 0;
  /// Returns the number of samples of all updates in the member's range, as the member counts them.
  [[nodiscard]] virtual std::uint64_t samples(const MemberCore& member,
                                              core::RangeId range) const = 0;
  /// True if each holder must have every update that counts, once and whole: then element 2 *
  /// `incarnation_index` of a range is the number of the incarnation's updates in it.
  [[nodiscard]] virtual bool has_whole_updates() const { return true; }
  /// True if holders mix their elements by push-sum, so only the sums over all holders are known.
  [[nodiscard]] virtual bool has_push_sums() const { return false; }
  /// True if each holder's elements are a mean of those of workers: then a holder has no more
  /// updates of an incarnation than the incarnation's worker has made.
  [[nodiscard]] virtual bool has_means() const { return false; }
  /// Returns how many of a worker's last steps that count may be missing from the copies of others;
  /// if the worker dies, they may be missing for ever.
  [[nodiscard]] virtual core::Step steps_ahead() const { return 0; }
  /// If has_whole_updates() is false: returns the step up to which the holders have the updates of
  /// the member's worker, as far as the member knows.
  [[nodiscard]] virtual core::Step step_written(const MemberCore&) const { return 0; }
  /// Returns how many steps of a worker may be lost for ever if the worker dies, including the step
  /// that it was making.
  [[nodiscard]] virtual core::Step steps_lost() const { return steps_ahead() + 1; }
  /// Returns how many of a worker's own last steps may be missing from the model that the worker
  /// reads.
  [[nodiscard]] virtual core::Step own_steps_unread() const { return 0; }
  /// Returns the step up to which a worker surely reads the updates of others, if its barrier
  /// promises those up to `promised`.
  [[nodiscard]] virtual core::Step step_read(core::Step promised) const { return promised; }
  /// Returns the round that the member's copy contains, if all copies of a round are equal; nullopt
  /// if the exchange has no rounds or the member no copy.
  [[nodiscard]] virtual std::optional<core::Step> round(const MemberCore&) const {
    return std::nullopt;
  }
  /// Returns the push-sum weight of the member's elements.
  [[nodiscard]] virtual double weight(const MemberCore&, core::RangeId) const { return 1; }
  /// Returns how many steps of `worker` the member has in the range. The worker's incarnation has
  /// the index `incarnation_index` and began at step `first`.
  [[nodiscard]] virtual core::Step count_held(const MemberCore& member, core::RangeId range,
                                              std::size_t incarnation_index,
                                              const core::Member& worker, core::Step first) const;
  /// Returns true if updates are on their way that `member` lacks and `first`, the first holder,
  /// has.
  [[nodiscard]] virtual bool is_behind(const MemberCore& member, const MemberCore& first,
                                       core::RangeId range) const = 0;
  /// Returns what differs between the range at two full holders when nothing is on its way; empty
  /// if nothing does.
  [[nodiscard]] virtual std::string_view difference(const MemberCore& a, const MemberCore& b,
                                                    core::RangeId range) const = 0;
};

/// Returns the oracle of an exchange. Requires: the exchange has an oracle.
[[nodiscard]] std::unique_ptr<const ExchangeOracle> make_oracle(std::string_view exchange);

}  // namespace starling::sim
