#include "starling/engine/sim/scaling/scaling.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/check.hpp"

namespace starling::scaling {
namespace {

/// Returns the samples of the node that has most of them.
double samples_of_node(const Job& job) {
  return std::ceil(static_cast<double>(job.batch) / static_cast<double>(job.nodes));
}

/// Part-reduce and part-broadcast is an exchange with two `phases`; each of its halves, a
/// reduce-scatter or an all-gather, has one. In a phase a port sends each other member one chunk.
Exchange make_exchange(const Job& job, double phases, std::size_t members, double bytes) {
  Exchange exchange{.members = members, .bytes = bytes};
  const double chunk = bytes / static_cast<double>(members);
  exchange.slices =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(chunk / message_bytes_max)));
  const collective::Network& network = job.machine.network;
  exchange.seconds =
      phases * static_cast<double>(members - 1) *
      (static_cast<double>(exchange.slices) * network.latency_s + chunk / network.bytes_per_second);
  return exchange;
}

LayerPlan make_plan(const Job& job, const LayerLoad& layer, std::size_t groups) {
  const std::size_t in_group = job.nodes / groups;
  const auto m = static_cast<double>(in_group);
  const double gradient_bytes = element_bytes * layer.parameters / m;
  const double input_bytes = element_bytes * layer.inputs * samples_of_node(job) * m;
  return {.groups = groups,
          .pass_seconds = layer.pass_flops() * samples_of_node(job) / job.machine.flops_per_second,
          .gradient = make_exchange(job, 2, groups, gradient_bytes),
          .activations = make_exchange(job, 1, in_group, input_bytes)};
}

/// Changes the plan of one layer to the one with which the step is shortest. Returns false if the
/// layer had that plan already.
bool improve(const Job& job, std::vector<LayerPlan>& plans, std::size_t layer) {
  const std::size_t former = plans[layer].groups;
  LayerPlan best = plans[layer];
  double least = predict(job, plans).seconds;
  for (std::size_t groups = job.nodes; groups >= 1; --groups) {
    if (job.nodes % groups != 0 || job.nodes / groups > job.layers[layer].features) continue;
    plans[layer] = make_plan(job, job.layers[layer], groups);
    const double seconds = predict(job, plans).seconds;
    if (seconds >= least) continue;
    least = seconds;
    best = plans[layer];
  }
  plans[layer] = best;
  return best.groups != former;
}

/// The port of a node as the prediction sees it: it carries the waiting exchange with the lowest
/// priority number, and interrupts others for it.
class Port {
 public:
  explicit Port(std::size_t exchanges) : remaining_(exchanges) {}

  /// Records that the exchange can begin now and needs the port for `seconds`.
  void begin(std::size_t exchange, double seconds) { remaining_[exchange] = seconds; }
  /// Carries the waiting exchanges for `seconds`.
  void pass(double seconds) {
    for (double& left : remaining_) {
      const double spent = std::min(left, seconds);
      left -= spent;
      seconds -= spent;
    }
  }
  /// Returns how long it takes until the exchange is finished.
  [[nodiscard]] double seconds_to(std::size_t exchange) const {
    if (remaining_[exchange] <= 0) return 0;
    double seconds = 0;
    for (std::size_t i = 0; i <= exchange; ++i) seconds += remaining_[i];
    return seconds;
  }

 private:
  std::vector<double> remaining_;
};

}  // namespace

double groups_by_bytes(const Job& job, const LayerLoad& layer) {
  const auto nodes = static_cast<double>(job.nodes);
  const double groups =
      std::sqrt(nodes * static_cast<double>(job.batch) * layer.inputs / layer.parameters);
  return std::clamp(groups, 1.0, nodes);
}

std::vector<LayerPlan> plan_layers(const Job& job) {
  STARLING_CHECK(job.nodes >= 1 && job.nodes <= nodes_max && job.batch >= job.nodes);
  std::vector<LayerPlan> plans;
  for (const LayerLoad& layer : job.layers) plans.push_back(make_plan(job, layer, job.nodes));
  // Each change shortens the step, so this ends.
  for (bool has_changed = !job.is_data_parallel; has_changed;) {
    has_changed = false;
    for (std::size_t l = plans.size(); l-- > 0;) has_changed |= improve(job, plans, l);
  }
  return plans;
}

StepTime predict(const Job& job, std::span<const LayerPlan> plans) {
  STARLING_CHECK(plans.size() == job.layers.size());
  Port port{plans.size()};
  StepTime time;
  const auto compute = [&](double seconds) {
    port.pass(seconds);
    time.seconds += seconds;
    time.compute_seconds += seconds;
  };
  // During such an exchange the node computes nothing, and the other exchanges wait.
  const auto exchange = [&](const Exchange& blocking) { time.seconds += blocking.seconds; };
  for (std::size_t l = plans.size(); l-- > 0;) {
    compute(plans[l].pass_seconds);
    port.begin(l, plans[l].gradient.seconds);
    compute(plans[l].pass_seconds);
    exchange(plans[l].activations);
  }
  for (std::size_t l = 0; l < plans.size(); ++l) {
    const double wait = port.seconds_to(l);
    port.pass(wait);
    time.seconds += wait;
    exchange(plans[l].activations);
    compute(plans[l].pass_seconds);
  }
  return time;
}

}  // namespace starling::scaling
