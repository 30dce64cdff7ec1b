/// The actor of one member of a job that runs a flow. It drives core::MemberCore, the same state
/// machine that the simulator tests under faults, and keeps the records that its member has.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/compute/compute_pool.hpp"
#include "starling/actor/compute/task.hpp"
#include "starling/actor/flow_job/flow_counter.hpp"
#include "starling/actor/flow_job/program_run.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/actor/job/node_callbacks.hpp"
#include "starling/base/check.hpp"
#include "starling/base/random.hpp"
#include "starling/engine/core/flow/output_store.hpp"
#include "starling/engine/core/member/member_core.hpp"

namespace starling::actor {

/// The state that the members of one flow on one node share. Outlives the actors.
struct FlowJobContext {
  std::shared_ptr<const FlowJobOptions> options;
  std::shared_ptr<flow::SpillFolder> memory;
  FlowCounter counter;
  std::unique_ptr<ComputePool> pool;
  std::atomic<bool> is_stopped = false;
  const caf::actor_clock* clock = nullptr;
  caf::actor_clock::time_point start;

  [[nodiscard]] core::Time now() const { return clock->now() - start; }
};

class FlowHost : public FlowMemberActor::base {
 public:
  FlowHost(caf::actor_config& config, std::shared_ptr<FlowJobContext> job_context,
           core::MemberOptions options, std::shared_ptr<const NodeCallbacks> node,
           std::shared_ptr<ProgramRun> program)
      : FlowMemberActor::base(config),
        job_context_(std::move(job_context)),
        node_(std::move(node)),
        program_(std::move(program)),
        random_(Random::stream(options.self.id, options.self.incarnation)),
        store_(std::in_place, job_context_->memory, chunk_bytes),
        core_(std::move(options)) {
    set_exception_handler([this](const std::exception_ptr& thrown) -> caf::error {
      const std::string why = core::name_of(core_.self()) + ": " + run_catching([&] {
                                                                     std::rethrow_exception(thrown);
                                                                   }).value_or("failed");
      node_->report_exception(why);
      program_->cancel();
      return caf::exit_reason::user_shutdown;
    });
  }

  /// Releases the records, because the node keeps the handle of an actor that has ended.
  void on_exit() override { store_.reset(); }

  FlowMemberActor::behavior_type make_behavior() override {
    return {
        [this](start_atom) {
          run([](Core& member, const Context& context) { member.start(context); });
        },
        [this](const EnvelopePtr& envelope) {
          run([&](Core& member, const Context& context) { member.on_packet(context, *envelope); });
        },
        [this](const TimerFired& tick) {
          run([&](Core& member, const Context& context) { member.on_timer(context, tick.key); });
        },
        [this](const LivenessUpdate& update) {
          run([&](Core& member, const Context& context) {
            if (update.is_dead)
              member.suspect(context, update.member, update.incarnation);
            else
              member.trust(context, update.member, update.incarnation);
          });
        },
        [this](const FlowActionBegun& begun) {
          gathers_ = begun.action->gathers;
          action_ended_ = std::make_shared<std::atomic<bool>>(false);
          job_context_->counter.begin(*begun.action, *begun.plan);
          store_->begin(begun.action, *begun.plan);
          give(core::BeginAction{begun.action});
        },
        [this](const FlowPartEnded& part) {
          if (part.output) store_->put(part.ended.task, part.output);
          // A task that was stopped has not failed, and other nodes may not know of the stop yet.
          if (part.output || !job_context_->is_stopped) give(part.ended);
        },
        [this](const FlowInput& input) {
          std::visit([this](const auto& one) { give(one); }, input);
        },
        [this](const FlowProgramEnded& ended) {
          has_returned_ = true;
          error_ = ended.error;
          if (!job_context_->is_stopped) give(core::ProgramReturned{});
          publish();
        },
        [this](const core::Stop&) {
          program_->cancel();
          if (!std::exchange(has_begun_, true)) has_returned_ = true;
          run([](Core& member, const Context& context) { member.stop(context); });
          publish();
        },
        [this](leave_atom) {
          run([](Core& member, const Context& context) { member.leave(context); });
        },
        [this](report_atom) { publish(); },
        [this](quit_atom) {
          program_->cancel();
          quit();
        },
    };
  }

 private:
  using Core = core::MemberCore;
  using Context = core::MemberContext;
  /// A member asks for the next chunk when it has stored the one before, so a larger chunk means
  /// fewer waits.
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 20U;

  FlowMemberActor self() { return this; }

  /// Passes one event to the core, and then executes the effects of the event.
  template <class Event>
  void run(Event event) {
    // A message from another node may make a check fail here, but must not end the process.
    const CheckScope scope{throw_broken_invariant};
    core::MemberEffects effects;
    event(core_, Context{job_context_->now(), random_, effects});
    for (core::MemberEffect& effect : effects) std::visit([&](auto& e) { execute(e); }, effect);
    if (!outgoing_.empty()) node_->send(std::exchange(outgoing_, {}));
    if (core_.state() == Core::State::member && !std::exchange(has_begun_, true))
      program_->start(self());
    const auto seen = std::pair{core_.state(), core_.configuration()};
    if (seen == published_) return;
    // In epoch 1, the coordinator takes over from no other member.
    const core::ConfigurationPtr& known = core_.configuration();
    if (known && known->coordinator == core_.self().id && known->epoch > 1 && !was_in_charge_)
      job_context_->counter.on_takeover();
    was_in_charge_ = known && known->coordinator == core_.self().id;
    publish();
  }
  template <class Input>
  void give(const Input& input) {
    run([&](Core& member, const Context& context) { member.on_input(context, input); });
  }

  void execute(core::Dispatch& dispatch) { outgoing_.push_back(std::move(dispatch.envelope)); }
  void execute(const core::MemberTimer& timer) {
    const auto delay = std::max(core::Time{0}, timer.at - job_context_->now());
    send_later(this, self(), std::chrono::ceil<std::chrono::microseconds>(delay),
               TimerFired{timer.key});
  }
  void execute(const core::Fail& failure) {
    error_ = failure.why;
    program_->cancel();
    publish();
  }
  void execute(const core::Excluded&) {
    node_->on_excluded();
    job_context_->counter.on_outputs_lost();
    program_->cancel();
  }
  void execute(const core::RunTask& run_task);
  void execute(const core::ReadPieces& read) {
    give(core::PiecesRead{read.reader, store_->execute(read)});
  }
  void execute(const core::StorePiece& store) { give(store_->execute(store)); }
  template <class Drop>
  requires requires(core::OutputStore& store, const Drop& drop) { store.execute(drop); }
  void execute(const Drop& drop) { store_->execute(drop); }
  void execute(const core::ActionEnded& ended) {
    // Other members have computed the parts that tasks of this action still compute here.
    *action_ended_ = true;
    if (!ended.error.empty())
      program_->end_action(Error{ended.error});
    else if (gathers_)
      program_->end_action(store_->results(ended.action));
    else
      program_->end_action(std::vector<flow::Output>{});
  }
  void execute(const core::PartDone& part) { job_context_->counter.on_part_done(part.task); }
  void execute(const core::FlowEnded&) {
    has_ended_ = true;
    publish();
  }
  template <class Other>
  void execute(const Other&) {
    STARLING_CHECK(!"an effect of another role, or of a job in one process");
  }

  void publish() {
    published_ = {core_.state(), core_.configuration()};
    node_->publish(report(), core_.configuration());
  }
  [[nodiscard]] MemberReport report() const {
    using State = MemberReport::State;
    MemberReport result;
    result.member = core_.self().id;
    result.incarnation = core_.self().incarnation;
    result.epoch = core_.configuration() ? core_.configuration()->epoch : 0;
    const bool has_failed = core_.state() == Core::State::failed || !error_.empty();
    if (core_.state() == Core::State::excluded) {
      result.state = State::excluded;
    } else if (has_failed && !job_context_->is_stopped) {
      result.state = State::failed;
      result.why = error_.empty() ? "failed" : error_;
    } else if (has_ended_ || (has_returned_ && job_context_->is_stopped)) {
      result.state = State::done;
    } else {
      result.state = core_.state() == Core::State::member ? State::running : State::joining;
    }
    return result;
  }

  std::shared_ptr<FlowJobContext> job_context_;
  std::shared_ptr<const NodeCallbacks> node_;
  std::shared_ptr<ProgramRun> program_;
  Random random_;
  std::optional<core::OutputStore> store_;
  core::MemberCore core_;
  std::vector<core::Envelope> outgoing_;
  std::optional<std::pair<Core::State, core::ConfigurationPtr>> published_;
  /// True once the action that the program has begun last has ended. The tasks of this action that
  /// still run here then end early.
  std::shared_ptr<std::atomic<bool>> action_ended_;
  /// True if the program waits for the outputs of the last stage.
  bool gathers_ = false;
  bool was_in_charge_ = false;
  bool has_begun_ = false;
  bool has_returned_ = false;
  bool has_ended_ = false;
  /// Why the program or the member has failed; empty if neither has.
  std::string error_;
};

}  // namespace starling::actor
