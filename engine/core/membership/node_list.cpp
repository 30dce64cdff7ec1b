#include "starling/engine/core/membership/node_list.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {

MemberEntry* NodeList::find(NodeId id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const MemberEntry* NodeList::find(NodeId id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

MemberEntry& NodeList::insert(NodeRecord record) {
  const NodeId id = record.id;
  const auto [place, fresh] = entries_.try_emplace(id, MemberEntry{.record = std::move(record)});
  STARLING_CHECK(fresh);
  ids_[MemberDigest::bucket(id)].push_back(id);
  enlist(place->second);
  return place->second;
}

void NodeList::update(MemberEntry& entry, NodeRecord record) {
  STARLING_CHECK(entry.record.id == record.id);
  // A suspicion does not change when a member is probed next.
  const bool moves = is_live(entry.record.state) != is_live(record.state) ||
                     (!is_live(record.state) && entry.record.state != record.state);
  if (moves) {
    strike(entry);
    entry.record = std::move(record);
    enlist(entry);
  } else {
    digest_.toggle(entry.record);
    remove_name(entry.record);
    entry.record = std::move(record);
    add_name(entry.record);
    digest_.toggle(entry.record);
  }
}

void NodeList::erase(NodeId id) {
  const MemberEntry* entry = find(id);
  if (entry == nullptr) return;
  strike(*entry);
  std::erase(ids_[MemberDigest::bucket(id)], id);
  entries_.erase(id);
}

const MemberEntry* NodeList::find_named(const std::string& name, NodeId but) const {
  const auto [begin, end] = names_.equal_range(name);
  const auto found = std::find_if(begin, end, [&](const auto& one) { return one.second != but; });
  return found == end ? nullptr : find(found->second);
}

void NodeList::add_name(const NodeRecord& record) {
  if (is_live(record.state) && !record.name.empty()) names_.emplace(record.name, record.id);
}

void NodeList::remove_name(const NodeRecord& record) {
  const auto [begin, end] = names_.equal_range(record.name);
  const auto found =
      std::find_if(begin, end, [&](const auto& one) { return one.second == record.id; });
  if (found != end) names_.erase(found);
}

void NodeList::enlist(MemberEntry& entry) {
  digest_.toggle(entry.record);
  add_name(entry.record);
  if (entry.record.state == NodeState::left) return;
  auto& list = is_live(entry.record.state) ? live_ : dead_;
  entry.place = list.size();
  list.push_back(entry.record.id);
}

void NodeList::strike(const MemberEntry& entry) {
  digest_.toggle(entry.record);
  remove_name(entry.record);
  if (entry.record.state == NodeState::left) return;
  const bool live = is_live(entry.record.state);
  auto& list = live ? live_ : dead_;
  std::size_t gap = entry.place;
  const auto fill = [&](std::size_t from) {
    if (from == gap) return;
    list[gap] = list[from];
    find(list[gap])->place = gap;
    gap = from;
  };
  if (live && gap < probed_) fill(--probed_);
  fill(list.size() - 1);
  list.pop_back();
}

MemberEntry* NodeList::next(Random& random) {
  if (live_.empty()) return nullptr;
  if (probed_ >= live_.size()) probed_ = 0;
  const std::size_t drawn = probed_ + random.below(live_.size() - probed_);
  std::swap(live_[probed_], live_[drawn]);
  find(live_[drawn])->place = drawn;
  MemberEntry* entry = find(live_[probed_]);
  entry->place = probed_++;
  return entry;
}

std::vector<const MemberEntry*> NodeList::draw_live(
    Random& random, std::size_t count, const std::function<bool(const MemberEntry&)>& fit) const {
  std::vector<const MemberEntry*> drawn;
  const auto consider = [&](const MemberEntry* entry) {
    if (std::ranges::find(drawn, entry) == drawn.end() && (!fit || fit(*entry)))
      drawn.push_back(entry);
  };
  if (live_.size() > 4 * count) {
    for (std::size_t tries = 0; drawn.size() < count && tries < 4 * count; ++tries)
      consider(find(live_[random.below(live_.size())]));
    return drawn;
  }
  for (const NodeId id : live_) consider(find(id));
  for (std::size_t i = 0; i + 1 < drawn.size(); ++i)
    std::swap(drawn[i], drawn[i + random.below(drawn.size() - i)]);
  drawn.resize(std::min(drawn.size(), count));
  return drawn;
}

}  // namespace starling::core
