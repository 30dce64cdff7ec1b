/// The leader exchange in the simulation of steps, which computes no loss: the leader is drawn at
/// random.
#pragma once

#include <vector>

#include "starling/engine/exchange/leader/leader.hpp"
#include "starling/engine/sim/exchange_steps/message_exchange.hpp"

namespace starling::sim {

/// At each step after which workers move, a leader is drawn from each group or, each `global_every`
/// steps, from all workers. The others of its group, or all others, copy its model. A worker goes
/// on once it has the model, and its report of the loss has been answered. Each worker sends
/// one report, which stands for its reports to all others, because these travel at the same time.
class LeaderSteps final : public MessageExchange {
 public:
  LeaderSteps(const ExchangeStepOptions& options, const core::LeaderSettings& settings,
              std::size_t workers, std::uint64_t seed);

  bool read(MemberId, Step, Time) override { return true; }
  bool write(MemberId worker, Step step, Time now) override;

 private:
  enum Kind : std::uint8_t { report, request, model, received };

  void receive(const Message& message, Time now) override;
  [[nodiscard]] MemberId leader_of(MemberId first, std::size_t size, Step step) const;

  core::LeaderSettings settings_;
  std::uint64_t seed_;
  /// By worker: the number of answers that it awaits.
  std::vector<std::uint8_t> awaited_;
};

}  // namespace starling::sim
