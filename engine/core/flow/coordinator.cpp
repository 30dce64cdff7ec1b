#include "starling/engine/core/flow/coordinator.hpp"

#include <algorithm>
#include <utility>

namespace starling::core {
namespace {

/// Returns the stage of the action that makes the output; nullopt if none does.
std::optional<flow::StageId> stage_of(const Action& action, const PartName& output) {
  const auto name = std::ranges::find(action.names, output.stage);
  const auto stage = static_cast<flow::StageId>(name - action.names.begin());
  return action.has(stage, output.part) ? std::optional{stage} : std::nullopt;
}

}  // namespace

// --- messages of members ------------------------------------------------------------------------

void FlowCoordinator::on_configuration(const FlowContext& context, const ConfigurationPtr& next,
                                       const ConfigurationPtr& former) {
  configuration_ = next;
  if (!former) return;
  for (const Member& gone : former->members_not_in(*next)) {
    members_.erase(gone.id);
    std::vector<PartName> lost;
    for (const auto& [output, holders] : outputs_)
      if (holders.contains(gone.id)) lost.push_back(output);
    for (const PartName& output : lost) remove_output(output, gone.id);
    std::vector<PartName> stopped;
    for (const auto& [task, runs] : tasks_)
      if (runs.since.contains(gone.id)) stopped.push_back(task);
    for (const PartName& task : stopped) {
      end_run(context, task, gone.id);
      if (is_wanted(task)) on_lost(task);
    }
  }
  // Members may have been told to read from one that is gone, although another has the output too.
  if (current_ && !former->members_not_in(*next).empty())
    for (flow::StageId stage = 0; stage < current_->action->stages.size(); ++stage)
      announce(context, stage);
  advance(context);
}

void FlowCoordinator::on(const FlowContext& context, MemberId from, const FlowState& state) {
  MemberState& member = members_[from];
  member = {state.position, state.slots};
  for (const PartName& output : state.outputs) add_output(context, output, from);
  for (const PartName& task : state.tasks) {
    if (!tasks_[task].since.emplace(from, context.now).second) continue;
    ++member.tasks;
    if (current_ && task.stage.action == current_->action->id &&
        current_->action->has(task.stage.stage, task.part))
      current_->scheduler.on_running(task.stage.stage, task.part);
  }
  for (const auto& [action, why] : state.failures) failures_.emplace(action, why);
  // A member that has joined does not know what the others were told.
  if (current_) {
    for (flow::StageId stage = 0; stage < current_->action->stages.size(); ++stage)
      if (current_->scheduler.is_complete(stage)) context.send(from, holders_of(stage));
    if (current_->has_ended) context.send(from, ActionEnd{current_->action->id, current_->error});
  }
  advance(context);
}

void FlowCoordinator::on(const FlowContext& context, MemberId from, const FlowProgress& progress) {
  const auto member = members_.find(from);
  if (member == members_.end()) return;
  const ActionId ended_before = member->second.position.ended;
  member->second.position = progress.position;
  member->second.slots = progress.slots;
  if (current_ && ended_before <= current_->action->id) add_results(context, from, member->second);
  advance(context);
}

void FlowCoordinator::on(const FlowContext& context, MemberId from, const TaskReport& report) {
  const std::optional<Time> duration = end_run(context, report.task, from);
  const auto [stage, part] = report.task;
  const bool is_current = is_of_current(report.task);
  const PartName output =
      is_current ? current_->action->output_of(stage.stage, part) : report.output;
  if (report.outcome == TaskOutcome::done) {
    if (!is_current && !duration) return;
    if (is_current && duration) current_->durations[stage.stage].push_back(*duration);
    if (is_current && !outputs_.contains(output))
      context.output(PartDone{report.task, report.counts});
    add_output(context, output, from);
  } else if (duration && is_wanted(report.task)) {
    if (report.outcome == TaskOutcome::failed) {
      current_->scheduler.on_failed({stage.stage, part}, Error{report.error});
      current_->failed_on[report.task].insert(from);
      // The run that is left may still succeed, but each failure counts as an attempt.
      if (const auto left = tasks_.find(report.task); left != tasks_.end())
        left->second.has_speculative_run = true;
    }
    on_lost(report.task);
  }
  advance(context);
}

std::optional<Time> FlowCoordinator::end_run(const FlowContext& context, const PartName& task,
                                             MemberId member) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return std::nullopt;
  const auto run = found->second.since.find(member);
  if (run == found->second.since.end()) return std::nullopt;
  const Time duration = context.now - run->second;
  found->second.since.erase(run);
  found->second.has_speculative_run = false;
  if (found->second.since.empty()) tasks_.erase(found);
  const auto state = members_.find(member);
  if (state != members_.end() && state->second.tasks > 0) --state->second.tasks;
  return duration;
}

bool FlowCoordinator::is_of_current(const PartName& task) const {
  return current_ && task.stage.action == current_->action->id &&
         current_->action->has(task.stage.stage, task.part);
}

bool FlowCoordinator::is_wanted(const PartName& task) const {
  return is_of_current(task) &&
         !outputs_.contains(current_->action->output_of(task.stage.stage, task.part));
}

void FlowCoordinator::on_lost(const PartName& task) {
  current_->scheduler.on_lost(task.stage.stage, task.part);
  if (tasks_.contains(task)) current_->scheduler.on_running(task.stage.stage, task.part);
}

void FlowCoordinator::on(const FlowContext& context, MemberId, const OutputLost& lost) {
  remove_output(lost.output, lost.holder);
  if (current_)
    if (const auto stage = stage_of(*current_->action, lost.output)) announce(context, *stage);
  advance(context);
}

// --- outputs ------------------------------------------------------------------------------------

/// If every member needs the result of the current action, and the action has ended for this member
/// without an error, records that the member has all outputs of the result.
void FlowCoordinator::add_results(const FlowContext& context, MemberId id,
                                  const MemberState& member) {
  const Action& action = *current_->action;
  if (member.position.ended <= action.id || !action.gathers || failures_.contains(action.id))
    return;
  for (flow::Part part = 0; part < action.stages[action.last()].parts; ++part)
    add_output(context, action.output_of(action.last(), part), id);
}

void FlowCoordinator::add_output(const FlowContext& context, const PartName& output,
                                 MemberId holder) {
  outputs_[output].insert(holder);
  const auto stage = current_ ? stage_of(*current_->action, output) : std::nullopt;
  if (!stage) return;
  const bool was_complete = current_->scheduler.is_complete(*stage);
  current_->scheduler.on_output(*stage, output.part);
  if (!was_complete) announce(context, *stage);
}

void FlowCoordinator::remove_output(const PartName& output, MemberId holder) {
  const auto found = outputs_.find(output);
  if (found == outputs_.end()) return;
  found->second.erase(holder);
  if (!found->second.empty()) return;
  outputs_.erase(found);
  if (!current_) return;
  if (const auto stage = stage_of(*current_->action, output))
    on_lost({{current_->action->id, *stage}, output.part});
}

StageHolders FlowCoordinator::holders_of(flow::StageId stage) const {
  const Action& action = *current_->action;
  StageHolders message{{action.id, stage}, {}};
  for (flow::Part part = 0; part < action.stages[stage].parts; ++part) {
    const auto& holders = outputs_.at(action.output_of(stage, part));
    message.holders.push_back(*std::next(holders.begin(), part % holders.size()));
  }
  return message;
}

void FlowCoordinator::announce(const FlowContext& context, flow::StageId stage) const {
  if (current_->scheduler.is_complete(stage))
    context.out.push_back(SendToAll<FlowMessages>{holders_of(stage)});
}

// --- actions ------------------------------------------------------------------------------------

void FlowCoordinator::advance(const FlowContext& context) {
  if (members_.size() < configuration_->members.size()) return;
  // The first action that some program still waits for.
  std::optional<ActionId> first;
  for (const auto& [id, member] : members_)
    if (!member.position.has_returned)
      first = std::min(first.value_or(member.position.ended), member.position.ended);
  if (!first) {
    if (!std::exchange(has_ended_, true)) context.out.push_back(SendToAll<FlowMessages>{FlowEnd{}});
    return;
  }
  has_ended_ = false;  // a member may have joined
  if (*first > forgotten_before_) {
    forgotten_before_ = *first;
    std::erase_if(outputs_, [this](const auto& output) {
      return !executor_.keeps(output.first.stage, forgotten_before_);
    });
    context.out.push_back(SendToAll<FlowMessages>{ForgetActions{forgotten_before_}});
  }
  if (!current_ || current_->action->id != *first) {
    current_.reset();
    const auto action = executor_.actions().find(*first);
    if (action == executor_.actions().end()) {
      // This member's program will begin the action, unless the members run different programs.
      if (members_.at(*configuration_->coordinator).position.has_returned)
        context.out.push_back(SendToAll<FlowMessages>{ActionEnd{
            *first, "the programs of the members differ: that of member " +
                        std::to_string(*configuration_->coordinator) +
                        " has returned, but that of another member has begun a further action"}});
      return;
    }
    begin(context, action->second);
  }
  schedule(context);
}

void FlowCoordinator::begin(const FlowContext& context, ActionPtr action) {
  current_.emplace(Current{action, flow::Scheduler{action->stages, options_.attempts_max}});
  bool has_ended_before = false;
  for (const auto& [id, member] : members_) has_ended_before |= member.position.ended > action->id;
  for (flow::StageId stage = 0; stage < action->stages.size(); ++stage) {
    for (flow::Part part = 0; part < action->stages[stage].parts; ++part) {
      if (outputs_.contains(action->output_of(stage, part)))
        current_->scheduler.on_output(stage, part);
      else if (tasks_.contains({{action->id, stage}, part}))
        current_->scheduler.on_running(stage, part);
    }
    announce(context, stage);
  }
  for (const auto& [id, member] : members_) add_results(context, id, member);
  const auto failure = failures_.find(action->id);
  if (failure != failures_.end()) return fail(context, action->id, failure->second);
  if (!has_ended_before || action->gathers) return;
  // The only result of an action that does not gather is that it has ended.
  current_->has_ended = true;
  context.out.push_back(SendToAll<FlowMessages>{ActionEnd{action->id, {}}});
}

void FlowCoordinator::fail(const FlowContext& context, ActionId action, const std::string& error) {
  current_->has_ended = true;
  current_->error = error;
  failures_.emplace(action, error);
  context.out.push_back(SendToAll<FlowMessages>{ActionEnd{action, error}});
}

bool FlowCoordinator::computes(const MemberState& member) const {
  // The functions of a stage may use values that the program holds only during the action.
  const ActionId action = current_->action->id;
  return member.position.begun > action && member.position.ended == action && !member.is_refused &&
         member.slots > 0;
}

std::optional<MemberId> FlowCoordinator::least_busy_except(const Runs* runs) const {
  std::optional<MemberId> best;
  std::uint32_t most_free = 0;
  for (const auto& [id, member] : members_) {
    if (!can_take(member) || member.slots - member.tasks <= most_free) continue;
    if (runs != nullptr && runs->since.contains(id)) continue;
    best = id;
    most_free = member.slots - member.tasks;
  }
  return best;
}

std::optional<MemberId> FlowCoordinator::other_member(const std::set<MemberId>& excluded) const {
  std::optional<MemberId> best;
  for (const auto& [id, member] : members_)
    if (computes(member) && !excluded.contains(id) &&
        (!best || member.tasks < members_.at(*best).tasks))
      best = id;
  return best;
}

std::optional<MemberId> FlowCoordinator::choose(const flow::TaskId& task) const {
  const auto failed = current_->failed_on.find({{current_->action->id, task.stage}, task.part});
  if (failed != current_->failed_on.end())
    if (const auto other = other_member(failed->second)) return other;
  if (current_->action->reads) {
    for (const Action::Read& read : current_->action->reads(task.stage, task.part)) {
      if (!read.part) continue;
      const auto holders = outputs_.find(current_->action->output_of(read.stage, *read.part));
      if (holders == outputs_.end()) continue;
      for (const MemberId holder : holders->second) {
        const auto member = members_.find(holder);
        if (member != members_.end() && can_take(member->second)) return holder;
      }
    }
  }
  return least_busy_except(nullptr);
}

void FlowCoordinator::give(const FlowContext& context, const PartName& task, Runs& runs,
                           MemberId to) {
  runs.since[to] = context.now;
  ++members_.at(to).tasks;
  context.send(to, TaskOrder{task, runs.is_last_attempt});
}

void FlowCoordinator::schedule(const FlowContext& context) {
  const Action& action = *current_->action;
  if (current_->has_ended && current_->error.empty() && action.gathers &&
      !current_->scheduler.has_ended())
    current_->has_ended = false;  // a part of the result is lost, and not everyone has it
  if (current_->has_ended) return;
  const bool has_ended_somewhere = std::ranges::any_of(
      members_, [&](const auto& member) { return member.second.position.ended > action.id; });
  for (auto& [id, member] : members_) {
    if (member.position.begun != action.id + 1 || member.is_refused ||
        member.position.fingerprint == action.fingerprint)
      continue;
    const std::string why = "member " + std::to_string(id) +
                            " runs another program, or has other files: its action " +
                            std::to_string(action.id + 1) + " has other stages";
    if (!has_ended_somewhere) return fail(context, action.id, why);
    // The member has joined later, and the others go on without it.
    member.is_refused = true;
    context.send(id, ActionEnd{action.id, why});
  }
  while (least_busy_except(nullptr)) {
    const auto task = current_->scheduler.next();
    if (!task) {
      run_speculatively(context);
      break;
    }
    const PartName name{{action.id, task->stage}, task->part};
    Runs& runs = tasks_[name];
    runs.is_last_attempt = task->attempt + 1 == options_.attempts_max;
    give(context, name, runs, *choose(*task));
  }
  end_if_complete(context);
}

void FlowCoordinator::run_speculatively(const FlowContext& context) {
  std::optional<Time> next;
  for (auto& [name, runs] : tasks_) {
    if (!is_wanted(name) || runs.has_speculative_run || !has_inputs(name.stage.stage)) continue;
    if (current_->failed_on.contains(name)) continue;  // a further failure may end the action
    const auto after = speculation_delay(name.stage.stage);
    if (!after) continue;
    const Time due = runs.since.begin()->second + *after;
    // If no member can take a second run now, schedule() comes here again once one can.
    if (due > context.now)
      next = std::min(next.value_or(due), due);
    else if (const auto to = least_busy_except(&runs)) {
      runs.has_speculative_run = true;
      give(context, name, runs, *to);
    }
  }
  if (!next || (wakes_at_ && *wakes_at_ <= *next)) return;
  wakes_at_ = next;
  context.out.push_back(RoleTimer{*next, 0});
}

bool FlowCoordinator::has_inputs(flow::StageId stage) const {
  return std::ranges::all_of(current_->action->stages[stage].inputs, [this](flow::StageId input) {
    return current_->scheduler.is_complete(input);
  });
}

std::optional<Time> FlowCoordinator::speculation_delay(flow::StageId stage) const {
  const auto durations = current_->durations.find(stage);
  if (durations == current_->durations.end()) return std::nullopt;
  std::vector<Time> sorted = durations->second;
  if (2 * sorted.size() < current_->action->stages[stage].parts) return std::nullopt;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return std::max(std::chrono::duration_cast<Time>(*middle * options_.speculation_factor),
                  options_.speculation_after_min);
}

void FlowCoordinator::on_timer(const FlowContext& context) {
  if (!wakes_at_ || context.now < *wakes_at_) return;
  wakes_at_.reset();
  if (configuration_ && current_) advance(context);
}

void FlowCoordinator::end_if_complete(const FlowContext& context) {
  if (const Error* error = current_->scheduler.error())
    return fail(context, current_->action->id, error->message);
  if (!current_->scheduler.has_ended()) return;
  current_->has_ended = true;
  context.out.push_back(SendToAll<FlowMessages>{ActionEnd{current_->action->id, {}}});
}

}  // namespace starling::core
