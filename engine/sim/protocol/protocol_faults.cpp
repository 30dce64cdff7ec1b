/// How a Protocol schedules faults, and makes them happen.
#include <algorithm>
#include <functional>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/sim/protocol/protocol_events.hpp"

namespace starling::sim {

void Protocol::at(Time at, std::function<void()> action) { queue_.push(at, std::move(action)); }

void Protocol::crash(MemberId id, Time at, Time downtime) {
  this->at(at, [this, id, downtime] { lose_driver(id, downtime); });
}

void Protocol::lose_driver(MemberId id, Time downtime) {
  driver_lost_[id] = true;
  ++incarnation_[id];
  at(now() + downtime, [this, id] {
    if (!driver_lost_[id] || dead_[id]) return;
    driver_lost_[id] = false;
    run_worker(id, &core::Worker::resume);
    // Repeats the notices of deaths, because the worker missed those that came while it had no
    // driver.
    for (MemberId other = 0; other < options_.workers; ++other)
      if (known_deaths_.contains({id, other}))
        run_worker(id, [other](core::Worker& worker, const core::Context& c) {
          worker.on_left(c, other);
        });
  });
}

void Protocol::freeze(NodeId node, Time at, Time duration) {
  this->at(at, [this, node, duration] {
    frozen_until_.at(node) = std::max(frozen_until_[node], now() + duration);
  });
}

void Protocol::stop(Time at) {
  this->at(at, [this] {
    if (coordinator_) return send(observer(), {core::ToCoordinator{}, core::Stop{}});
    for (MemberId id = 0; id < options_.workers; ++id)
      send(observer(), {core::ToWorker{id}, core::Stop{}});
  });
}

void Protocol::die(MemberId id, Time at) {
  STARLING_CHECK(core::has_servers(options_.mode));
  this->at(at, [this, id] {
    dead_[id] = true;
    ++incarnation_[id];
    follow_step(id);
    for (NodeId node = 0; node < nodes(); ++node) {
      if (node == id) continue;
      const Time delay = 10 * options_.link.latency.draw(news_random_);
      this->at(now() + delay, [this, node, id] { notice_death(node, id); });
    }
  });
}

void Protocol::notice_death(NodeId node, MemberId dead) {
  known_deaths_.insert({node, dead});
  const auto left = [dead](auto& core, const core::Context& context) {
    core.on_left(context, dead);
  };
  if (node < options_.workers)
    run_worker(node, left);
  else if (node < options_.workers + shards_.size())
    run_event(node, shards_[node - options_.workers], owner_random_, left);
  else if (node != observer())
    run_event(node, *coordinator_, coordinator_random_, left);
}

}  // namespace starling::sim
