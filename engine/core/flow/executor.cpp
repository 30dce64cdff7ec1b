#include "starling/engine/core/flow/executor.hpp"

#include <algorithm>
#include <utility>

namespace starling::core {

// --- the coordinator ----------------------------------------------------------------------------

void FlowExecutor::on_configuration(const FlowContext& context, const ConfigurationPtr& next,
                                    const ConfigurationPtr& former) {
  configuration_ = next;
  if (!former || !next->has_same_coordinator_as(*former)) context.send(*next->coordinator, state());
  if (!former) return;
  std::set<MemberId> gone;
  for (const Member& member : former->members_not_in(*next)) gone.insert(member.id);
  if (gone.empty()) return;
  for (const MemberId id : gone) {
    context.output(DropReader{id});
    queues_.erase(id);
  }
  std::erase_if(fetches_, [&](const auto& fetch) { return gone.contains(fetch.second.holder); });
  std::vector<PieceName> lost;
  for (const auto& [name, piece] : pieces_)
    if (!piece.is_here && gone.contains(piece.holder)) lost.push_back(name);
  for (const PieceName& name : lost) lose(context, name, TaskOutcome::lacks_input);
  fetch_next(context);
}

FlowState FlowExecutor::state() const {
  FlowState state;
  state.position = position_;
  state.slots = is_stopped_ ? 0 : options_.slots;
  // The position tells the coordinator that the results of ended actions are here.
  for (const PartName& output : outputs_)
    if (output.stage.action >= position_.ended || !results_.contains(output.stage))
      state.outputs.push_back(output);
  for (const auto& [name, task] : tasks_) state.tasks.push_back(name);
  for (const auto& [action, error] : ends_)
    if (!error.empty()) state.failures.push_back({action, error});
  return state;
}

void FlowExecutor::send_progress(const FlowContext& context) const {
  if (configuration_)
    context.send(*configuration_->coordinator,
                 FlowProgress{position_, is_stopped_ ? 0 : options_.slots});
}

void FlowExecutor::stop(const FlowContext& context) {
  is_stopped_ = true;
  send_progress(context);
}

void FlowExecutor::report(const FlowContext& context, const PartName& task, TaskOutcome outcome,
                          std::string error, const flow::TaskCounts& counts) const {
  const auto action = actions_.find(task.stage.action);
  TaskReport report{task, task, outcome, std::move(error), counts};
  if (action != actions_.end() && action->second->has(task.stage.stage, task.part))
    report.output = action->second->output_of(task.stage.stage, task.part);
  context.send(*configuration_->coordinator, std::move(report));
}

// --- tasks --------------------------------------------------------------------------------------

void FlowExecutor::on(const FlowContext& context, MemberId, const TaskOrder& order) {
  const PartName& name = order.task;
  if (tasks_.contains(name)) return;
  // The functions of a stage may use values that the program holds only during the action.
  const bool is_in_action =
      name.stage.action == position_.ended && position_.ended < position_.begun;
  if (!is_in_action || !actions_.at(name.stage.action)->has(name.stage.stage, name.part))
    return report(context, name, TaskOutcome::lacks_input);
  const ActionPtr action = actions_.at(name.stage.action);
  if (outputs_.contains(action->output_of(name.stage.stage, name.part)))
    return report(context, name, TaskOutcome::done);
  TaskState& task = tasks_[name];
  task.is_last_attempt = order.is_last_attempt;
  bool is_gone = false;
  for (const Action::Read& read : action->reads(name.stage.stage, name.part)) {
    const flow::Part end = read.part ? *read.part + 1 : action->stages[read.stage].parts;
    for (flow::Part part = read.part.value_or(0); part < end && !is_gone; ++part)
      is_gone = request_output(context, *action, read, part, &name) == Availability::gone;
  }
  if (is_gone) return give_up(context, name, TaskOutcome::lacks_input);
  start_if_ready(context, name, task);
  fetch_next(context);
}

auto FlowExecutor::request_output(const FlowContext& context, const Action& action,
                                  const Action::Read& read, flow::Part part, const PartName* task)
    -> Availability {
  const PieceName name{action.output_of(read.stage, part), read.piece};
  if (outputs_.contains(name.output)) return Availability::here;
  auto piece = pieces_.find(name);
  if (piece == pieces_.end()) {
    const StageName stage{action.id, read.stage};
    const auto holders = holders_.find(stage);
    if (holders == holders_.end() || part >= holders->second.size()) return Availability::gone;
    const MemberId holder = holders->second[part];
    if (holder == self_) context.send(*configuration_->coordinator, OutputLost{name.output, self_});
    if (holder == self_ || configuration_->find(holder) == nullptr) return Availability::gone;
    piece = pieces_.emplace(name, Piece{stage, holder}).first;
    queues_[holder].push_back(name);
  }
  if (task == nullptr) {
    piece->second.is_result = true;
  } else {
    piece->second.tasks.insert(*task);
    TaskState& reader = tasks_.at(*task);
    reader.reads.push_back(name);
    if (!piece->second.is_here) reader.missing.insert(name);
  }
  return piece->second.is_here ? Availability::here : Availability::coming;
}

void FlowExecutor::start_if_ready(const FlowContext& context, const PartName& name,
                                  TaskState& task) {
  if (task.runs || !task.missing.empty()) return;
  task.runs = true;
  context.output(RunTask{name, task.is_last_attempt});
}

void FlowExecutor::on(const FlowContext& context, const TaskEnded& ended) {
  const auto task = tasks_.find(ended.task);
  if (task == tasks_.end()) return;
  release(context, ended.task, task->second);
  tasks_.erase(task);
  // The driver drops the output of a task whose action was forgotten meanwhile, and stops tasks of
  // actions that have ended here.
  const ActionId action_id = ended.task.stage.action;
  if (action_id < forgotten_before_ || (!ended.error.empty() && action_id < position_.ended))
    return report(context, ended.task, TaskOutcome::lacks_input);
  if (!ended.error.empty()) return report(context, ended.task, TaskOutcome::failed, ended.error);
  const Action& action = *actions_.at(action_id);
  outputs_.insert(action.output_of(ended.task.stage.stage, ended.task.part));
  report(context, ended.task, TaskOutcome::done, {}, ended.counts);
}

void FlowExecutor::give_up(const FlowContext& context, const PartName& name, TaskOutcome outcome,
                           const std::string& error) {
  const auto task = tasks_.find(name);
  if (task == tasks_.end() || task->second.runs) return;
  release(context, name, task->second);
  tasks_.erase(task);
  report(context, name, outcome, error);
}

void FlowExecutor::release(const FlowContext& context, const PartName& task,
                           const TaskState& state) {
  for (const PieceName& name : state.reads) {
    const auto found = pieces_.find(name);
    if (found == pieces_.end()) continue;
    found->second.tasks.erase(task);
    drop_if_unused(context, found);
  }
}

void FlowExecutor::drop_if_unused(const FlowContext& context, Pieces::iterator piece) {
  if (!piece->second.tasks.empty() || piece->second.is_result) return;
  context.output(DropPiece{piece->first});
  pieces_.erase(piece);
}

// --- fetching -----------------------------------------------------------------------------------

void FlowExecutor::fetch_next(const FlowContext& context) {
  while (fetches_.size() < options_.fetches_max) {
    std::erase_if(queues_, [](const auto& queue) { return queue.second.empty(); });
    if (queues_.empty()) return;
    // Asks the holder with the fewest requests in flight, so that all holders share the work.
    const auto requests_to = [this](MemberId holder) {
      return std::ranges::count(fetches_, holder,
                                [](const auto& fetch) { return fetch.second.holder; });
    };
    auto& [holder, queue] = *std::ranges::min_element(
        queues_, {}, [&](const auto& each) { return requests_to(each.first); });
    const std::size_t share = (queue.size() + options_.fetches_max - 1) / options_.fetches_max;
    const std::uint32_t fetch = ++last_fetch_;
    std::vector<PieceName> asked;
    while (!queue.empty() && asked.size() < std::min(share, PieceRequest::pieces_max)) {
      const auto piece = pieces_.find(queue.front());
      if (piece != pieces_.end() && piece->second.fetch == 0 && !piece->second.is_here &&
          piece->second.holder == holder) {
        piece->second.fetch = fetch;
        asked.push_back(queue.front());
      }
      queue.pop_front();
    }
    if (asked.empty()) continue;
    context.send(holder, PieceRequest{fetch, asked, 0});
    fetches_[fetch] = {holder, std::move(asked)};
  }
}

void FlowExecutor::on(const FlowContext& context, MemberId from, const PieceRequest& request) {
  context.output(ReadPieces{from, request});
}

void FlowExecutor::on(const FlowContext& context, const PiecesRead& read) {
  if (configuration_->find(read.reader) != nullptr) context.send(read.reader, read.chunks);
}

void FlowExecutor::on(const FlowContext& context, MemberId from, const PieceChunks& answer) {
  const auto fetch = fetches_.find(answer.fetch);
  if (fetch == fetches_.end() || fetch->second.holder != from || fetch->second.storing > 0) return;
  for (const PieceChunk& chunk : answer.chunks) take(context, from, answer.fetch, chunk);
  continue_fetch(context, answer.fetch);
}

void FlowExecutor::take(const FlowContext& context, MemberId from, std::uint32_t fetch,
                        const PieceChunk& chunk) {
  const auto piece = pieces_.find(chunk.piece);
  if (piece == pieces_.end() || piece->second.fetch != fetch ||
      piece->second.next_chunk != chunk.chunk || piece->second.has_last_chunk)
    return;
  if (!chunk.error.empty()) return lose(context, chunk.piece, TaskOutcome::failed, chunk.error);
  if (chunk.is_missing) {
    context.send(*configuration_->coordinator, OutputLost{chunk.piece.output, from});
    return lose(context, chunk.piece, TaskOutcome::lacks_input);
  }
  ++piece->second.next_chunk;
  piece->second.has_last_chunk = chunk.is_last;
  ++fetches_.at(fetch).storing;
  context.output(StorePiece{fetch, piece->second.stage, chunk});
}

void FlowExecutor::on(const FlowContext& context, const PieceStored& stored) {
  on_stored(context, stored);
  const auto fetch = fetches_.find(stored.fetch);
  if (fetch == fetches_.end()) return;
  --fetch->second.storing;
  continue_fetch(context, stored.fetch);
}

void FlowExecutor::on_stored(const FlowContext& context, const PieceStored& stored) {
  const auto found = pieces_.find(stored.piece);
  if (found == pieces_.end() || found->second.fetch != stored.fetch) return;
  Piece& piece = found->second;
  if (!stored.error.empty()) return lose(context, stored.piece, TaskOutcome::failed, stored.error);
  if (!stored.is_last) return;
  piece.fetch = 0;
  piece.is_here = true;
  for (const PartName& name : piece.tasks) {
    TaskState& task = tasks_.at(name);
    task.missing.erase(stored.piece);
    start_if_ready(context, name, task);
  }
  if (piece.is_result && --results_missing_ == 0) gather(context);
}

void FlowExecutor::continue_fetch(const FlowContext& context, std::uint32_t id) {
  Fetch& fetch = fetches_.at(id);
  if (fetch.storing > 0) return;
  std::erase_if(fetch.pieces, [&](const PieceName& name) {
    const auto piece = pieces_.find(name);
    return piece == pieces_.end() || piece->second.fetch != id;
  });
  if (!fetch.pieces.empty()) {
    const std::uint32_t chunk = pieces_.at(fetch.pieces.front()).next_chunk;
    return context.send(fetch.holder, PieceRequest{id, fetch.pieces, chunk});
  }
  fetches_.erase(id);
  fetch_next(context);
}

void FlowExecutor::lose(const FlowContext& context, const PieceName& name, TaskOutcome outcome,
                        const std::string& error) {
  const auto found = pieces_.find(name);
  if (found == pieces_.end()) return;
  const Piece piece = std::move(found->second);
  pieces_.erase(found);
  context.output(DropPiece{name});
  if (piece.is_result && outcome == TaskOutcome::failed)
    context.out.push_back(Fail{"a part of a result cannot be fetched: " + error});
  for (const PartName& task : piece.tasks) give_up(context, task, outcome, error);
}

void FlowExecutor::on(const FlowContext& context, MemberId, const StageHolders& holders) {
  holders_[holders.stage] = holders.holders;
  gather(context);
}

// --- actions ------------------------------------------------------------------------------------

void FlowExecutor::on(const FlowContext& context, const BeginAction& begin) {
  const ActionPtr& action = begin.action;
  actions_[action->id] = action;
  for (flow::StageId stage = 0; stage < action->stages.size(); ++stage)
    if (action->is_kept[stage] && action->names[stage].action == action->id)
      kept_.insert(action->names[stage]);
  if (action->gathers) results_.insert(action->names[action->last()]);
  position_.begun = action->id + 1;
  position_.fingerprint = action->fingerprint;
  send_progress(context);
  gather(context);
}

void FlowExecutor::on(const FlowContext& context, const ProgramReturned&) {
  position_.has_returned = true;
  send_progress(context);
}

void FlowExecutor::on(const FlowContext& context, MemberId, const ActionEnd& end) {
  ends_[end.action] = end.error;
  gather(context);
}

void FlowExecutor::gather(const FlowContext& context) {
  if (position_.ended == position_.begun) return;
  const Action& action = *actions_.at(position_.ended);
  const auto end = ends_.find(action.id);
  if (end == ends_.end()) return;
  if (!end->second.empty() || !action.gathers) return end_action(context, end->second);
  const flow::StageId last = action.last();
  results_missing_ = 0;
  for (flow::Part part = 0; part < action.stages[last].parts; ++part)
    if (request_output(context, action, {last, part, 0}, part, nullptr) != Availability::here)
      ++results_missing_;
  if (results_missing_ > 0) return fetch_next(context);
  for (flow::Part part = 0; part < action.stages[last].parts; ++part) {
    const PieceName name{action.output_of(last, part), 0};
    const auto piece = pieces_.find(name);
    if (piece == pieces_.end()) continue;
    if (outputs_.insert(name.output).second) {
      context.output(KeepPiece{name});
      for (const PartName& task : piece->second.tasks) std::erase(tasks_.at(task).reads, name);
      piece->second.tasks.clear();
    }
    // The task may have been run here, too, while the piece was fetched.
    piece->second.is_result = false;
    drop_if_unused(context, piece);
  }
  end_action(context, {});
}

void FlowExecutor::end_action(const FlowContext& context, std::string error) {
  std::vector<PartName> waiting;
  for (const auto& [name, task] : tasks_)
    if (!task.runs) waiting.push_back(name);
  for (const PartName& name : waiting) give_up(context, name, TaskOutcome::lacks_input);
  context.output(ActionEnded{position_.ended++, std::move(error)});
  send_progress(context);
}

void FlowExecutor::on(const FlowContext&, const ReleaseStage& release) {
  released_[release.stage] = position_.begun;
}

bool FlowExecutor::keeps(const StageName& stage, ActionId before) const {
  if (stage.action >= before) return true;
  if (!kept_.contains(stage)) return false;
  // A stage that the program released before it began action n may be read by the actions before n.
  const auto released = released_.find(stage);
  return released == released_.end() || released->second > before;
}

/// Looks only at what has changed, because a long program has many results, which stay.
void FlowExecutor::on(const FlowContext& context, MemberId, const ForgetActions& forget) {
  if (forget.before <= forgotten_before_ || forget.before > position_.ended) return;
  const ActionId first = std::exchange(forgotten_before_, forget.before);
  drop_outputs(context, {first, 0}, {forgotten_before_, 0});
  std::erase_if(released_, [&](const auto& released) {
    const auto& [stage, begun] = released;
    if (begun > forgotten_before_) return false;
    drop_outputs(context, stage, {stage.action, stage.stage + 1});
    kept_.erase(stage);
    return true;
  });
  std::erase_if(holders_,
                [&](const auto& holders) { return holders.first.action < forgotten_before_; });
  for (auto known = actions_.lower_bound(first);
       known != actions_.end() && known->first < forgotten_before_; ++known) {
    // The action may have computed outputs of earlier stages again, which were dropped before.
    for (const StageName& stage : known->second->names)
      if (stage.action < first) drop_outputs(context, stage, {stage.action, stage.stage + 1});
    if (!known->second->reads) continue;
    // Drops `reads`, because the functions of the stages hold data of the program.
    auto without_reads = std::make_shared<Action>(*known->second);
    without_reads->reads = nullptr;
    known->second = std::move(without_reads);
  }
  context.output(DropActions{forgotten_before_});
}

/// Drops the outputs of the stages from `first` to the one before `end` that nothing can read.
void FlowExecutor::drop_outputs(const FlowContext& context, const StageName& first,
                                const StageName& end) {
  auto output = outputs_.lower_bound({first, 0});
  while (output != outputs_.end() && output->stage < end) {
    if (keeps(output->stage, forgotten_before_) || results_.contains(output->stage)) {
      ++output;
      continue;
    }
    context.output(DropOutput{*output});
    output = outputs_.erase(output);
  }
}

}  // namespace starling::core
