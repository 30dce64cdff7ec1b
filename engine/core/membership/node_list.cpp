#include "starling/engine/core/membership/node_list.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {

NodeEntry* NodeList::find(NodeId id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const NodeEntry* NodeList::find(NodeId id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

NodeEntry& NodeList::insert(NodeRecord record) {
  const NodeId id = record.id;
  const auto [inserted, is_new] = entries_.try_emplace(id, NodeEntry{.record = std::move(record)});
  STARLING_CHECK(is_new);
  ids_[NodeDigest::bucket(id)].push_back(id);
  add_to_lists(inserted->second);
  return inserted->second;
}

void NodeList::update(NodeEntry& entry, NodeRecord record) {
  STARLING_CHECK(entry.record.id == record.id);
  // A node that becomes suspected stays in the live list, and keeps its turn to be probed.
  const bool changes_list = is_live(entry.record.state) != is_live(record.state) ||
                            (!is_live(record.state) && entry.record.state != record.state);
  if (changes_list) {
    remove_from_lists(entry);
    entry.record = std::move(record);
    add_to_lists(entry);
  } else {
    digest_.toggle(entry.record);
    remove_name(entry.record);
    entry.record = std::move(record);
    add_name(entry.record);
    digest_.toggle(entry.record);
  }
}

void NodeList::erase(NodeId id) {
  const NodeEntry* entry = find(id);
  if (entry == nullptr) return;
  remove_from_lists(*entry);
  std::erase(ids_[NodeDigest::bucket(id)], id);
  entries_.erase(id);
}

const NodeEntry* NodeList::find_named(const std::string& name, NodeId except) const {
  const auto [begin, end] = names_.equal_range(name);
  const auto found =
      std::find_if(begin, end, [&](const auto& named) { return named.second != except; });
  return found == end ? nullptr : find(found->second);
}

void NodeList::add_name(const NodeRecord& record) {
  if (is_live(record.state) && !record.name.empty()) names_.emplace(record.name, record.id);
}

void NodeList::remove_name(const NodeRecord& record) {
  const auto [begin, end] = names_.equal_range(record.name);
  const auto found =
      std::find_if(begin, end, [&](const auto& named) { return named.second == record.id; });
  if (found != end) names_.erase(found);
}

void NodeList::add_to_lists(NodeEntry& entry) {
  digest_.toggle(entry.record);
  add_name(entry.record);
  if (entry.record.state == NodeState::left) return;
  auto& list = is_live(entry.record.state) ? live_ : dead_;
  entry.list_position = list.size();
  list.push_back(entry.record.id);
}

void NodeList::remove_from_lists(const NodeEntry& entry) {
  digest_.toggle(entry.record);
  remove_name(entry.record);
  if (entry.record.state == NodeState::left) return;
  const bool was_live = is_live(entry.record.state);
  auto& list = was_live ? live_ : dead_;
  std::size_t free_position = entry.list_position;
  const auto fill_from = [&](std::size_t position) {
    if (position == free_position) return;
    list[free_position] = list[position];
    find(list[free_position])->list_position = free_position;
    free_position = position;
  };
  // The last probed node fills the gap of a probed one, so that the probed nodes stay in front.
  if (was_live && free_position < probed_count_) fill_from(--probed_count_);
  fill_from(list.size() - 1);
  list.pop_back();
}

NodeEntry* NodeList::next(Random& random) {
  if (live_.empty()) return nullptr;
  if (probed_count_ >= live_.size()) probed_count_ = 0;
  const std::size_t drawn = probed_count_ + random.below(live_.size() - probed_count_);
  std::swap(live_[probed_count_], live_[drawn]);
  find(live_[drawn])->list_position = drawn;
  NodeEntry* entry = find(live_[probed_count_]);
  entry->list_position = probed_count_++;
  return entry;
}

std::vector<const NodeEntry*> NodeList::draw_live(
    Random& random, std::size_t count,
    const std::function<bool(const NodeEntry&)>& is_eligible) const {
  std::vector<const NodeEntry*> drawn;
  const auto consider = [&](const NodeEntry* entry) {
    if (std::ranges::find(drawn, entry) == drawn.end() && (!is_eligible || is_eligible(*entry)))
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
