/// Defines the functions of MemberHost that hold updates back, report its state, and return the
/// states of the ranges of which it is primary.
#include "starling/actor/job/member_host.hpp"

#include <cstdint>
#include <vector>

namespace starling::actor {

/// Holds the update back for its injected delay, if there is one.
void MemberHost::on_computed(const Computed& computed) {
  const core::Time due_at = executor_.hold_back(computed, random_);
  if (accept_due_update()) return;
  schedule(due_at, timer_atom_v);
  if (timeline_ != nullptr) timeline_->hold_back(job_context_->now());
}

/// During a pause, postpones the computation. A pause takes effect here, because at this time the
/// worker has handed all of its updates to the exchange; is_sending() says whether some are in
/// flight.
void MemberHost::execute(core::Compute& compute) {
  const core::Time now = job_context_->now();
  if (now >= paused_until_) return begin_computation(compute);
  postponed_compute_ = std::move(compute);
  postponed_from_ = now;
  if (timeline_ != nullptr) timeline_->pause(now);
}

void MemberHost::begin_computation(core::Compute& compute) {
  const auto due_at = executor_.defer(compute, random_);
  if (!due_at) return executor_.compute(self(), compute);
  schedule(*due_at, timer_atom_v);
  if (timeline_ != nullptr) timeline_->hold_back(job_context_->now());
}

void MemberHost::resume_if_due() {
  if (auto deferred = executor_.take_deferred()) {
    if (timeline_ != nullptr) timeline_->compute(job_context_->now());
    executor_.compute(self(), *deferred);
  }
  if (!postponed_compute_ || job_context_->now() < paused_until_) return;
  core::Compute compute = *std::exchange(postponed_compute_, std::nullopt);
  postponed_for_ += job_context_->now() - postponed_from_;
  if (timeline_ != nullptr) timeline_->compute(job_context_->now());
  begin_computation(compute);
}

/// Makes the worker hand in what it has computed so far. A computation that has not begun yet is
/// reduced to one micro-batch.
void MemberHost::execute(const core::HandInNow& hand_in) {
  if (postponed_compute_ && postponed_compute_->step == hand_in.step) {
    std::uint64_t& samples_max = postponed_compute_->samples_max;
    samples_max = core::micro_batch_of(samples_max);
    return;
  }
  if (const auto due_at = executor_.hand_in(hand_in.step)) schedule(*due_at, timer_atom_v);
}

void MemberHost::record_deal() {
  if (node_ || training().dealer() == nullptr) return;
  const auto& deal = training().dealer()->shared_deal();
  if (deal == recorded_deal_) return;
  recorded_deal_ = deal;
  job_context_->deals.add(deal);
}

void MemberHost::on_failed(const actor::ComputeFailed& failure) {
  if (failure.is_fatal)
    return record_failure("worker " + std::to_string(core_.self().id) + ", step " +
                          std::to_string(failure.step + 1) + ": " + failure.why);
  run([&](Core& member, const Context& context) {
    member.on_input(context, core::StepFailure{failure.step, failure.why});
  });
}

Report MemberHost::worker_report(const core::Worker& worker) const {
  const auto counts = training().draw_counts();
  Report report{.worker = core_.self().id,
                .step = worker.step(),
                .samples = worker.samples(),
                .active_time = worker.active_time(job_context_->now()),
                .wait_time = worker.wait_time(job_context_->now()),
                .draws = counts.draws,
                .passes = counts.passes,
                .tuned = training().tuned(),
                .times_drawn = worker.times_drawn(),
                .reads = training().read_counts(),
                .is_done = training().is_done(),
                .deal = worker.deal_progress()};
  executor_.fill_report(report);
  return report;
}

void MemberHost::publish() {
  if (!node_) return;
  published_ = Published{core_};
  node_->publish(report(), core_.configuration());
}

std::vector<core::WorkerProgress> MemberHost::departed_workers() const {
  const core::ConfigurationPtr& configuration = core_.configuration();
  if (core_.state() != Core::State::member || configuration->departed.empty()) return {};
  auto departed = training().progress();
  std::erase_if(departed, [&](const core::WorkerProgress& progress) {
    return configuration->contains(progress.worker.id, progress.worker.incarnation);
  });
  return departed;
}

/// Hashes the copy once for each round.
core::CopyHash MemberHost::copy_hash() const {
  std::visit(
      [&](const auto& exchange) {
        if constexpr (requires { exchange.copy_hash(); })
          if (copy_hash_.hash == 0 || copy_hash_.round != exchange.synced_step())
            copy_hash_ = exchange.copy_hash();
      },
      training().exchange());
  return copy_hash_;
}

MemberReport MemberHost::report() const {
  using State = MemberReport::State;
  MemberReport result;
  result.member = core_.self().id;
  result.incarnation = core_.self().incarnation;
  result.why = failure_;
  result.pauses = pause_count_;
  result.epoch = core_.configuration() ? core_.configuration()->epoch : 0;
  if (core_.state() == Core::State::member)
    result.ranges_held = static_cast<std::uint32_t>(training().full_ranges().size());
  if (training().dealer() != nullptr && training().dealer()->deals_samples())
    result.deal = training().dealer()->shared_deal();
  result.departed = departed_workers();
  const core::Worker* worker = training().worker();
  if (!failure_.empty() || core_.state() == Core::State::failed)
    result.state = State::failed;
  else if (core_.state() == Core::State::excluded)
    result.state = State::excluded;
  else if (core_.state() != Core::State::member)
    result.state = State::joining;
  else
    result.state = training().is_done() ? State::done : State::running;
  if (result.state == State::done) result.copy_hash = copy_hash();
  // A held worker counts as idle, because its next computation would be postponed. If the exchange
  // is the barrier, workers that wait or have ended count as idle although their last updates are
  // not in the model yet: these enter it with the next round of the others.
  const bool has_ended = worker != nullptr && worker->is_done() &&
                         (worker->options().exchange_is_barrier || training().is_done());
  const bool is_idle = worker == nullptr || has_ended || worker->is_waiting() ||
                       worker->is_held() || postponed_compute_;
  // The last messages of a worker may still change the copies of others.
  const bool is_sending = std::visit(
      [](const auto& exchange) {
        if constexpr (requires { exchange.is_sending(); })
          return exchange.is_sending();
        else
          return false;
      },
      training().exchange());
  result.is_paused = is_idle && !is_sending;
  if (worker != nullptr) {
    result.worker = worker_report(*worker);
    return result;
  }
  const auto counts = training().draw_counts();
  result.worker.draws = counts.draws;
  result.worker.passes = counts.passes;
  result.worker.tuned = training().tuned();
  return result;
}

std::vector<core::RangeState> MemberHost::read_primary_ranges(const ReadRanges& request) {
  std::vector<core::RangeState> states;
  // A joining member holds no range; the ranges of an excluded member are out of date.
  if (core_.state() != Core::State::member) return states;
  const std::size_t count = training().options().exchange.layout->ranges.size();
  std::size_t bytes = 0;
  std::visit(
      [&](const auto& exchange) {
        for (core::RangeId range = request.from; range < count && bytes < request.bytes_max;
             ++range) {
          if (!exchange.answers_for(range)) continue;
          states.push_back(exchange.state(range));
          bytes += states.back().value.bytes().size();
        }
      },
      training().exchange());
  return states;
}

}  // namespace starling::actor
