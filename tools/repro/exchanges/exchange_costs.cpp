#include <algorithm>
#include <cmath>
#include <string>

#include "starling/engine/exchange/collective/algorithms/choice.hpp"
#include "starling/engine/exchange/collective/packing.hpp"
#include "starling/engine/exchange/collective/rings.hpp"
#include "starling/tools/repro/exchanges/exchange_study.hpp"

namespace starling::program {
namespace {

using collective::Rank;

/// Returns the cost of an algorithm without latency, for a vector of one byte. So bytes are
/// multiples of the vector, and seconds are multiples of the time of a vector over a port of
/// bandwidth 1.
collective::Cost cost_of(const collective::Algorithm& algorithm, std::size_t members,
                         double bandwidth = 1) {
  const collective::Network network{.latency_s = 0, .bytes_per_second = bandwidth};
  return collective::make_plan(algorithm, {.members = members, .bytes = 1}, network).value().cost;
}

void add_cubes(ExchangeStudy& study) {
  for (std::size_t k = 2; k <= 4; ++k)
    for (std::size_t base = 2;; ++base) {
      const std::size_t members = collective::BCube::power(base, k);
      if (members > collective::members_max) break;
      const collective::Cost cube = cost_of(collective::BCube{k}, members);
      const collective::Cost parts = cost_of(collective::Parts{}, members);
      const double part = 1.0 / static_cast<double>(k);
      study.cubes.push_back({.base = base,
                             .k = k,
                             .members = members,
                             .port_share = cube.port_bytes,
                             .parts_port_share = parts.port_bytes,
                             .time = cube.unpipelined_seconds,
                             .parts_time = parts.unpipelined_seconds,
                             .time_of_equal_bandwidth =
                                 cost_of(collective::BCube{k}, members, part).unpipelined_seconds});
    }
}

TopologyRates rates_of(std::string name, const collective::Topology& topology) {
  TopologyRates rates{.name = std::move(name),
                      .trees_rate = static_cast<double>(collective::topology_lanes_max),
                      .rings_rate = static_cast<double>(collective::most_rings(topology))};
  for (Rank root = 0; root < topology.members; ++root) {
    const collective::Packing packing = collective::pack_trees(topology, root);
    rates.trees_rate = std::min(rates.trees_rate, packing.rate);
    rates.trees = std::max(rates.trees, packing.trees.size());
  }
  return rates;
}

/// Adds all devices of a DGX-1V, then the six of them that gain most by trees.
void add_topologies(ExchangeStudy& study) {
  const auto dgx = collective::Topology::parse(collective::dgx_1v, "dgx-1v").value();
  study.topologies.push_back(rates_of("all 8 devices", dgx));
  TopologyRates best;
  for (Rank a = 0; a < dgx.members; ++a)
    for (Rank b = a + 1; b < dgx.members; ++b) {
      std::vector<Rank> kept;
      std::string name = "devices";
      for (Rank device = 0; device < dgx.members; ++device)
        if (device != a && device != b) {
          kept.push_back(device);
          name += " " + std::to_string(device);
        }
      const collective::Topology part = collective::part_of(dgx, kept);
      if (collective::most_rings(part) == 0) continue;
      TopologyRates rates = rates_of(name, part);
      const auto gain = [](const TopologyRates& of) {
        return of.rings_rate > 0 ? of.trees_rate / of.rings_rate : 0;
      };
      if (gain(rates) > gain(best)) best = std::move(rates);
    }
  study.topologies.push_back(std::move(best));
}

}  // namespace

void compute_costs(ExchangeStudy& study) {
  for (std::size_t members = 2; members <= 64; ++members) {
    const auto n = static_cast<double>(members);
    const double least = 2 * (n - 1) / n;
    const double bytes = cost_of(collective::Ring{}, members).port_bytes;
    study.ring_error = std::max(study.ring_error, std::abs(bytes / least - 1));
  }
  add_cubes(study);
  add_topologies(study);
}

}  // namespace starling::program
