/// The gossip exchange in the simulation of steps: push-sum weights, and a number that each worker
/// mixes with others.
#pragma once

#include <optional>
#include <vector>

#include "starling/engine/exchange/gossip/gossip.hpp"
#include "starling/engine/sim/exchange_steps/message_exchange.hpp"

namespace starling::sim {

/// All ranges of a model move as one, in one message. A worker that has ended still takes messages,
/// and keeps their weight.
class GossipSteps final : public MessageExchange {
 public:
  /// Requires: workers >= 2.
  GossipSteps(const ExchangeStepOptions& options, const core::GossipSettings& settings,
              std::size_t workers, std::uint64_t seed);

  bool read(MemberId, Step, Time) override { return true; }
  bool write(MemberId worker, Step step, Time now) override;
  [[nodiscard]] ExchangeFigures figures() const override;

 private:
  enum Kind : std::uint8_t { push_sum, received };
  struct Worker {
    double weight = 1;
    double value = 0;
    /// The steps whose messages others have not taken yet, as far as the worker knows.
    std::vector<Step> sending = {};
    /// The step that does not count yet.
    std::optional<Step> writing = std::nullopt;
  };

  void receive(const Message& message, Time now) override;
  [[nodiscard]] bool counts(const Worker& worker, Step step) const;
  [[nodiscard]] double squared_distance() const;

  core::GossipSettings settings_;
  Random random_;
  std::vector<Worker> workers_;
  double weight_in_flight_ = 0;
  double average_ = 0;
  double first_squared_distance_ = 0;
};

}  // namespace starling::sim
