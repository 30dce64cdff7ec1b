#include "starling/engine/core/worker/draw_weights.hpp"

#include <algorithm>

namespace starling::core {
namespace {

/// The factor of a moving average: by how much one new answer changes the remembered speed, or one
/// new outcome the remembered availability, from the eighth outcome on.
constexpr float renewal = 1.0F / 8;
/// From this availability on the record of a worker is dropped, because its weight is almost 1, the
/// weight of a worker without a record.
constexpr float forgotten_from = 63.0F / 64;
/// The number of steps at the mean speed with which each record begins.
constexpr double prior_steps = 2;

float seconds_of(Time time) { return std::chrono::duration<float>(time).count(); }

}  // namespace

void DrawWeights::on_question(MemberId peer, Time now) {
  if (std::ranges::find(open_, peer, &OpenQuestion::to) != open_.end()) return;
  if (open_.size() == open_max) open_.erase(open_.begin());
  open_.push_back({peer, now});
}

void DrawWeights::on_answer(MemberId peer, Step step, Time now) {
  const auto open = std::ranges::find(open_, peer, &OpenQuestion::to);
  if (open == open_.end()) return;
  const bool in_time = now - open->asked_at < query_timeout;
  open_.erase(open);
  if (weighting_ == barrier::Weighting::availability) record_outcome(peer, in_time, now);
  // A worker that has ended, or has not begun, has no speed.
  if (weighting_ == barrier::Weighting::speed && step < barrier::finished)
    record_step(peer, step, now);
}

void DrawWeights::expire_questions(Time now) {
  std::erase_if(open_, [&](const OpenQuestion& open) {
    if (now - open.asked_at < query_timeout) return false;
    if (weighting_ == barrier::Weighting::availability) record_outcome(open.to, false, now);
    return true;
  });
}

void DrawWeights::record_outcome(MemberId peer, bool answered, Time now) {
  const auto at = std::ranges::lower_bound(records_, peer, {}, &Record::peer);
  const bool is_known = at != records_.end() && at->peer == peer;
  if (answered && !is_known) return;
  Record& record = is_known ? *at : remember(peer, now);
  // The mean begins with one question that was answered.
  const float part = std::max(renewal, 1 / (static_cast<float>(record.outcomes) + 2));
  record.answered += ((answered ? 1.0F : 0.0F) - record.answered) * part;
  if (part > renewal) ++record.outcomes;
  record.changed_at = now;
  if (record.answered >= forgotten_from) records_.erase(at);
}

void DrawWeights::record_step(MemberId peer, Step step, Time now) {
  const auto at = std::ranges::lower_bound(records_, peer, {}, &Record::peer);
  if (at == records_.end() || at->peer != peer) {
    remember(peer, now).step = step;
    return;
  }
  // Answers to two questions may change their order.
  if (step < at->step || now < at->changed_at) return;
  at->steps = at->steps * (1 - renewal) + static_cast<float>(step - at->step);
  at->seconds = at->seconds * (1 - renewal) + seconds_of(now - at->changed_at);
  at->step = step;
  at->changed_at = now;
}

/// Adds a record of a worker that has none. If there is no space, first drops the record that was
/// changed longest ago.
DrawWeights::Record& DrawWeights::remember(MemberId peer, Time now) {
  if (records_.size() == remembered_max)
    records_.erase(std::ranges::min_element(records_, {}, &Record::changed_at));
  Record record;
  record.peer = peer;
  record.changed_at = now;
  return *records_.insert(std::ranges::lower_bound(records_, peer, {}, &Record::peer), record);
}

void DrawWeights::forget(std::span<const MemberId> changed) {
  const auto has_changed = [&](MemberId id) { return std::ranges::binary_search(changed, id); };
  std::erase_if(records_, [&](const Record& record) { return has_changed(record.peer); });
  std::erase_if(open_, [&](const OpenQuestion& open) { return has_changed(open.to); });
}

double DrawWeights::mean_speed() const {
  double steps = 0;
  double seconds = 0;
  for (const Record& record : records_) {
    steps += record.steps;
    seconds += record.seconds;
  }
  return seconds > 0 ? steps / seconds : 0;
}

double DrawWeights::weight_of(const Record& record, double mean_speed) const {
  if (weighting_ == barrier::Weighting::availability)
    return std::max<double>(record.answered, least);
  const double expected = mean_speed * record.seconds;
  return std::clamp((record.steps + prior_steps) / (expected + prior_steps), least, most);
}

double DrawWeights::weight_of(MemberId peer) const {
  const auto at = std::ranges::lower_bound(records_, peer, {}, &Record::peer);
  return at != records_.end() && at->peer == peer ? weight_of(*at, mean_speed()) : 1;
}

std::span<const barrier::Weighted> DrawWeights::weights(std::span<const MemberId> workers,
                                                        std::uint32_t own_position, Time now) {
  expire_questions(now);
  weights_.clear();
  const double speed = mean_speed();
  auto at = workers.begin();
  for (const Record& record : records_) {
    at = std::lower_bound(at, workers.end(), record.peer);
    if (at == workers.end()) break;
    const auto position = static_cast<std::uint32_t>(at - workers.begin());
    if (*at != record.peer || position == own_position) continue;
    weights_.push_back({position - (position > own_position ? 1U : 0U), weight_of(record, speed)});
  }
  return weights_;
}

}  // namespace starling::core
