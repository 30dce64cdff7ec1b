#include "starling/engine/sim/steps/steps.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/engine/sim/steps/exchange_runner.hpp"
#include "starling/engine/sim/steps/late_releases.hpp"
#include "starling/engine/sim/steps/notify_requests.hpp"
#include "starling/engine/sim/steps/step_counts.hpp"
#include "starling/engine/sim/steps/step_draws.hpp"
#include "starling/engine/sim/steps/step_queue.hpp"
#include "starling/engine/sim/steps/waiter.hpp"

namespace starling::sim {
namespace {

class Simulation {
 public:
  Simulation(const StepOptions& options, Learner* learner)
      : options_(options),
        learner_(learner),
        never_waits_(options.workers == 1 || barrier::always_passes(options.barrier)),
        draws_others_(barrier::is_sampled(options.barrier)),
        rechecks_on_arrival_(!draws_others_ || options.recheck.arrival),
        sends_notices_(!rechecks_on_arrival_ && options.recheck.notify),
        has_coordinator_(core::keeps_steps_centrally(options.mode)),
        has_timers_(draws_others_ && (!options.recheck.arrival || options.recheck.interval)),
        by_probability_(decides_by_probability(options)),
        decides_by_step_(!draws_others_ && !barrier::needs_paces(options.barrier)),
        depends_on_min_only_(!draws_others_ && !decides_by_step_ &&
                             barrier::floor(options.barrier, 0).has_value()),
        exchange_(options),
        queue_(options.workers, to_duration(options.step_time.mean() * 1e9) + options.overhead),
        // Without probabilities, counts_ needs no barrier.
        counts_(by_probability_ ? options.barrier : barrier::Barrier{barrier::Asp{}},
                options.workers),
        draws_(options, sends_notices_),
        late_releases_(options),
        steps_(options.workers),
        waiters_(has_timers_ ? options.workers : 0),
        notify_requests_(sends_notices_ ? options.workers : 0) {}

  StepResult run() {
    result_.curve.reserve(options_.points);
    for (MemberId id = 0; id < options_.workers; ++id) begin_step(id);
    take_exchange_effects();
    std::uint64_t events = 0;
    while (const auto event = queue_.pop()) {
      if (++events % 65536 == 0 && !report_progress()) break;
      const auto soon = queue_.due_soon();
      if (soon && *soon < options_.workers) __builtin_prefetch(&steps_[*soon], 1);
      pass_time(event->at);
      // The wake-ups of the exchange have the numbers after those of the workers.
      if (event->worker < options_.workers)
        handle(event->worker);
      else
        exchange_.wake(event->worker - static_cast<MemberId>(options_.workers), now_);
      take_exchange_effects();
      if (counts_.running() == 0) break;
    }
    return finish();
  }

 private:
  /// Reports the progress. Returns false if the simulation is to end.
  bool report_progress() {
    if (!options_.on_progress) return true;
    stopped_ = !options_.on_progress(share_done(options_, now_, result_.updates));
    return !stopped_;
  }

  /// Adds the points of the curve before `to`, adds to the waiting and running times, and advances
  /// the clock to `to`.
  void pass_time(Time to) {
    for (Time at = next_point(); at < to && result_.curve.size() < options_.points;
         at = next_point())
      add_point(at);
    const auto elapsed = static_cast<double>((to - now_).count());
    wait_time_ += elapsed * static_cast<double>(waiting());
    run_time_ += elapsed * static_cast<double>(counts_.running());
    exchange_.pass_time(elapsed);
    now_ = to;
  }

  /// Returns how many workers wait at the barrier, which may be the exchange.
  [[nodiscard]] std::size_t waiting() const {
    return waiting_ + late_releases_.count() + exchange_.waiting_at_barrier();
  }

  [[nodiscard]] Time next_point() const { return time_of_point(options_, result_.curve.size()); }

  void add_point(Time at) {
    const bool is_running = counts_.running() > 0;
    result_.curve.push_back(
        {.at = at,
         .updates = result_.updates,
         .min = is_running ? counts_.min() : options_.steps_max,
         .median = counts_.median().value_or(options_.steps_max),
         .max = counts_.max(),
         .waiting = static_cast<double>(waiting()) / static_cast<double>(options_.workers)});
  }

  StepResult finish() {
    if (!stopped_ && counts_.running() > 0) pass_time(options_.horizon);
    if (result_.curve.size() < options_.points) add_point(now_);
    result_.elapsed = now_;
    if (options_.exchange) result_.exchange = exchange_.figures(run_time_);
    result_.waiting_share = run_time_ > 0 ? wait_time_ / run_time_ : 0;
    result_.steps = std::move(steps_);
    return std::move(result_);
  }

  /// Makes `worker` due after `delay` or, if it is away then and no coordinator draws for it, when
  /// it is back. Adds no event if that is beyond the horizon.
  void schedule(MemberId worker, Time delay) {
    if (has_timers_) waiters_[worker].stop_timer();
    if (!has_coordinator_ && delay <= options_.horizon - now_)
      delay = draws_.absences().available_at(worker, now_ + delay) - now_;
    if (delay > options_.horizon - now_) return;
    if (has_timers_) waiters_[worker].due_at = now_ + delay;
    queue_.push(now_ + delay, worker);
  }

  void begin_step(MemberId worker) {
    if (has_timers_) waiters_[worker].begin_step(now_);
    if (exchange_.read(worker, steps_[worker] + 1, now_)) compute(worker);
  }

  void compute(MemberId worker) {
    if (learner_) learner_->on_begin(worker, steps_[worker] + 1, now_);
    Time duration = options_.step_time.draw(step_time_random_);
    if (!options_.slowness.empty())
      duration = to_duration(static_cast<double>(duration.count()) * options_.slowness[worker]);
    duration = draws_.absences().time_to_work(worker, now_, duration + options_.overhead);
    schedule(worker, duration);
  }

  /// Does what the exchange asks for.
  void take_exchange_effects() {
    exchange_.take_effects(
        [&](Time at, std::uint32_t id) {
          if (at <= options_.horizon) queue_.push(at, static_cast<MemberId>(options_.workers) + id);
        },
        [&](MemberId worker) { compute(worker); }, [&](MemberId worker) { finish_step(worker); });
  }

  /// Handles the event of a worker that is due: it has computed its update, draws again, or is back
  /// and goes on.
  void handle(MemberId worker) {
    if (has_timers_ && waiters_[worker].due_at != now_) return;
    if (late_releases_.remove(worker)) return compute(worker);
    if (!has_timers_ || !waiters_[worker].waiting) return write_update(worker);
    Waiter& waiter = waiters_[worker];
    if (!waiter.pending_result) return draw_at_timer(worker);
    handle_draw(worker, *std::exchange(waiter.pending_result, std::nullopt));
  }

  void write_update(MemberId worker) {
    if (has_timers_) waiters_[worker].due_at = never;
    if (exchange_.write(worker, steps_[worker] + 1, now_)) finish_step(worker);
  }

  void finish_step(MemberId worker) {
    const Step step = ++steps_[worker];
    ++result_.updates;
    if (has_timers_) waiters_[worker].step_times.add(now_ - waiters_[worker].step_began_at);
    if (learner_) learner_->on_end(worker, step, now_);
    if (has_coordinator_ && step < options_.steps_max) ++result_.messages.arrivals;
    counts_.advance(step);
    result_.max_lag = std::max(result_.max_lag, step - counts_.min());
    if (sends_notices_) send_notices(worker);
    draws_.arrive(worker, now_, step);
    const bool is_in_run = draws_.is_in_run(worker, step);
    if (step >= options_.steps_max) {
      counts_.finish(step);
      recheck_waiters();
    } else if (const DrawResult result = try_to_pass(worker); result.pass && !result.decided_at) {
      release(worker, is_in_run);
      recheck_waiters();
    } else {
      recheck_waiters();  // comes before start_waiting(): the worker has drawn for this arrival
      start_waiting(worker, result);
    }
  }

  /// If `is_in_run`, the worker is in a run (barrier::run_to()) and goes on without a message.
  void release(MemberId worker, bool is_in_run) {
    if (has_coordinator_ && !is_in_run) ++result_.messages.releases;
    draws_.pass(worker, now_);
    const Time back_at = draws_.absences().available_at(worker, now_);
    if (back_at == now_) return begin_step(worker);
    if (has_timers_) waiters_[worker].begin_step(now_);
    late_releases_.add(worker);
    schedule(worker, back_at - now_);
  }

  void start_waiting(MemberId worker, const DrawResult& result) {
    ++waiting_;
    if (rechecks_on_arrival_ && by_probability_) counts_.add_waiter(steps_[worker], worker);
    if (rechecks_on_arrival_ && !by_probability_) waiters_in_order_.push_back(worker);
    if (has_timers_) waiters_[worker].waiting = true;
    if (has_timers_) arrange_next_draw(worker, result);
  }

  /// Lets a waiting worker pass. The caller has removed it from counts_ or waiters_in_order_.
  void end_waiting(MemberId worker) {
    --waiting_;
    if (has_timers_) waiters_[worker].waiting = false;
    release(worker, false);
  }

  /// After an arrival, makes every waiting worker draw again if the recheck policy says so.
  void recheck_waiters() {
    if (!rechecks_on_arrival_ || waiting_ == 0) return;
    last_recheck_at_ = now_;
    if (by_probability_) {
      const std::size_t before = waiting_;
      counts_.let_pass(remaining_hazard_, draw_random_,
                       [&](MemberId worker) { end_waiting(worker); });
      if (draws_others_) count_draws(before, before - waiting_, options_.barrier);
    } else if (!depends_on_min_only_ || has_min_risen()) {
      // Without draws and paces, all workers at one step see the same steps.
      std::set<Step> refused;
      std::erase_if(waiters_in_order_, [&](MemberId worker) {
        const bool pass = !refused.contains(steps_[worker]) && try_to_pass(worker).pass;
        if (pass) end_waiting(worker);
        if (!pass && decides_by_step_) refused.insert(steps_[worker]);
        return pass;
      });
    }
  }

  /// Returns true if the lowest step has risen since the last call.
  [[nodiscard]] bool has_min_risen() {
    const Step former = std::exchange(reviewed_min_, counts_.running() > 0 ? counts_.min() : 0);
    return reviewed_min_ != former;
  }

  void count_draws(std::uint64_t draws, std::uint64_t passes, const barrier::Barrier& barrier) {
    result_.draws += draws;
    result_.passes += passes;
    if (has_coordinator_) return;
    const std::uint64_t queries = draws * barrier::seen_workers(barrier, options_.workers - 1);
    result_.messages.queries += queries;
    result_.messages.answers += queries;
  }

  /// Decides whether the worker may pass, by one draw or by all workers' steps.
  DrawResult try_to_pass(MemberId worker) {
    const Step step = steps_[worker];
    if (never_waits_ || draws_.is_in_run(worker, step) ||
        draws_.needs_no_draw(worker, step, by_probability_ ? &counts_ : nullptr))
      return {true};
    if (has_timers_) ++waiters_[worker].draw;
    const DrawResult result = by_probability_ ? draws_.decide(worker, counts_, steps_, draw_random_)
                                              : draws_.decide(worker, steps_, now_, draw_random_);
    if (draws_others_) count_draws(1, result.pass ? 1 : 0, draws_.barrier_of(worker));
    return result;
  }

  /// After a failed draw of the worker, arranges its next draw: at a notice, at a timer, or both.
  /// If the draw is not decided yet, arranges when it will be.
  void arrange_next_draw(MemberId worker, const DrawResult& result) {
    Waiter& waiter = waiters_[worker];
    if (result.decided_at) {
      waiter.pending_result = {result.pass, result.laggard};
      return schedule(worker, *result.decided_at - now_);
    }
    const bool asks_laggard = sends_notices_ && result.laggard;
    if (asks_laggard) {
      const Step floor = *barrier::floor(draws_.barrier_of(worker), steps_[worker]);
      if (!has_coordinator_) ++result_.messages.notify_requests;
      // The laggard may have got there while the result was pending. Then it answers at once.
      if (draws_.reported(steps_[*result.laggard]) >= floor) {
        if (!has_coordinator_) ++result_.messages.notices;
        return schedule(worker, Time{});
      }
      notify_requests_[*result.laggard].add({worker, floor, waiter.draw});
    }
    if (options_.recheck.interval || !(asks_laggard || rechecks_on_arrival_))
      schedule(worker, interval_of(waiters_[worker], options_.recheck));
    else
      await_notice(worker);
  }

  /// The worker draws again only at a notice. It asks for the notice again after a time, as in
  /// core::SampleGate, unless the coordinator draws for it.
  void await_notice(MemberId worker) {
    if (has_coordinator_) return waiters_[worker].stop_timer();
    schedule(worker, core::query_timeout);
    waiters_[worker].asks_again = true;
  }

  void draw_at_timer(MemberId worker) {
    if (waiters_[worker].asks_again) {
      ++result_.messages.notify_requests;
      return await_notice(worker);
    }
    if (rechecks_on_arrival_) {
      // The interval begins with the last draw, which the last arrival may have caused.
      const Time due = last_recheck_at_ +
                       std::min(interval_of(waiters_[worker], options_.recheck), options_.horizon);
      if (due > now_) return schedule(worker, due - now_);
    }
    draw_again(worker);
  }

  void draw_again(MemberId worker) { handle_draw(worker, try_to_pass(worker)); }

  /// Lets a waiting worker pass after its draw, or arranges the next draw.
  void handle_draw(MemberId worker, const DrawResult& result) {
    if (!result.pass || result.decided_at) return arrange_next_draw(worker, result);
    if (rechecks_on_arrival_ && by_probability_) counts_.remove_waiter(steps_[worker], worker);
    if (rechecks_on_arrival_ && !by_probability_) std::erase(waiters_in_order_, worker);
    end_waiting(worker);
  }

  /// Notifies the waiting workers whose requests the worker's new step fulfils. A notice for a
  /// stale request is counted too, but has no effect.
  void send_notices(MemberId worker) {
    const Step step = draws_.reported(steps_[worker]);
    const auto fulfilled = notify_requests_[worker].take_fulfilled(step);
    if (!has_coordinator_) result_.messages.notices += fulfilled.size();
    for (const NotifyRequest& request : fulfilled)
      if (waiters_[request.from].waiting && waiters_[request.from].draw == request.draw)
        draw_when_available(request.from);
  }

  /// A worker that is away draws again when it is back, unless the coordinator draws for it.
  void draw_when_available(MemberId worker) {
    const bool is_away = !has_coordinator_ && draws_.absences().is_away(worker, now_);
    is_away ? schedule(worker, Time{}) : draw_again(worker);
  }

  const StepOptions& options_;
  Learner* learner_;
  /// True if no worker ever waits.
  bool never_waits_;
  /// True if the barrier is sampled: workers draw others, and again as the recheck policy says.
  bool draws_others_;
  /// True if waiting workers draw again at every arrival.
  bool rechecks_on_arrival_;
  bool sends_notices_;
  /// True if a coordinator sees every step.
  bool has_coordinator_;
  /// True if some events are timers of waiting workers. Then events may become stale.
  bool has_timers_;
  /// True if draws are decided by the probabilities that counts_ computes.
  bool by_probability_;
  /// True if all waiting workers at one step see the same steps, and so decide alike.
  bool decides_by_step_;
  /// True for rules that decide by the paces of all workers and have a floor: a worker that waits
  /// passes once the lowest step is high enough.
  bool depends_on_min_only_;

  Random step_time_random_ = Random::stream(options_.seed, 1);
  Random draw_random_ = Random::stream(options_.seed, 2);
  /// See StepCounts::let_pass.
  double remaining_hazard_ = draw_random_.exponential(1);

  ExchangeRunner exchange_;
  StepQueue queue_;
  StepCounts counts_;
  StepDraws draws_;
  LateReleases late_releases_;
  std::vector<Step> steps_;
  std::vector<Waiter> waiters_;
  /// By laggard: the requests that it has received.
  std::vector<NotifyRequests> notify_requests_;
  /// The waiting workers in the order of their arrival, if they draw again at every arrival without
  /// counts_.
  std::vector<MemberId> waiters_in_order_;
  std::size_t waiting_ = 0;
  Time now_{};
  /// When an arrival last made all waiting workers draw.
  Time last_recheck_at_{};
  /// See has_min_risen().
  Step reviewed_min_ = 0;
  bool stopped_ = false;
  /// How long all workers together have waited, and how long they have run, in nanoseconds.
  double wait_time_ = 0;
  double run_time_ = 0;
  StepResult result_;
};

}  // namespace

StepResult simulate(const StepOptions& options, Learner* learner) {
  STARLING_CHECK(check(options).ok() && (!options.exchange || learner == nullptr));
  if (!options.exchange || !is_sum(*options.exchange)) return Simulation{options, learner}.run();
  // The exchange is the barrier, and no one asks for steps.
  StepOptions without_barrier = options;
  without_barrier.barrier = {barrier::Asp{}};
  return Simulation{without_barrier, learner}.run();
}

}  // namespace starling::sim
