#include "starling/engine/sim/exchange_steps/gossip_steps.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/gossip/graph.hpp"
#include "starling/engine/exchange/gossip/push_weight.hpp"

namespace starling::sim {

GossipSteps::GossipSteps(const ExchangeStepOptions& options, const core::GossipSettings& settings,
                         std::size_t workers, std::uint64_t seed)
    : MessageExchange(options, workers, seed),
      settings_(settings),
      random_(Random::stream(seed, 6)),
      workers_(workers) {
  for (Worker& worker : workers_) {
    worker.value = random_.normal();
    average_ += worker.value / static_cast<double>(workers);
  }
  first_squared_distance_ = squared_distance();
}

bool GossipSteps::write(MemberId worker, Step step, Time now) {
  Worker& self = workers_[worker];
  const double sent = core::push_weight(self.weight, core::GossipExchange::first_weight_min);
  self.weight -= sent;
  weight_in_flight_ += sent;
  const auto target = core::gossip_target(settings_.graph, worker, workers_.size(), step, random_);
  send({.from = worker,
        .to = static_cast<MemberId>(target),
        .bytes = sent > 0 ? options().bytes : 0,
        .kind = push_sum,
        .step = step,
        .weight = sent,
        .value = self.value},
       now);
  self.sending.push_back(step);
  if (counts(self, step)) return true;
  self.writing = step;
  return false;
}

/// True if others have taken what the worker sent in all steps up to `step` but the last `lag`
/// ones.
bool GossipSteps::counts(const Worker& worker, Step step) const {
  return worker.sending.empty() || worker.sending.front() + settings_.steps_in_flight_max > step;
}

void GossipSteps::receive(const Message& message, Time now) {
  Worker& self = workers_[message.to];
  if (message.kind == push_sum) {
    if (message.weight > 0) {
      self.weight += message.weight;
      weight_in_flight_ -= message.weight;
      self.value += message.weight / self.weight * (message.value - self.value);
    }
    return send({.from = message.to, .to = message.from, .kind = received, .step = message.step},
                now);
  }
  std::erase(self.sending, message.step);
  if (!self.writing || !counts(self, *self.writing)) return;
  self.writing.reset();
  finish(message.to);
}

double GossipSteps::squared_distance() const {
  double sum = 0;
  for (const Worker& worker : workers_)
    sum += (worker.value - average_) * (worker.value - average_);
  return sum;
}

ExchangeFigures GossipSteps::figures() const {
  ExchangeFigures figures = MessageExchange::figures();
  double weight = weight_in_flight_;
  for (const Worker& worker : workers_) weight += worker.weight;
  const auto n = static_cast<double>(workers_.size());
  STARLING_CHECK(std::abs(weight - n) < 1e-6 * n);
  figures.weight = weight;
  figures.mixing_error = std::sqrt(squared_distance() / first_squared_distance_);
  return figures;
}

}  // namespace starling::sim
