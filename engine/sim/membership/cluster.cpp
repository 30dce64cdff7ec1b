#include "starling/engine/sim/membership/cluster.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/core/wire_size.hpp"

namespace starling::sim {
namespace {

std::string address_of(NodeId node) { return "node:" + std::to_string(node); }

NodeId node_at(const std::string& address) {
  NodeId node = 0;
  constexpr std::size_t prefix_size = sizeof "node:" - 1;
  std::from_chars(address.data() + prefix_size, address.data() + address.size(), node);
  return node;
}

}  // namespace

Cluster::Cluster(ClusterOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      network_(options_.link, mix(seed)),
      random_(Random::stream(seed, 1)) {}

NodeId Cluster::start(const std::vector<NodeId>& seeds) {
  nodes_.emplace_back();
  const auto node = static_cast<NodeId>(nodes_.size() - 1);
  start_process(node, seeds);
  return node;
}

void Cluster::start_many(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    start(nodes_.empty() ? std::vector<NodeId>{} : std::vector<NodeId>{0});
}

void Cluster::restart(NodeId node, const std::vector<NodeId>& seeds) {
  STARLING_CHECK(!runs(node));
  start_process(node, seeds);
}

void Cluster::start_process(NodeId node, const std::vector<NodeId>& seeds) {
  core::MembershipOptions options = options_.membership;
  do options.self.id = random_();
  while (options.self.id == 0);
  options.self.address = address_of(node);
  options.self.name = "n" + std::to_string(node);
  options.self.workers = options_.workers_each;
  options.seeds.clear();
  for (const NodeId seed : seeds) options.seeds.push_back(address_of(seed));
  nodes_[node] = {};
  nodes_[node].id = options.self.id;
  nodes_[node].process = std::make_unique<core::Membership>(std::move(options), random_());
  run_event(node, [](core::Membership& process, const auto& context) { process.start(context); });
}

void Cluster::crash(NodeId node) { nodes_[node].process.reset(); }

void Cluster::leave(NodeId node) {
  run_event(node, [](core::Membership& process, const auto& context) { process.leave(context); });
}

void Cluster::offer(NodeId node, std::uint32_t workers) {
  run_event(node, [=](core::Membership& process, const auto& context) {
    process.offer(context, workers);
  });
}

void Cluster::freeze(NodeId node, Time duration) {
  Time& until = nodes_[node].frozen_until;
  until = std::max(until, now() + duration);
}

void Cluster::slow(NodeId node, Distribution running, Distribution frozen) {
  nodes_[node].running = std::move(running);
  nodes_[node].frozen = std::move(frozen);
  queue_.push(now() + nodes_[node].running.draw(random_),
              {.kind = Kind::freeze, .node = node, .process_id = nodes_[node].id});
}

void Cluster::freeze_by_turns(NodeId node) {
  const Time frozen = nodes_[node].frozen.draw(random_);
  freeze(node, frozen);
  queue_.push(now() + frozen + nodes_[node].running.draw(random_),
              {.kind = Kind::freeze, .node = node, .process_id = nodes_[node].id});
}

void Cluster::run(Time duration) {
  const Time end = now() + duration;
  while (!queue_.empty() && queue_.next_at() <= end) handle(queue_.pop());
  queue_.advance(end);
}

std::optional<Time> Cluster::run_until(const std::function<bool()>& condition, Time limit) {
  constexpr Time check_interval{10'000'000};
  const Time started_at = now();
  while (!condition()) {
    if (now() - started_at >= limit) return std::nullopt;
    run(check_interval);
  }
  return now() - started_at;
}

void Cluster::handle(Event event) {
  Node& node = nodes_[event.node];
  if (!node.process || (event.process_id != 0 && event.process_id != node.id)) return;
  if (event.kind == Kind::freeze) return freeze_by_turns(event.node);
  // Events for a frozen process keep their order, because the queue returns events of the same time
  // in the order of insertion.
  if (const Time until = node.frozen_until; now() < until)
    return queue_.push(until, std::move(event));
  run_event(event.node, [&](core::Membership& process, const auto& context) {
    if (event.kind == Kind::message)
      process.on(context, *event.message);
    else
      process.on_timer(context);
  });
}

template <class Call>
void Cluster::run_event(NodeId node, Call call) {
  std::vector<core::MembershipEffect> effects;
  call(*nodes_[node].process, core::MembershipContext{now(), random_, effects});
  for (auto& effect : effects) {
    if (auto* send = std::get_if<core::MembershipSend>(&effect)) {
      const std::size_t bytes = wire_size(send->message);
      ++messages_;
      bytes_ += bytes;
      const NodeId to = node_at(send->address);
      const auto message =
          std::make_shared<const core::MembershipMessage>(std::move(send->message));
      for (const Time at : network_.send(now(), node, to, bytes))
        queue_.push(at, {.kind = Kind::message, .node = to, .message = message});
    } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
      queue_.push(timer->at, {.kind = Kind::timer, .node = node, .process_id = nodes_[node].id});
    } else if (auto* changed = std::get_if<core::NodeChanged>(&effect)) {
      noticed_.push_back({now(), node, std::move(changed->record)});
    } else if (std::holds_alternative<core::HasLeft>(effect)) {
      nodes_[node].has_left = true;
    }
  }
}

std::optional<core::NodeState> Cluster::state(NodeId observer, NodeId subject) const {
  const core::NodeEntry* entry = nodes_[observer].process->nodes().find(nodes_[subject].id);
  if (entry == nullptr) return std::nullopt;
  return entry->record.state;
}

bool Cluster::agree(const std::vector<NodeId>& nodes) const {
  return std::ranges::all_of(nodes, [&](NodeId observer) {
    const core::NodeList& known = nodes_[observer].process->nodes();
    const auto knows = [&](NodeId subject) {
      if (subject == observer) return true;
      const core::NodeEntry* entry = known.find(nodes_[subject].id);
      return entry != nullptr && entry->record == nodes_[subject].process->self();
    };
    return known.live().size() + 1 == nodes.size() && std::ranges::all_of(nodes, knows);
  });
}

bool Cluster::agree() const {
  std::vector<NodeId> running;
  for (NodeId node = 0; node < nodes_.size(); ++node)
    if (runs(node) && process(node).self().state == core::NodeState::alive) running.push_back(node);
  return agree(running);
}

bool Cluster::all_suspect(const std::vector<NodeId>& observers,
                          const std::vector<NodeId>& subjects) const {
  return std::ranges::all_of(observers, [&](NodeId observer) {
    return std::ranges::all_of(subjects, [&](NodeId subject) {
      const auto known = state(observer, subject);
      return known == core::NodeState::suspect || known == core::NodeState::dead;
    });
  });
}

core::MembershipCounts Cluster::counts() const {
  core::MembershipCounts sum;
  for (const Node& node : nodes_) {
    if (!node.process) continue;
    const core::MembershipCounts& one = node.process->counts();
    sum.probes += one.probes;
    sum.probes_failed += one.probes_failed;
    sum.suspicions += one.suspicions;
    sum.deaths += one.deaths;
    sum.refutations += one.refutations;
  }
  return sum;
}

}  // namespace starling::sim
