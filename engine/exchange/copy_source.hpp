/// How a worker that joins finds another one that gives it a copy of the model, in exchanges in
/// which every worker has the whole model.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/effect.hpp"

namespace starling::core {

/// Returns the workers of the configuration other than `self`, ascending.
[[nodiscard]] std::vector<MemberIncarnation> other_workers(const Configuration& configuration,
                                                           MemberId self);
/// Returns the worker with the lowest id, which answers for the model; nullopt if there is none.
[[nodiscard]] std::optional<MemberId> first_worker(const Configuration& configuration);

/// Asks one worker after the other. If none of them has a copy, it asks again after 50 ms; after
/// 20 s, the job fails.
class CopySource {
 public:
  /// Ask this member; call on_timer() at this time; or end the job.
  using Next = std::variant<MemberId, SetTimer, Fail>;

  /// Begins with the first of the other workers.
  [[nodiscard]] Next begin(std::span<const MemberIncarnation> others);
  /// The worker that was asked has no copy.
  [[nodiscard]] Next on_refusal(Time now, std::span<const MemberIncarnation> others);
  /// The worker that was asked has sent a copy.
  void on_copy() { nobody_has_it_since_.reset(); }
  /// True if it is time to begin again.
  [[nodiscard]] bool on_timer(Time now);

  /// The worker that was asked last, if any.
  [[nodiscard]] const std::optional<MemberIncarnation>& asked() const { return asked_; }
  /// No copy is missing.
  void end() { asked_.reset(); }

 private:
  [[nodiscard]] Next ask_next(std::span<const MemberIncarnation> others);

  std::optional<MemberIncarnation> asked_;
  /// How many have said since begin() that they have no copy.
  std::size_t refusals_ = 0;
  /// When to ask again, and since when all have said that they have no copy.
  std::optional<Time> ask_again_at_;
  std::optional<Time> nobody_has_it_since_;
};

}  // namespace starling::core
