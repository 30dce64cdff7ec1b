#include "starling/engine/core/membership/peer_sampler.hpp"

#include <algorithm>
#include <utility>

namespace starling::core {

void PeerSampler::set(const NodeRecord& record) {
  const std::size_t wanted = is_live(record.state) ? record.workers : 0;
  auto& places = places_[record.id];
  while (places.size() > wanted) {
    swap(places.back(), list_.size() - 1);
    places.pop_back();
    list_.pop_back();
  }
  while (places.size() < wanted && list_.size() < workers_max_) {
    const auto index = static_cast<std::uint32_t>(places.size());
    places.push_back(static_cast<std::uint32_t>(list_.size()));
    list_.push_back({record.id, index});
  }
  if (places.empty()) places_.erase(record.id);
}

void PeerSampler::draw(WorkerAt self, std::size_t beta, Random& random,
                       std::vector<WorkerAt>& drawn) {
  drawn.clear();
  std::size_t others = list_.size();
  if (const auto own = places_.find(self.member);
      own != places_.end() && self.index < own->second.size())
    swap(own->second[self.index], --others);
  beta = std::min(beta, others);
  for (std::size_t i = 0; i < beta; ++i) {
    swap(i, i + random.below(others - i));
    drawn.push_back(list_[i]);
  }
}

void PeerSampler::swap(std::size_t a, std::size_t b) {
  if (a == b) return;
  std::swap(list_[a], list_[b]);
  places_[list_[a].member][list_[a].index] = static_cast<std::uint32_t>(a);
  places_[list_[b].member][list_[b].index] = static_cast<std::uint32_t>(b);
}

}  // namespace starling::core
