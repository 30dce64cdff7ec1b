/// An exchange in the simulation of steps: it says when a worker has read the model for a step, and
/// when the update of a step counts. It has no clock of its own: it asks to be woken. Not
/// thread-safe; the results are a function of the options, the seed and the calls.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/sim/exchange_steps/exchange_options.hpp"

namespace starling::sim {

using core::MemberId;
using core::Step;

class StepExchange {
 public:
  /// Call wake(id) at this time.
  struct Wake {
    Time at;
    std::uint32_t id;
  };
  /// The effects of calls. The caller takes them after each call.
  struct Effects {
    std::vector<Wake> wakes = {};
    /// The workers whose read or write is done now.
    std::vector<MemberId> done = {};
  };

  StepExchange() = default;
  StepExchange(const StepExchange&) = delete;
  StepExchange& operator=(const StepExchange&) = delete;
  virtual ~StepExchange() = default;

  /// The worker wants the model for a step. Returns true if it can compute at once.
  virtual bool read(MemberId worker, Step step, Time now) = 0;
  /// The worker has computed the update of a step. Returns true if the update counts at once.
  virtual bool write(MemberId worker, Step step, Time now) = 0;
  /// The time of a Wake with this id has come.
  virtual void wake(std::uint32_t id, Time now) = 0;
  /// Returns all figures but waiting_share, which the caller computes.
  [[nodiscard]] virtual ExchangeFigures figures() const = 0;

  Effects effects;
};

/// Makes the exchange; null if there is only one worker, unless the exchange has owners. Requires:
/// check(options, mode, workers).
[[nodiscard]] std::unique_ptr<StepExchange> make_step_exchange(const ExchangeStepOptions& options,
                                                               core::Mode mode, std::size_t workers,
                                                               std::uint64_t seed);

}  // namespace starling::sim
