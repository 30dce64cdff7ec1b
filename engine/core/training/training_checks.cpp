/// Which messages a member of a training job takes, and how it answers questions.
#include <algorithm>
#include <functional>
#include <string>

#include "starling/engine/core/training/training.hpp"

namespace starling::core {
namespace {

/// True if `worker` is the sender, and the sender computes updates.
bool is_senders_worker(const MessageScope& scope, MemberId worker) {
  const Member* sender = scope.configuration.find(scope.from);
  return worker == scope.from && sender != nullptr && sender->works;
}

bool has_valid_workers(const MessageScope& scope, const Deal& deal) {
  return std::ranges::adjacent_find(deal.workers, std::greater_equal<>{}, &DealtWorker::id) ==
             deal.workers.end() &&
         (deal.workers.empty() || deal.workers.back().id < scope.members_max) &&
         deal.reached < barrier::finished &&
         std::ranges::all_of(deal.workers, [](const DealtWorker& worker) {
           return worker.first_step.value_or(0) <= barrier::finished &&
                  worker.first_samples < barrier::finished;
         });
}

bool is_valid_progress(const WorkerProgress& progress) {
  return progress.step <= barrier::finished && progress.samples < barrier::finished;
}

}  // namespace

bool is_valid(const MessageScope& scope, const Ended& m) {
  return is_senders_worker(scope, m.worker) && m.step <= barrier::finished;
}

bool is_valid(const MessageScope& scope, const Arrived& m) {
  return is_senders_worker(scope, m.worker) && m.step < barrier::finished;
}

bool is_valid(const MessageScope& scope, const Proceed& m) {
  return scope.from == scope.configuration.coordinator && m.floor <= m.step &&
         m.awaited.value_or(0) < scope.members_max;
}

bool is_valid(const MessageScope& scope, const Stop&) {
  return scope.from == scope.configuration.coordinator;
}

bool is_valid(const MessageScope& scope, const BatchDone& m) {
  return is_senders_worker(scope, m.worker) && m.step > 0 && m.step < barrier::finished;
}

bool is_valid(const MessageScope& scope, const HandIn& m) {
  return scope.from == scope.configuration.coordinator && m.step < barrier::finished;
}

bool is_valid(const MessageScope& scope, const WorkerStatus& m) {
  const bool is_senders = m.phase == WorkerStatus::Phase::idle ? m.member == scope.from
                                                               : is_senders_worker(scope, m.member);
  return is_senders && m.step <= barrier::finished && m.held < barrier::finished;
}

/// The dealer checks the former deals, because these depend on the job's data.
bool is_valid(const MessageScope& scope, const DealReport& m) {
  return m.number.epoch <= scope.configuration.epoch && m.deal.number < m.number &&
         m.taken.value_or(0) < barrier::finished && m.samples_in_all < barrier::finished &&
         m.begun.value_or(0) <= barrier::finished && has_valid_workers(scope, m.deal) &&
         std::ranges::all_of(m.progress, is_valid_progress);
}

bool is_valid(const MessageScope& scope, const NewDeal& m) {
  return scope.from == Dealer::dealer_of(scope.configuration) &&
         m.deal.number.epoch <= scope.configuration.epoch && has_valid_workers(scope, m.deal);
}

bool is_valid(const MessageScope& scope, const DealReceived& m) {
  return m.number.epoch <= scope.configuration.epoch;
}

bool is_valid(const MessageScope& scope, const BeginDeal& m) {
  return scope.from == Dealer::dealer_of(scope.configuration) &&
         m.number.epoch <= scope.configuration.epoch;
}

bool is_valid(const MessageScope& scope, const RevisionRequest& m) {
  return is_senders_worker(scope, scope.from) && m.present.epoch <= scope.configuration.epoch;
}

bool is_valid(const MessageScope& scope, const CallForReports& m) {
  return scope.from == Dealer::dealer_of(scope.configuration) &&
         m.next.epoch <= scope.configuration.epoch;
}

bool is_valid(const MessageScope& scope, const StepAnswer& m) {
  constexpr std::uint64_t most = PaceReport::duration_max_ns;
  return m.from == scope.from && m.step <= not_begun &&
         (!m.pace ||
          std::max({m.pace->since_push_ns, m.pace->interval_ns, m.pace->duration_ns}) <= most);
}

// --- questions ----------------------------------------------------------------------------------

bool Training::is_answer(const Value& value, const AskValue& question) {
  if (value.range != question.range) return false;
  if (!question.rows || !value.value.rows) return !question.rows && !value.value.rows;
  return *question.rows == *value.value.rows;
}

std::variant<Refusal, WorkerStep> Training::answer(const AskStep&) {
  if (!worker_) return Refusal{name_of(self_) + " computes no updates"};
  return WorkerStep{worker_->step()};
}

barrier::TunedSum Training::tuned() const {
  barrier::TunedSum sum;
  if (coordinator_) sum.add(coordinator_->tuned());
  if (worker_ && worker_->gate() != nullptr) sum.add(worker_->gate()->tuner());
  return sum;
}

SampleGate::Counts Training::draw_counts() const {
  if (coordinator_) return {coordinator_->draws(), coordinator_->passes()};
  return worker_ ? worker_->draw_counts() : SampleGate::Counts{};
}

std::variant<Refusal, StepsReport> Training::answer(const AskSteps&) {
  if (!coordinator_) return Refusal{name_of(self_) + " is not the coordinator"};
  const auto [min, max] = coordinator_->spread();
  return StepsReport{min,
                     max,
                     coordinator_->max_lag(),
                     coordinator_->draws(),
                     coordinator_->passes(),
                     coordinator_->tuned()};
}

std::variant<Refusal, Value> Training::answer(const AskValue& question) {
  auto value =
      std::visit([&](auto& e) { return e.value(question.range, question.rows); }, exchange_);
  if (value) return *std::move(value);
  return Refusal{
      "range " + std::to_string(question.range) + ": " + name_of(self_) +
      " does not own it, or the range lacks these rows; valid: ascending row numbers, each once"};
}

}  // namespace starling::core
