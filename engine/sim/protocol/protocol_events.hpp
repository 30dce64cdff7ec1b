/// Internal: how a Protocol runs an event of a core and executes its effects. Only the sources of
/// Protocol include this file.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <variant>

#include "starling/engine/sim/protocol/protocol.hpp"

namespace starling::sim {

/// Runs one event of a core that is not a worker. The effects of such a core are only messages and
/// the coordinator's timers.
template <class Core, class Call>
void Protocol::run_event(NodeId node, Core& core, Random& random, Call call) {
  core::Effects effects;
  std::invoke(call, core, core::Context{now(), random, effects});
  for (core::Effect& effect : effects) {
    if (auto* addressed = std::get_if<core::Send>(&effect))
      send(node, std::move(*addressed));
    else
      queue_.push(std::get<core::SetTimer>(effect).at, CoordinatorTimer{});
  }
}

/// Runs one event of a worker, which may be a part of a peer.
template <class Call>
void Protocol::run_worker(MemberId id, Call call) {
  if (driver_lost_[id] || dead_[id]) return;
  core::Effects effects;
  std::invoke(call, worker(id), core::Context{now(), random_[id], effects});
  follow_step(id);
  for (core::Effect& effect : effects) {
    if (interrupt)
      if (const auto downtime = interrupt(id, effect)) return lose_driver(id, *downtime);
    execute(id, effect);
  }
}

}  // namespace starling::sim
