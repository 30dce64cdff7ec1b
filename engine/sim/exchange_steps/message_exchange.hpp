/// Exchanges in the simulation of steps in which members send messages one by one. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/sim/exchange_steps/step_exchange.hpp"

namespace starling::sim {

/// Simulates each message with a tensor by two events: it begins to arrive, and it has arrived. A
/// receiver's port takes messages in the order in which they begin to arrive.
class MessageExchange : public StepExchange {
 public:
  void wake(std::uint32_t id, Time now) final;
  [[nodiscard]] ExchangeFigures figures() const override;

 protected:
  struct Message {
    MemberId from = 0;
    MemberId to = 0;
    /// 0: the message has no tensor.
    double bytes = 0;
    /// The kind of the message; the exchange defines the kinds.
    std::uint8_t kind = 0;
    /// Gossip only: the step of a push, the weight that the push carries, and the sender's number.
    Step step = 0;
    double weight = 0;
    double value = 0;
  };

  /// `members` is the number of members that have ports.
  MessageExchange(const ExchangeStepOptions& options, std::size_t members, std::uint64_t seed);

  void send(const Message& message, Time now);
  /// Called when the message has arrived.
  virtual void receive(const Message& message, Time now) = 0;
  void finish(MemberId worker) { effects.done.push_back(worker); }

  [[nodiscard]] const ExchangeStepOptions& options() const noexcept { return options_; }

 private:
  struct InFlight {
    Message message;
    Time left_at{};
    bool is_arriving = false;
  };

  [[nodiscard]] Time port_time(const Message& message) const;

  ExchangeStepOptions options_;
  Random latency_random_;
  /// By member: when its port is free to send, and to receive.
  std::vector<Time> sends_until_;
  std::vector<Time> receives_until_;
  /// The messages that have not arrived, and the positions in in_flight_ that hold none.
  std::vector<InFlight> in_flight_;
  std::vector<std::uint32_t> free_;
  double bytes_ = 0;
  std::uint64_t messages_ = 0;
  Time longest_{};
};

}  // namespace starling::sim
