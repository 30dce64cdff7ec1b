/// The exchanges in which workers pull a model from owners and push to them, owners and elastic, in
/// the simulation of steps.
#pragma once

#include <vector>

#include "starling/engine/core/mode.hpp"
#include "starling/engine/sim/exchange_steps/message_exchange.hpp"

namespace starling::sim {

/// Each owner has an equal part of the model. A worker asks all owners at once; it pushes first to
/// the owner whose number follows its own, then to the next one, so that not all push to the same
/// one first. An owner takes no time to apply a push.
class OwnerSteps final : public MessageExchange {
 public:
  /// If `every` is above 0, this is the elastic exchange, which pulls and pushes after each `every`
  /// steps. If it is 0, this is the ownership exchange, which pulls before each step and pushes
  /// after it.
  OwnerSteps(const ExchangeStepOptions& options, core::Mode mode, std::size_t workers, Step every,
             std::uint64_t seed);

  /// The number of owners.
  [[nodiscard]] static std::size_t owners(const ExchangeStepOptions& options, core::Mode mode,
                                          std::size_t workers) {
    return core::has_servers(mode) ? options.servers : workers;
  }

  bool read(MemberId worker, Step step, Time now) override;
  bool write(MemberId worker, Step step, Time now) override;

 private:
  enum Kind : std::uint8_t { pull, values, push, received };
  struct Worker {
    /// The number of pulls and pushes that no owner has answered yet.
    std::size_t unanswered = 0;
    /// Elastic only: true while the worker pulls in order to push after that.
    bool pushes_next = false;
  };

  /// Sends a message to every owner but the worker itself. Returns true if there is no such owner.
  bool send_to_owners(MemberId worker, Kind kind, double bytes, Time now);
  void receive(const Message& message, Time now) override;

  Step every_;
  std::size_t owners_;
  /// The member that is the first owner.
  MemberId first_owner_;
  std::vector<Worker> workers_;
};

}  // namespace starling::sim
