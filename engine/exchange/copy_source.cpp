#include "starling/engine/exchange/copy_source.hpp"

#include <algorithm>
#include <chrono>

namespace starling::core {
namespace {

/// If nobody has a copy, a joining worker asks again after this time.
constexpr Time ask_every = std::chrono::milliseconds{50};
/// The job fails if nobody has had a copy for this long.
constexpr Time lost_after = std::chrono::seconds{20};

}  // namespace

std::vector<MemberIncarnation> other_workers(const Configuration& configuration, MemberId self) {
  std::vector<MemberIncarnation> others;
  for (const Member& member : configuration.members)
    if (member.works && member.id != self) others.push_back({member.id, member.incarnation});
  return others;
}

std::optional<MemberId> first_worker(const Configuration& configuration) {
  const auto first = std::ranges::find(configuration.members, true, &Member::works);
  if (first == configuration.members.end()) return std::nullopt;
  return first->id;
}

CopySource::Next CopySource::begin(std::span<const MemberIncarnation> others) {
  asked_.reset();
  refusals_ = 0;
  return ask_next(others);
}

CopySource::Next CopySource::ask_next(std::span<const MemberIncarnation> others) {
  if (others.empty())
    return Fail{"no worker with a copy of the parameters is left; valid: start from a checkpoint"};
  const auto next = asked_ ? std::ranges::upper_bound(others, *asked_) : others.begin();
  asked_ = next == others.end() ? others.front() : *next;
  return asked_->id;
}

CopySource::Next CopySource::on_refusal(Time now, std::span<const MemberIncarnation> others) {
  if (++refusals_ < others.size()) return ask_next(others);
  if (!nobody_has_it_since_) nobody_has_it_since_ = now;
  if (now - *nobody_has_it_since_ >= lost_after)
    return Fail{"no worker has a copy of the parameters; valid: start from a checkpoint"};
  ask_again_at_ = now + ask_every;
  return SetTimer{*ask_again_at_};
}

bool CopySource::on_timer(Time now) {
  if (!ask_again_at_ || now < *ask_again_at_) return false;
  ask_again_at_.reset();
  return asked_.has_value();
}

}  // namespace starling::core
