/// How a member reports its state, and hands out the ranges that it is primary of.
#include "starling/actor/job/member_host.hpp"

#include <cstdint>
#include <vector>

namespace starling::actor {

Report MemberHost::worker_report(const core::Worker& worker) const {
  const auto counts = worker.draw_counts();
  Report report{.worker = core_.self().id,
                .step = worker.step(),
                .samples = worker.samples(),
                .waited = worker.waited(job_context_->now()),
                .draws = counts.draws,
                .passes = counts.passes,
                .drawn = worker.drawn(),
                .is_done = worker.is_done()};
  executor_.fill_report(report);
  return report;
}

void MemberHost::publish() {
  if (!node_) return;
  published_ = Published{core_};
  node_->publish(report(), core_.configuration());
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
    result.held = static_cast<std::uint32_t>(core_.replica().full_ranges().size());
  const core::Worker* worker = core_.worker();
  if (!failure_.empty() || core_.state() == Core::State::failed)
    result.state = State::failed;
  else if (core_.state() == Core::State::excluded)
    result.state = State::excluded;
  else if (core_.state() != Core::State::member)
    result.state = State::joining;
  else
    result.state = worker == nullptr || worker->is_done() ? State::done : State::running;
  result.is_paused =
      worker == nullptr || worker->is_done() || worker->is_waiting() || postponed_compute_;
  if (worker == nullptr) return result;
  result.worker = worker_report(*worker);
  return result;
}

std::vector<core::RangeState> MemberHost::read_primary_ranges(const ReadRanges& wanted) {
  std::vector<core::RangeState> states;
  std::size_t bytes = 0;
  auto& replica = core_.replica();
  // A joining member holds no range; the ranges of an excluded member are out of date.
  if (core_.state() == Core::State::member)
    for (core::RangeId range = wanted.from;
         range < core_.configuration()->ranges.size() && bytes < wanted.bytes_max; ++range)
      if (replica.is_primary(range)) {
        states.push_back(replica.shard().full_state(range));
        bytes += states.back().value.bytes().size();
      }
  return states;
}

}  // namespace starling::actor
