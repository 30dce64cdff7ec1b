#include "starling/engine/sim/exchange_steps/owner_steps.hpp"

namespace starling::sim {

OwnerSteps::OwnerSteps(const ExchangeStepOptions& options, core::Mode mode, std::size_t workers,
                       Step every, std::uint64_t seed)
    : MessageExchange(options, workers + (core::has_servers(mode) ? options.servers : 0), seed),
      every_(every),
      owners_(owners(options, mode, workers)),
      first_owner_(core::has_servers(mode) ? static_cast<MemberId>(workers) : 0),
      workers_(workers) {}

bool OwnerSteps::read(MemberId worker, Step, Time now) {
  // Under the elastic exchange, a worker reads its own copy of the model.
  return every_ > 0 || send_to_owners(worker, pull, 0, now);
}

bool OwnerSteps::write(MemberId worker, Step step, Time now) {
  if (every_ > 0 && step % every_ > 0) return true;
  // The elastic exchange first pulls the center; receive() pushes when all of it has arrived.
  workers_[worker].pushes_next = every_ > 0;
  if (every_ > 0) return send_to_owners(worker, pull, 0, now);
  return send_to_owners(worker, push, options().bytes / static_cast<double>(owners_), now);
}

bool OwnerSteps::send_to_owners(MemberId worker, Kind kind, double bytes, Time now) {
  for (std::size_t i = 1; i <= owners_; ++i) {
    const auto owner = static_cast<MemberId>(first_owner_ + (worker + i) % owners_);
    if (owner == worker) continue;
    send({.from = worker, .to = owner, .bytes = bytes, .kind = kind}, now);
    ++workers_[worker].unanswered;
  }
  return workers_[worker].unanswered == 0;
}

void OwnerSteps::receive(const Message& message, Time now) {
  // The bytes of one owner's part of the model.
  const double part = options().bytes / static_cast<double>(owners_);
  if (message.kind == pull)
    return send({.from = message.to, .to = message.from, .bytes = part, .kind = values}, now);
  if (message.kind == push)
    return send({.from = message.to, .to = message.from, .kind = received}, now);
  // An owner has answered a worker with its values, or has acknowledged a push.
  Worker& worker = workers_[message.to];
  if (--worker.unanswered > 0) return;
  if (!worker.pushes_next) return finish(message.to);
  worker.pushes_next = false;
  send_to_owners(message.to, push, part, now);
}

}  // namespace starling::sim
