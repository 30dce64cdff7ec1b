#include "starling/engine/sim/exchange_steps/leader_steps.hpp"

#include <algorithm>

namespace starling::sim {

LeaderSteps::LeaderSteps(const ExchangeStepOptions& options, const core::LeaderSettings& settings,
                         std::size_t workers, std::uint64_t seed)
    : MessageExchange(options, workers, seed),
      settings_(settings),
      seed_(seed),
      awaited_(workers) {}

MemberId LeaderSteps::leader_of(MemberId first, std::size_t size, Step step) const {
  return first + static_cast<MemberId>(Random::stream(seed_, 7, step, first).below(size));
}

bool LeaderSteps::write(MemberId worker, Step step, Time now) {
  if (step % settings_.every > 0) return true;
  const bool is_global = step % settings_.global_every == 0;
  const std::size_t size = is_global ? awaited_.size() : settings_.group;
  const auto first = static_cast<MemberId>(worker / size * size);
  const std::size_t members = std::min(size, awaited_.size() - first);
  if (members == 1) return true;
  const MemberId leader = leader_of(first, members, step);
  const MemberId other = worker == first ? first + 1 : first;
  send({.from = worker, .to = other, .kind = report}, now);
  awaited_[worker] = 1;
  if (leader == worker) return false;
  send({.from = worker, .to = leader, .kind = request}, now);
  awaited_[worker] = 2;
  return false;
}

void LeaderSteps::receive(const Message& message, Time now) {
  if (message.kind == report)
    return send({.from = message.to, .to = message.from, .kind = received}, now);
  if (message.kind == request)
    return send({.from = message.to, .to = message.from, .bytes = options().bytes, .kind = model},
                now);
  if (--awaited_[message.to] == 0) finish(message.to);
}

}  // namespace starling::sim
