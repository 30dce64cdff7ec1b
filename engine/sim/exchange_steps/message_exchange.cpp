#include "starling/engine/sim/exchange_steps/message_exchange.hpp"

#include <algorithm>

#include "starling/base/to_duration.hpp"

namespace starling::sim {

MessageExchange::MessageExchange(const ExchangeStepOptions& options, std::size_t members,
                                 std::uint64_t seed)
    : options_(options),
      latency_random_(Random::stream(seed, 5)),
      sends_until_(members),
      receives_until_(members) {}

Time MessageExchange::port_time(const Message& message) const {
  if (options_.bytes_per_second == 0) return Time{};
  return to_duration(1e9 * message.bytes / options_.bytes_per_second);
}

void MessageExchange::send(const Message& message, Time now) {
  Time left_at = now;
  if (message.bytes > 0) {
    Time& sends_until = sends_until_[message.from];
    left_at = std::max(now, sends_until);
    sends_until = left_at + port_time(message);
    bytes_ += message.bytes;
    ++messages_;
  }
  auto slot = static_cast<std::uint32_t>(in_flight_.size());
  if (free_.empty()) {
    in_flight_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  in_flight_[slot] = {message, left_at};
  effects.wakes.push_back({left_at + options_.latency.draw(latency_random_), slot});
}

void MessageExchange::wake(std::uint32_t id, Time now) {
  InFlight& arriving = in_flight_[id];
  if (const Time time = port_time(arriving.message); !arriving.is_arriving && time > Time{}) {
    arriving.is_arriving = true;
    Time& receives_until = receives_until_[arriving.message.to];
    receives_until = std::max(now, receives_until) + time;
    return effects.wakes.push_back({receives_until, id});
  }
  if (arriving.message.bytes > 0) longest_ = std::max(longest_, now - arriving.left_at);
  const Message message = arriving.message;
  free_.push_back(id);
  receive(message, now);
}

ExchangeFigures MessageExchange::figures() const {
  return {.bytes = bytes_, .messages = messages_, .longest_message = longest_};
}

}  // namespace starling::sim
