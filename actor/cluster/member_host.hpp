/// The actor around one member of a job that runs on several nodes: core::MemberCore, which the
/// simulator runs through every fault, with real time, real computing and a real network.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/job/step_executor.hpp"
#include "starling/base/check.hpp"
#include "starling/engine/core/member/member_core.hpp"

namespace starling::actor {

/// Takes packets to the nodes of the members that they are for. Called from members' actors,
/// several at once.
using SendEnvelopes = std::function<void(std::vector<core::Envelope>)>;

template <class T>
class MemberHost : public actor::MemberActor::base {
 public:
  /// Calls `shut_out` once the member is excluded for good; calls `failed` where an exception ends
  /// the actor, which answers nobody from then on.
  MemberHost(caf::actor_config& config, JobContextPtr job_context, core::MemberOptions<T> options,
             SendEnvelopes send, std::function<void()> shut_out,
             std::function<void(const std::string&)> failed)
      : actor::MemberActor::base(config),
        job_context_(std::move(job_context)),
        send_(std::move(send)),
        shut_out_(std::move(shut_out)),
        failed_(std::move(failed)),
        // Incarnations of one member draw different numbers.
        random_(Random::stream(job_context_->seed, options.self.id, options.self.incarnation)),
        executor_(job_context_, options.self.id, ExecutorPlace::own_thread_if_brief),
        node_(std::move(options)) {
    set_exception_handler([this](const std::exception_ptr& thrown) -> caf::error {
      failed_("member " + std::to_string(node_.self().id) + ": " +
              fault_of([&] { std::rethrow_exception(thrown); }).value_or("failed"));
      return caf::exit_reason::user_shutdown;
    });
  }

  actor::MemberActor::behavior_type make_behavior() override {
    return {
        [this](actor::start_atom) {
          run([](Core& node, const Context& context) { node.start(context); });
        },
        [this](const actor::EnvelopePtr& envelope) {
          run([&](Core& node, const Context& context) { node.on_packet(context, *envelope); });
        },
        [this](const actor::Planned& plan) {
          run([&](Core& node, const Context& context) {
            node.on_plan(context, plan.step, plan.wanted);
          });
        },
        [this](const actor::Computed& computed) {
          const core::Time ready = executor_.keep(computed, random_);
          if (!accept_due()) tick_at(ready, actor::tick_atom_v);
        },
        [this](const actor::ComputeFailed& failure) { on_failed(failure); },
        [this](const actor::KeyTick& tick) {
          run([&](Core& node, const Context& context) { node.on_timer(context, tick.key); });
        },
        [this](actor::tick_atom) {
          accept_due();
          wake();
        },
        [this](const actor::LivenessUpdate& update) { on_liveness(update); },
        [this](const actor::Pause& pause) { on_pause(pause); },
        [this](actor::leave_atom) {
          run([](Core& node, const Context& context) { node.leave(context); });
        },
        [this](const core::Stop&) {
          run([](Core& node, const Context& context) { node.stop(context); });
        },
        [this](actor::skip_delays_atom) {
          executor_.skip_delays();
          accept_due();
          on_pause({});
        },
        [this](actor::report_atom) { return report(); },
        [this](actor::step_atom) { return node_.configuration(); },
        [this](const actor::ReadRanges& wanted) { return primaries(wanted); },
        [this](actor::quit_atom) { quit(); },
    };
  }

 private:
  using Core = core::MemberCore<T>;
  using Context = core::MemberContext;

  [[noreturn]] static void throw_broken(const char* condition, const char* file, int line) {
    throw std::logic_error{std::string{"broken invariant: "} + condition + ", " + file + ":" +
                           std::to_string(line)};
  }

  actor::MemberActor self() { return this; }

  /// Runs one event of the core, then its effects.
  template <class Event>
  void run(Event event) {
    // A message from another member may break this member, but never the node.
    const CheckScope scope{throw_broken};
    core::MemberEffects effects;
    event(node_, Context{job_context_->now(), random_, effects});
    for (core::MemberEffect& effect : effects) std::visit([&](auto& e) { execute(e); }, effect);
    if (!parting_.empty()) send_(std::exchange(parting_, {}));
  }

  void execute(core::Dispatch& dispatch) { parting_.push_back(std::move(dispatch.envelope)); }
  void execute(const core::MemberTimer& timer) { tick_at(timer.at, actor::KeyTick{timer.key}); }
  void execute(const core::Plan& plan) { executor_.plan(self(), plan.step); }
  /// Every owner holds all that the worker pushed before.
  void execute(core::Compute& compute) {
    if (job_context_->now() < paused_until_)
      postponed_ = std::move(compute);
    else
      executor_.compute(self(), compute);
  }
  void execute(const core::Done&) {}
  void execute(const core::Fail& failure) { end_with(failure.why); }
  void execute(const core::Excluded&) { shut_out_(); }

  template <class Tick>
  void tick_at(core::Time at, Tick tick) {
    const auto delay = std::max(core::Time{0}, at - job_context_->now());
    actor::send_later(this, self(), std::chrono::ceil<std::chrono::microseconds>(delay), tick);
  }

  bool accept_due() {
    const auto computed = executor_.due();
    if (!computed) return false;
    run([&](Core& node, const Context& context) {
      node.on_update(context, computed->step, computed->update);
    });
    return true;
  }

  void on_pause(const actor::Pause& pause) {
    paused_until_ = job_context_->now() + pause.duration;
    if (pause.duration > core::Time{0})
      tick_at(paused_until_, actor::tick_atom_v);
    else
      wake();
  }

  void wake() {
    if (!postponed_ || job_context_->now() < paused_until_) return;
    core::Compute compute = *std::exchange(postponed_, std::nullopt);
    executor_.compute(self(), compute);
  }

  void on_failed(const actor::ComputeFailed& failure) {
    if (failure.fatal)
      return end_with("worker " + std::to_string(node_.self().id) + ", step " +
                      std::to_string(failure.step + 1) + ": " + failure.why);
    run([&](Core& node, const Context& context) {
      node.on_failure(context, failure.step, failure.why);
    });
  }

  void on_liveness(const actor::LivenessUpdate& update) {
    run([&](Core& node, const Context& context) {
      if (update.dead)
        node.suspect(context, update.member, update.incarnation);
      else
        node.trust(context, update.member, update.incarnation);
    });
  }

  /// Records why the job cannot go on.
  void end_with(const std::string& why) {
    if (!failure_.empty()) return;
    failure_ = why.empty() ? "failed" : why;
  }

  actor::MemberReport report() {
    using State = actor::MemberReport::State;
    actor::MemberReport result;
    result.member = node_.self().id;
    result.incarnation = node_.self().incarnation;
    result.why = failure_;
    result.epoch = node_.configuration() ? node_.configuration()->epoch : 0;
    if (node_.state() == Core::State::member)
      result.held = static_cast<std::uint32_t>(node_.replica().full_ranges().size());
    const core::Worker* worker = node_.worker();
    if (!failure_.empty() || node_.state() == Core::State::failed)
      result.state = State::failed;
    else if (node_.state() == Core::State::excluded)
      result.state = State::excluded;
    else if (node_.state() != Core::State::member)
      result.state = State::joining;
    else
      result.state = worker == nullptr || worker->done() ? State::done : State::running;
    result.is_paused = worker == nullptr || worker->done() || worker->waiting() || postponed_;
    if (worker == nullptr) return result;
    const auto counts = worker->gate_counts();
    result.worker = {.worker = result.member,
                     .step = worker->step(),
                     .samples = worker->samples(),
                     .waited = worker->waited(job_context_->now()),
                     .draws = counts.draws,
                     .passes = counts.passes,
                     .drawn = worker->drawn(),
                     .done = worker->done()};
    executor_.fill(result.worker);
    return result;
  }

  std::vector<core::RangeState> primaries(const actor::ReadRanges& wanted) {
    std::vector<core::RangeState> states;
    std::size_t bytes = 0;
    auto& replica = node_.replica();
    // A member that is joining holds no range; the ranges of an excluded one are out of date.
    if (node_.state() == Core::State::member)
      for (core::RangeId range = wanted.from;
           range < node_.configuration()->ranges.size() && bytes < wanted.bytes_max; ++range)
        if (replica.is_primary(range)) {
          states.push_back(replica.shard().hand_over(range));
          bytes += states.back().value.bytes().size();
        }
    return states;
  }

  JobContextPtr job_context_;
  SendEnvelopes send_;
  /// The envelopes that the current event sends, until it ends.
  std::vector<core::Envelope> parting_;
  std::function<void()> shut_out_;
  std::function<void(const std::string&)> failed_;
  Random random_;
  StepExecutor<actor::MemberActor> executor_;
  Core node_;
  core::Time paused_until_{};
  /// The computation that begins when the pause is over.
  std::optional<core::Compute> postponed_;
  std::string failure_;
};

}  // namespace starling::actor
