#include "starling/engine/core/member_list.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {

MemberEntry* MemberList::find(MemberId id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const MemberEntry* MemberList::find(MemberId id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

MemberEntry& MemberList::insert(MemberRecord record) {
  const MemberId id = record.id;
  const auto [place, fresh] = entries_.try_emplace(id, MemberEntry{.record = std::move(record)});
  STARLING_CHECK(fresh);
  ids_[MemberDigest::bucket(id)].push_back(id);
  enlist(place->second);
  return place->second;
}

void MemberList::update(MemberEntry& entry, MemberRecord record) {
  STARLING_CHECK(entry.record.id == record.id);
  // Whose turn it is does not change with a suspicion.
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

void MemberList::erase(MemberId id) {
  const MemberEntry* entry = find(id);
  if (entry == nullptr) return;
  strike(*entry);
  std::erase(ids_[MemberDigest::bucket(id)], id);
  entries_.erase(id);
}

const MemberEntry* MemberList::find_named(const std::string& name, MemberId but) const {
  const auto [begin, end] = names_.equal_range(name);
  const auto found = std::find_if(begin, end, [&](const auto& one) { return one.second != but; });
  return found == end ? nullptr : find(found->second);
}

void MemberList::add_name(const MemberRecord& record) {
  if (is_live(record.state) && !record.name.empty()) names_.emplace(record.name, record.id);
}

void MemberList::remove_name(const MemberRecord& record) {
  const auto [begin, end] = names_.equal_range(record.name);
  const auto found =
      std::find_if(begin, end, [&](const auto& one) { return one.second == record.id; });
  if (found != end) names_.erase(found);
}

void MemberList::enlist(MemberEntry& entry) {
  digest_.toggle(entry.record);
  add_name(entry.record);
  if (entry.record.state == MemberState::left) return;
  auto& list = is_live(entry.record.state) ? live_ : dead_;
  entry.place = list.size();
  list.push_back(entry.record.id);
}

void MemberList::strike(const MemberEntry& entry) {
  digest_.toggle(entry.record);
  remove_name(entry.record);
  if (entry.record.state == MemberState::left) return;
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

MemberEntry* MemberList::next(Random& random) {
  if (live_.empty()) return nullptr;
  if (probed_ >= live_.size()) probed_ = 0;
  const std::size_t drawn = probed_ + random.below(live_.size() - probed_);
  std::swap(live_[probed_], live_[drawn]);
  find(live_[drawn])->place = drawn;
  MemberEntry* entry = find(live_[probed_]);
  entry->place = probed_++;
  return entry;
}

std::vector<const MemberEntry*> MemberList::draw_live(
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
  for (const MemberId id : live_) consider(find(id));
  for (std::size_t i = 0; i + 1 < drawn.size(); ++i)
    std::swap(drawn[i], drawn[i + random.below(drawn.size() - i)]);
  drawn.resize(std::min(drawn.size(), count));
  return drawn;
}

}  // namespace starling::core
