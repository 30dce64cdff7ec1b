#include "starling/tools/cluster/follow/trace_collector.hpp"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/job/trace_buffer.hpp"

namespace starling::program {

void TraceCollector::collect(const Addresses& nodes) {
  if (Clock::now() >= asked_at_ + interval_min) (void)fetch_once(nodes);
}

void TraceCollector::collect_rest(const Addresses& nodes) {
  const auto deadline = Clock::now() + rest_timeout;
  while (fetch_once(nodes) && Clock::now() < deadline) {
  }
}

bool TraceCollector::fetch_once(const Addresses& nodes) {
  if (traces_.is_full() || nodes.empty()) return false;
  asked_at_ = Clock::now();
  std::vector<std::pair<std::string, wire::RequestBody>> requests;
  for (const auto& [node, address] : nodes)
    requests.emplace_back(address, wire::GetTrace{job_, traces_.next_of(node)});
  const auto replies = client_.ask_each(requests, reply_timeout, grace);
  bool may_have_more = false;
  auto node = nodes.begin();
  for (const auto& reply : replies) {
    const wire::NodeId asked = (node++)->first;
    const auto* part = reply ? std::get_if<wire::TraceIntervals>(&reply->body) : nullptr;
    // A node that was started anew has the address of its predecessor, but numbers its intervals
    // from 0.
    if (part == nullptr || part->node != asked) continue;
    traces_.receive(*part, reply->asked_at.time_since_epoch(),
                    reply->received_at.time_since_epoch());
    may_have_more = may_have_more || part->intervals.size() >= actor::TraceBuffer::read_max;
  }
  return may_have_more;
}

}  // namespace starling::program
