#include "starling/engine/sim/network.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"

namespace starling::sim {

Result<void> check(const LinkOptions& options) {
  const auto refuse = [](const char* name, double value, const char* valid) {
    return Error{std::string{name} + "=" + print_number(value) + "; " + valid};
  };
  if (!(options.loss >= 0 && options.loss < 1))
    return refuse("loss", options.loss, "valid: 0 to below 1");
  if (!(options.duplication >= 0 && options.duplication <= 1))
    return refuse("duplication", options.duplication, "valid: 0 to 1");
  if (!(options.reordering >= 0 && options.reordering <= 1))
    return refuse("reordering", options.reordering, "valid: 0 to 1");
  if (!(options.bytes_per_second >= 0 && std::isfinite(options.bytes_per_second)))
    return refuse("bandwidth", options.bytes_per_second, "valid: bytes a second, 0 for no limit");
  return {};
}

Network::Network(const LinkOptions& defaults, std::uint64_t seed)
    : default_options_(defaults), random_(seed) {
  STARLING_CHECK(check(defaults).ok());
}

void Network::set(NodeId from, NodeId to, const LinkOptions& options) {
  STARLING_CHECK(check(options).ok());
  link_options_.insert_or_assign({from, to}, options);
}

void Network::block(std::span<const Link> links) { blocked_.insert(links.begin(), links.end()); }

void Network::partition(std::span<const NodeId> a, std::span<const NodeId> b) {
  for (const NodeId one : a)
    for (const NodeId other : b) {
      if (one == other) continue;
      block(one, other);
      block(other, one);
    }
}

void Network::heal(std::span<const Link> links) {
  for (const Link& link : links) blocked_.erase(link);
}

Arrivals Network::send(Time now, NodeId from, NodeId to, std::size_t bytes) {
  if (from == to) return {{now}, 1};
  const Link link{from, to};
  const LinkOptions& options = options_of(link);
  ++counts_.sent;
  // A lost packet occupies the link and draws as many random numbers as any other.
  const Time departed = depart(now, link, options, bytes);
  const bool is_lost = options.loss > 0 && random_.real() < options.loss;
  const bool is_duplicated = options.duplication > 0 && random_.real() < options.duplication;
  Arrivals arrivals;
  arrivals.times[arrivals.count++] = draw_arrival(departed, options);
  if (is_duplicated) arrivals.times[arrivals.count++] = draw_arrival(departed, options);
  if (is_lost || is_blocked(from, to)) {
    ++counts_.lost;
    return {};
  }
  counts_.duplicated += is_duplicated ? 1 : 0;
  return arrivals;
}

const LinkOptions& Network::options_of(const Link& link) const {
  if (link_options_.empty()) return default_options_;
  const auto found = link_options_.find(link);
  return found == link_options_.end() ? default_options_ : found->second;
}

Time Network::depart(Time now, const Link& link, const LinkOptions& options, std::size_t bytes) {
  if (options.bytes_per_second == 0) return now;
  Time& free_at = free_at_[link];
  const double seconds = static_cast<double>(bytes) / options.bytes_per_second;
  free_at = std::max(free_at, now) + to_duration(seconds * 1e9);
  return free_at;
}

Time Network::draw_arrival(Time departed, const LinkOptions& options) {
  Time at = departed + options.latency.draw(random_);
  if (options.reordering > 0 && random_.real() < options.reordering)
    at += options.delay.draw(random_);
  return at;
}

}  // namespace starling::sim
