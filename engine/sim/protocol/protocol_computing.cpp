/// How simulated workers plan and compute their steps.
#include <algorithm>
#include <cmath>
#include <exception>

#include "starling/base/to_duration.hpp"
#include "starling/engine/sim/early_parts.hpp"
#include "starling/engine/sim/protocol/protocol.hpp"
#include "starling/engine/work/descent.hpp"

namespace starling::sim {

using core::MemberContext;
using core::MemberCore;

void Protocol::execute(MemberId id, const core::Plan& plan) {
  queue_.push(now(), PlanDue{id, plan});
}

void Protocol::execute(MemberId id, core::Compute& read) {
  if (on_compute) on_compute(id, read);
  const double slowness = options_.slowness.empty() ? 1 : options_.slowness[id];
  const Time step_time = options_.step_time_of ? options_.step_time_of(id, read.step)
                                               : options_.step_time.draw(nodes_[id].step_random);
  const Time work =
      to_duration(static_cast<double>(step_time.count()) * slowness * relative_size(read));
  const Time due_at = now() + absences_.time_to_work(id, now(), work);
  if (!read.share.taken) {
    UpdateDue update{id, std::move(read), ++nodes_[id].computations};
    nodes_[id].early_update.reset();
    for (std::size_t i = 0; i + 1 < buckets_.size(); ++i) {
      const core::RangeId first = buckets_[i].first;
      const double computed = 1 - static_cast<double>(job_.layout->ranges[first].offset) /
                                      static_cast<double>(job_.layout->size);
      const Time part_of_work =
          to_duration(share_of_time(computed) * static_cast<double>(work.count()));
      queue_.push(now() + absences_.time_to_work(id, now(), part_of_work), PartsDue{update, first});
    }
    return queue_.push(due_at, std::move(update));
  }
  nodes_[id].computing.emplace(Node::Computing{std::move(read), now(), due_at});
  queue_.push(due_at, HandInDue{id, due_at});
}

/// The worker ends the sample at which it is, and hands in. (The time in which it is away counts as
/// time in which it computes.)
void Protocol::execute(MemberId id, const core::HandInNow& hand_in) {
  auto& computing = nodes_[id].computing;
  if (!computing || computing->compute.step != hand_in.step || computing->due_at <= now()) return;
  std::uint64_t& samples = computing->compute.samples_max;
  const Time length = computing->due_at - computing->began_at;
  const std::uint64_t begun = core::samples_begun(samples, now() - computing->began_at, length);
  const Time due_at =
      computing->began_at + to_duration(static_cast<double>(length.count()) *
                                        static_cast<double>(begun) / static_cast<double>(samples));
  samples = begun;
  computing->due_at = std::max(now(), due_at);
  queue_.push(computing->due_at, HandInDue{id, computing->due_at});
}

/// Returns the number of samples that a worker computes, divided by an equal part of the total
/// batch if batches are dynamic, or by a whole batch if workers hand in early; otherwise 1.
double Protocol::relative_size(const core::Compute& compute) const {
  const core::WorkShare& share = compute.share;
  if (share.taken)
    return static_cast<double>(compute.samples_max) /
           static_cast<double>(share.order->batch_size());
  if (!job_.deal.dynamic || !share.order) return 1;
  const double equal_part =
      static_cast<double>(job_.deal.batch) / static_cast<double>(options_.workers);
  return static_cast<double>(share.order->size_at(share.index, compute.step - share.first_step)) /
         equal_part;
}

void Protocol::handle(PlanDue& due) {
  std::vector<core::RangeRows> rows;
  try {
    rows = job_.plan(due.at, due.plan);
  } catch (const std::exception& fault) {
    return fail_step(due.at, due.plan.step, fault.what());
  }
  run_member(due.at, [&](MemberCore& member, const MemberContext& context) {
    member.on_input(context, core::PlanResult{due.plan.step, std::move(rows)});
  });
}

std::optional<core::Update> Protocol::compute(const UpdateDue& due) {
  auto& early = nodes_[due.at].early_update;
  if (early) return std::exchange(early, std::nullopt);
  try {
    core::Update update = job_.compute(due.at, due.compute);
    if (due.compute.former)
      update.descent =
          core::descent_from(*due.compute.former, due.compute.values, update.parts, *job_.layout);
    return update;
  } catch (const std::exception& fault) {
    ++nodes_[due.at].computations;  // its other parts are void
    fail_step(due.at, due.compute.step, fault.what());
    return std::nullopt;
  }
}

/// The whole update is computed when the first parts are due.
void Protocol::handle(PartsDue& due) {
  Node& node = nodes_[due.at];
  if (due.computation != node.computations) return;
  auto update = compute(due);
  if (!update) return;
  core::EarlyParts parts{due.first, {.parts = {}, .samples = update->samples}};
  for (const core::Update::Part& part : update->parts)
    if (part.range >= due.first) parts.update.parts.push_back(part);
  node.early_update = std::move(update);
  run_member(due.at, [&](MemberCore& member, const MemberContext& context) {
    member.on_input(context, core::PartsResult{due.compute.step, std::move(parts)});
  });
}

void Protocol::handle(UpdateDue& due) {
  if (due.computation != nodes_[due.at].computations) return;
  ++nodes_[due.at].computations;  // parts that are late are void
  auto update = compute(due);
  if (!update) return;
  if (on_update) on_update(due.at, due.compute, *update);
  count_visits(due.compute, *update);
  run_member(due.at, [&](MemberCore& member, const MemberContext& context) {
    member.on_input(context, core::ComputeResult{due.compute.step, *std::move(update)});
  });
}

void Protocol::handle(HandInDue& due) {
  auto& computing = nodes_[due.at].computing;
  if (!computing || computing->due_at != due.due_at) return;
  UpdateDue update{due.at, std::move(computing->compute), nodes_[due.at].computations};
  computing.reset();
  handle(update);
}

void Protocol::count_visits(const core::Compute& compute, const core::Update& update) {
  const core::WorkShare& share = compute.share;
  if (!share.taken) return;
  visited_at_.resize(job_.deal.samples);
  share.order->batch_after(share.index, *share.taken, visits_);
  visits_.resize(std::min<std::size_t>(visits_.size(), update.samples));
  for (const models::DealtSample& visit : visits_) {
    Time& last = visited_at_[visit.sample];
    longest_gap_ = std::max(longest_gap_, now() - last);
    last = now();
  }
}

void Protocol::fail_step(MemberId id, Step step, const std::string& why) {
  run_member(id, [&](MemberCore& member, const MemberContext& context) {
    member.on_input(context, core::StepFailure{step, why});
  });
}

}  // namespace starling::sim
