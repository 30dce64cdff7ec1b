/// The actor of one member of a job, in one process or on several nodes. It drives
/// core::MemberCore, the same state machine that the simulator tests under faults, with a real
/// clock, computations, and mailboxes or a network.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/job/job_context.hpp"
#include "starling/actor/job/node_callbacks.hpp"
#include "starling/actor/job/step_executor.hpp"
#include "starling/base/check.hpp"
#include "starling/base/random.hpp"
#include "starling/engine/core/member/member_core.hpp"

namespace starling::actor {

class MemberHost : public actor::MemberActor::base {
 public:
  MemberHost(caf::actor_config& config, JobContextPtr job_context, core::MemberOptions options,
             std::shared_ptr<const NodeCallbacks> node = nullptr)
      : actor::MemberActor::base(config),
        job_context_(std::move(job_context)),
        node_(std::move(node)),
        // Each incarnation of a member has random numbers of its own.
        random_(Random::stream(job_context_->seed, options.self.id, options.self.incarnation)),
        executor_(job_context_, options.self.id),
        core_(std::move(options)) {
    const core::MemberId id = core_.self().id;
    if (job_context_->timeline != nullptr && core_.self().works)
      timeline_ = &job_context_->timeline->of(id);
    else if (job_context_->trace_buffer && core_.self().works)
      timeline_ = &own_timeline_.emplace(job_context_->trace_buffer, id, job_context_->now());
    set_exception_handler([this](const std::exception_ptr& thrown) -> caf::error {
      const std::string why = core::name_of(core_.self()) + ": " + run_catching([&] {
                                                                     std::rethrow_exception(thrown);
                                                                   }).value_or("failed");
      if (node_) node_->report_exception(why);
      report_failure(why);
      refuse_questions();
      return caf::exit_reason::user_shutdown;
    });
  }

  /// Releases the directory, whose actors refer to each other, and the promises, which refer to
  /// this actor: the cycles would never be freed.
  void on_exit() override {
    if (timeline_ != nullptr) timeline_->end(job_context_->now());
    directory_.reset();
    questions_.clear();
  }

  actor::MemberActor::behavior_type make_behavior() override {
    // CAF compares a message with these in turn, so the most frequent one comes first.
    return {
        [this](const core::LocalMessage& local) {
          run([&](Core& member, const Context& context) {
            member.on_local_message(context, local);
          });
        },
        [this](const actor::DirectoryPtr& directory) {
          directory_ = directory;
          run([](Core& member, const Context& context) { member.prepare(context); });
        },
        [this](actor::start_atom) {
          run([](Core& member, const Context& context) { member.start(context); });
        },
        [this](const actor::EnvelopePtr& envelope) {
          run([&](Core& member, const Context& context) { member.on_packet(context, *envelope); });
        },
        [this](const actor::Planned& result) {
          run([&](Core& member, const Context& context) {
            member.on_input(context, core::PlanResult{result.step, result.plan});
          });
        },
        [this](const actor::PartsComputed& computed) {
          run([&](Core& member, const Context& context) {
            member.on_input(context, core::PartsResult{computed.step, computed.parts});
          });
        },
        [this](const actor::Computed& computed) { on_computed(computed); },
        [this](const actor::ComputeFailed& failure) { on_failed(failure); },
        [this](const actor::TimerFired& tick) {
          run([&](Core& member, const Context& context) { member.on_timer(context, tick.key); });
        },
        [this](actor::timer_atom) {
          accept_due_update();
          resume_if_due();
        },
        [this](const actor::LivenessUpdate& update) { on_liveness(update); },
        [this](const actor::Pause& pause) {
          ++pause_count_;
          on_pause(pause);
          publish();
        },
        [this](actor::leave_atom) {
          run([](Core& member, const Context& context) { member.leave(context); });
        },
        [this](const core::Stop&) {
          run([](Core& member, const Context& context) { member.stop(context); });
        },
        [this](actor::no_delays_atom) {
          executor_.skip_delays();
          accept_due_update();
          on_pause({});
        },
        [this](actor::report_credit_atom) {
          may_report_ = true;
          report_new_step(/*is_prompt=*/false);
        },
        [this](const core::Snapshot& request) {
          run([&](Core& member, const Context& context) { member.on_input(context, request); });
        },
        [this](actor::step_atom) -> actor::Answer<core::Step> {
          const core::Answer answer = core_.answer(core::AskStep{});
          if (const auto* refused = std::get_if<core::Refusal>(&answer))
            return actor::refusal(refused->why);
          return std::get<core::WorkerStep>(answer).step;
        },
        [this](actor::steps_atom) { return answer<core::StepsReport>(core::AskSteps{}); },
        [this](actor::read_atom, const core::AskValue& question) {
          return answer<core::Value>(question);
        },
        [this](const actor::AskMember& question) { return ask(question); },
        [this](actor::report_atom) { publish(); },
        [this](const actor::ReadRanges& request) { return read_primary_ranges(request); },
        [this](actor::quit_atom) {
          refuse_questions();
          quit();
        },
    };
  }

 private:
  using Core = core::MemberCore;
  using Context = core::MemberContext;

  actor::MemberActor self() { return this; }
  [[nodiscard]] const core::Training& training() const { return core_.role<core::Training>(); }

  /// Empty lists, whose memory the next event uses again. One set for each thread takes less memory
  /// than one for each of thousands of members.
  struct Lists {
    core::MemberEffects member;
    core::EffectScratch core;
  };
  static Lists& spare_lists() {
    static thread_local Lists lists;
    return lists;
  }

  /// Runs one event of the core, then its effects.
  template <class Event>
  void run(Event event) {
    // A message from another node may make a check fail here, but must not end the process.
    std::optional<CheckScope> scope;
    if (node_) scope.emplace(throw_broken_invariant);
    core::MemberEffects effects = std::exchange(spare_lists().member, {});
    const core::Time now = job_context_->now();
    event(core_, Context{now, random_, effects, &spare_lists().core});
    if (timeline_ != nullptr && training().worker() != nullptr)
      timeline_->follow(*training().worker(), now);
    record_deal();
    for (core::MemberEffect& effect : effects) std::visit([&](auto& e) { execute(e); }, effect);
    effects.clear();
    spare_lists().member = std::move(effects);
    if (!outgoing_.empty()) node_->send(std::exchange(outgoing_, {}));
    report_new_step(/*is_prompt=*/true);
    if (node_ && published_ != Published{core_}) publish();
  }

  /// In one process: records a new deal before any update that follows it is sent.
  void record_deal();

  void execute(core::Dispatch& dispatch) { outgoing_.push_back(std::move(dispatch.envelope)); }
  void execute(core::LocalMessage& local) {
    if (!directory_) return;
    const MemberActor& to = directory_->members[local.to];
    actor::send(this, to, std::move(local));
  }
  void execute(const core::MemberTimer& timer) { schedule(timer.at, actor::TimerFired{timer.key}); }
  void execute(const core::Plan& plan) { executor_.plan(self(), plan); }
  void execute(core::Compute& compute);
  void execute(const core::HandInNow& hand_in);
  void execute(const core::Done&) { report_to_observer(/*is_prompt=*/false); }
  void execute(const core::Fail& failure) { record_failure(failure.why); }
  void execute(const core::Excluded&) { node_->on_excluded(); }
  void execute(const core::IsIn<core::FlowOutputs> auto&) {
    STARLING_CHECK(!"an effect of another role");
  }
  void execute(core::ObservedState& observed) {
    if (directory_) actor::send(this, directory_->observer, std::move(*observed.state));
  }

  /// Sends `message` to this actor at `time`.
  template <class Message>
  void schedule(core::Time time, Message message) {
    const auto delay = std::max(core::Time{0}, time - job_context_->now());
    actor::send_later(this, self(), std::chrono::ceil<std::chrono::microseconds>(delay), message);
  }

  void on_computed(const actor::Computed& computed);

  /// Passes the computed update to the core if its injected delay is over; returns whether it is.
  bool accept_due_update() {
    const auto computed = executor_.take_due();
    if (!computed) return false;
    run([&](Core& member, const Context& context) {
      member.on_input(context, core::ComputeResult{computed->step, computed->update,
                                                   std::exchange(postponed_for_, {})});
    });
    return true;
  }

  void on_pause(const actor::Pause& pause) {
    paused_until_ = job_context_->now() + pause.duration;
    if (pause.duration > core::Time{0})
      schedule(paused_until_, actor::timer_atom_v);
    else
      resume_if_due();
  }

  void begin_computation(core::Compute& compute);
  /// Starts the computation that was postponed or deferred, if the pause or the delay is over.
  void resume_if_due();

  void on_failed(const actor::ComputeFailed& failure);

  void on_liveness(const actor::LivenessUpdate& update) {
    run([&](Core& member, const Context& context) {
      if (update.is_dead)
        member.suspect(context, update.member, update.incarnation);
      else
        member.trust(context, update.member, update.incarnation);
    });
  }

  /// Records why the member cannot go on, unless a reason is recorded already.
  void record_failure(const std::string& why) {
    if (!failure_.empty()) return;
    failure_ = why.empty() ? "failed" : why;
    report_failure(failure_);
    publish();
  }

  void report_failure(const std::string& why) {
    if (directory_) actor::send(this, directory_->observer, actor::Failure{why});
  }

  /// Answers a question to this member; T is the type of the answer that is expected.
  template <class T>
  [[nodiscard]] actor::Answer<T> answer(const core::Question& question) {
    core::Answer answer = core_.answer(question);
    if (const auto* refused = std::get_if<core::Refusal>(&answer))
      return actor::refusal(refused->why);
    return std::get<T>(std::move(answer));
  }

  /// Asks another member. The actor that has asked this one gets the answer, or an error if its own
  /// request times out.
  caf::typed_response_promise<core::Answer> ask(const actor::AskMember& question) {
    const core::Time now = job_context_->now();
    while (!questions_.empty() && questions_.begin()->second.forget_at <= now)
      questions_.erase(questions_.begin());  // later questions have later times
    auto promise = make_response_promise<core::Answer>();
    const std::uint64_t number = ++question_count_;
    questions_[number] = {promise, now + forget_questions_after};
    run([&](Core& member, const Context& context) {
      member.ask(context, question.member, {number, question.question});
    });
    return promise;
  }

  /// Answers all open questions, because this actor ends.
  void refuse_questions() {
    for (auto& [number, asked] : std::exchange(questions_, {}))
      asked.promise.deliver(
          core::Answer{core::Refusal{core::name_of(core_.self()) + " is not in the job any more"}});
  }

  void execute(core::MemberAnswer& answer) {
    const auto asked = questions_.find(answer.number);
    if (asked == questions_.end()) return;
    asked->second.promise.deliver(std::move(answer.answer));
    questions_.erase(asked);
  }

  /// Reports a new step, or that the worker is done and others have all its updates, if the
  /// observer has handled the last report.
  void report_new_step(bool is_prompt) {
    if (!directory_ || !may_report_ || training().worker() == nullptr) return;
    if (training().worker()->step() > last_reported_step_ ||
        (training().is_done() && !has_reported_done_))
      report_to_observer(is_prompt);
  }

  /// Sends the observer the worker's progress.
  void report_to_observer(bool is_prompt) {
    if (!directory_) return;
    actor::Report report = worker_report(*training().worker());
    report.is_prompt = is_prompt && report.step == last_reported_step_ + 1;
    // The observer adds up the losses, so only those since the last report are sent.
    report.loss_sum -= std::exchange(last_reported_loss_sum_, report.loss_sum);
    report.loss_count -= std::exchange(last_reported_loss_count_, report.loss_count);
    actor::send(this, directory_->observer, report);
    may_report_ = false;
    last_reported_step_ = report.step;
    has_reported_done_ = report.is_done;
  }

  [[nodiscard]] actor::Report worker_report(const core::Worker& worker) const;
  [[nodiscard]] actor::MemberReport report() const;
  /// Returns the value of MemberReport::copy_hash.
  [[nodiscard]] core::CopyHash copy_hash() const;
  /// Returns the value of MemberReport::departed.
  [[nodiscard]] std::vector<core::WorkerProgress> departed_workers() const;
  /// On a node: passes this member's state to the node.
  void publish();
  /// Returns the states of the ranges that this member is primary of, as ReadRanges asks for them.
  [[nodiscard]] std::vector<core::RangeState> read_primary_ranges(const actor::ReadRanges& request);

  /// A question that this member has asked another one.
  struct AskedQuestion {
    caf::typed_response_promise<core::Answer> promise;
    core::Time forget_at{};
  };
  /// A question that was not answered for this time is forgotten; the actor that asked it has given
  /// up by then.
  static constexpr core::Time forget_questions_after = std::chrono::seconds{60};

  /// The hash of the copy that report() has hashed last.
  mutable core::CopyHash copy_hash_;

  JobContextPtr job_context_;
  /// Null in one process.
  std::shared_ptr<const NodeCallbacks> node_;
  /// The actors of the job in one process; null on nodes.
  actor::DirectoryPtr directory_;
  /// The packets of the current event, which are sent when it ends.
  std::vector<core::Envelope> outgoing_;
  Random random_;
  StepExecutor executor_;
  Core core_;
  /// Where to record what the worker does; null if it is not recorded, or if there is no worker.
  WorkerTimeline* timeline_ = nullptr;
  /// On nodes: what `timeline_` points to.
  std::optional<WorkerTimeline> own_timeline_;
  /// False from each report until the observer returns a report credit.
  bool may_report_ = true;
  /// True if the last report said that the worker is done.
  bool has_reported_done_ = false;
  /// The step, the sum of the losses and their number in the last report.
  core::Step last_reported_step_ = training().first_step();
  double last_reported_loss_sum_ = 0;
  std::uint64_t last_reported_loss_count_ = 0;
  /// On nodes: the parts of the state whose changes are published at once.
  struct Published {
    Published() = default;
    explicit Published(const Core& core)
        : configuration(core.configuration()), state(core.state()) {
      const auto& training = core.role<core::Training>();
      if (training.dealer() != nullptr) deal = training.dealer()->shared_deal();
      is_done = training.worker() != nullptr && training.is_done();
    }
    bool operator==(const Published&) const = default;

    core::ConfigurationPtr configuration;
    std::shared_ptr<const core::Deal> deal;
    Core::State state = Core::State::idle;
    bool is_done = false;
  };
  Published published_;
  /// In one process: the deal that was recorded last.
  std::shared_ptr<const core::Deal> recorded_deal_;
  std::uint64_t pause_count_ = 0;
  core::Time paused_until_{};
  /// The computation that starts when the pause is over.
  std::optional<core::Compute> postponed_compute_;
  core::Time postponed_from_{};
  /// How long a pause has postponed the computation whose update is due.
  core::Time postponed_for_{};
  /// Why the member cannot go on; empty if it can.
  std::string failure_;
  std::uint64_t question_count_ = 0;
  /// The questions without an answer, by number. This actor forgets a question after
  /// `forget_questions_after`; the core forgets the oldest ones if there are too many.
  std::map<std::uint64_t, AskedQuestion> questions_;
};

}  // namespace starling::actor
