#include "starling/engine/sim/steps/steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "starling/barrier/sampling.hpp"
#include "starling/base/check.hpp"
#include "starling/base/lasting.hpp"
#include "starling/engine/core/step_times.hpp"
#include "starling/engine/sim/steps/notify_requests.hpp"
#include "starling/engine/sim/steps/step_counts.hpp"
#include "starling/engine/sim/steps/step_queue.hpp"

namespace starling::sim {
namespace {

constexpr Time never = Time::max();

/// The state of a worker that recheck policies with clocks and notices need.
struct Waiter {
  bool waiting = false;
  /// When the worker finishes its step or, while it waits, draws again; `never` where it does
  /// neither. Events of other times are stale.
  Time due = never;
  /// Number of its current draw; notices of earlier draws are stale too.
  std::uint64_t draw = 0;
  core::StepTimes step_times;
};

/// A draw's outcome, and the laggard on which it failed where the rule can tell.
struct DrawResult {
  bool pass;
  std::optional<MemberId> laggard = std::nullopt;
};

class Simulation {
 public:
  Simulation(const StepOptions& options, Learner* learner)
      : options_(options),
        learner_(learner),
        free_(barrier::always_passes(options.barrier)),
        draws_(barrier::draws(options.barrier)),
        on_arrival_(!draws_ || options.recheck.arrival),
        notify_(!on_arrival_ && options.recheck.notify),
        central_(core::keeps_steps_centrally(options.mode)),
        clocked_(draws_ && (!options.recheck.arrival || options.recheck.interval)),
        by_chance_(barrier::floor(options.barrier, 0) &&
                   (options.sampling == Sampling::exact || !draws_)),
        queue_(options.workers, mean_of(options)),
        counts_(options.barrier, options.workers),
        steps_(options.workers),
        waiters_(clocked_ ? options.workers : 0),
        notify_requests_(notify_ ? options.workers : 0) {}

  StepResult run() {
    result_.curve.reserve(options_.points);
    for (MemberId id = 0; id < options_.workers; ++id) begin(id);
    std::uint64_t events = 0;
    while (const auto event = queue_.pop()) {
      if (++events % 65536 == 0 && !progress()) break;
      if (const auto soon = queue_.soon()) __builtin_prefetch(&steps_[*soon], 1);
      pass_time(event->at);
      happen(event->worker);
      if (counts_.running() == 0) break;
    }
    return finish();
  }

 private:
  /// Returns the mean time of a step, at least 1 ns, because the queue's buckets need a length.
  static Time mean_of(const StepOptions& options) {
    return std::max(Time{1}, lasting(options.step_time.mean() * 1e9) + options.overhead);
  }

  bool progress() {
    if (!options_.on_progress) return true;
    const auto time = static_cast<double>(now_.count());
    double done = time / static_cast<double>(options_.horizon.count());
    if (options_.last != barrier::finished)
      done = std::max(
          done, static_cast<double>(result_.updates) /
                    (static_cast<double>(options_.last) * static_cast<double>(options_.workers)));
    stopped_ = !options_.on_progress(done);
    return !stopped_;
  }

  /// Advances the clock to `to`, and notes the points and times in between.
  void pass_time(Time to) {
    for (Time at = next_point(); at < to && result_.curve.size() < options_.points;
         at = next_point())
      note(at);
    const auto elapsed = static_cast<double>((to - now_).count());
    waited_ += elapsed * static_cast<double>(waiting_);
    ran_ += elapsed * static_cast<double>(counts_.running());
    now_ = to;
  }

  [[nodiscard]] Time next_point() const {
    const auto share = static_cast<double>(result_.curve.size() + 1) /
                       static_cast<double>(std::max<std::size_t>(1, options_.points));
    return Time{std::llround(share * static_cast<double>(options_.horizon.count()))};
  }

  void note(Time at) {
    const bool runs = counts_.running() > 0;
    result_.curve.push_back(
        {.at = at,
         .updates = result_.updates,
         .min = runs ? counts_.min() : options_.last,
         .median = counts_.median().value_or(options_.last),
         .max = counts_.max(),
         .waiting = static_cast<double>(waiting_) / static_cast<double>(options_.workers)});
  }

  StepResult finish() {
    const bool early = stopped_ || counts_.running() == 0;
    if (!early) pass_time(options_.horizon);
    if (result_.curve.size() < options_.points) note(now_);
    result_.elapsed = now_;
    result_.waiting_share = ran_ > 0 ? waited_ / ran_ : 0;
    result_.steps = std::move(steps_);
    return std::move(result_);
  }

  /// Makes `worker` due after `delay`, if that is within the horizon.
  void schedule(MemberId worker, Time delay) {
    if (clocked_) waiters_[worker].due = never;
    if (delay > options_.horizon - now_) return;
    if (clocked_) waiters_[worker].due = now_ + delay;
    queue_.push(now_ + delay, worker);
  }

  void begin(MemberId worker) {
    if (learner_) learner_->on_begin(worker, steps_[worker] + 1, now_);
    Time takes = options_.step_time.draw(times_);
    if (!options_.slowness.empty())
      takes = lasting(static_cast<double>(takes.count()) * options_.slowness[worker]);
    takes += options_.overhead;
    if (clocked_) waiters_[worker].step_times.add(takes);
    schedule(worker, takes);
  }

  /// Handles a worker that is due: its step ends, or it draws again.
  void happen(MemberId worker) {
    if (!clocked_) return arrive(worker);
    Waiter& waiter = waiters_[worker];
    if (waiter.due != now_) return;
    waiter.waiting ? draw_by_clock(worker) : arrive(worker);
  }

  void arrive(MemberId worker) {
    const Step step = ++steps_[worker];
    ++result_.updates;
    if (learner_) learner_->on_end(worker, step, now_);
    if (central_) ++result_.messages.arrivals;
    counts_.advance(step);
    result_.max_lag = std::max(result_.max_lag, step - counts_.min());
    if (notify_) give_notice(worker);
    if (step >= options_.last) {
      counts_.finish(step);
      review();
    } else if (const DrawResult result = consider(worker); result.pass) {
      release(worker);
      review();
    } else {
      review();  // before it waits itself: it has drawn for this arrival
      wait(worker, result);
    }
  }

  void release(MemberId worker) {
    if (central_) ++result_.messages.releases;
    begin(worker);
  }

  void wait(MemberId worker, const DrawResult& result) {
    ++waiting_;
    if (on_arrival_ && by_chance_) counts_.join(steps_[worker], worker);
    if (on_arrival_ && !by_chance_) in_order_.push_back(worker);
    if (clocked_) waiters_[worker].waiting = true;
    if (clocked_) look_again(worker, result);
  }

  /// Ends the wait of a worker that the caller has taken out of its group.
  void resume(MemberId worker) {
    --waiting_;
    if (clocked_) waiters_[worker].waiting = false;
    release(worker);
  }

  /// Makes every waiter look again after an arrival, where the recheck policy says so.
  void review() {
    if (!on_arrival_ || waiting_ == 0) return;
    reviewed_ = now_;
    if (by_chance_) {
      const std::size_t before = waiting_;
      counts_.let_pass(patience_, draw_random_, [&](MemberId worker) { resume(worker); });
      if (draws_) count_draws(before, before - waiting_);
    } else {
      std::erase_if(in_order_, [&](MemberId worker) {
        const bool pass = consider(worker).pass;
        if (pass) resume(worker);
        return pass;
      });
    }
  }

  void count_draws(std::uint64_t draws, std::uint64_t passes) {
    result_.draws += draws;
    result_.passes += passes;
    if (central_) return;
    const std::uint64_t asked = draws * barrier::observes(options_.barrier, options_.workers - 1);
    result_.messages.queries += asked;
    result_.messages.answers += asked;
  }

  /// Looks at the others once, and decides whether the worker may pass.
  DrawResult consider(MemberId worker) {
    if (free_ || asks_nobody(worker)) return {true};
    if (clocked_) ++waiters_[worker].draw;
    const DrawResult result = by_chance_ ? consider_by_chance(worker) : consider_plainly(worker);
    if (draws_) count_draws(1, result.pass ? 1 : 0);
    return result;
  }

  /// True where the floor is 0: see barrier::floor. The groups have the floor at hand.
  [[nodiscard]] bool asks_nobody(MemberId worker) const {
    const Step step = steps_[worker];
    return by_chance_ ? counts_.group(step).floor == 0
                      : barrier::floor(options_.barrier, step) == Step{0};
  }

  DrawResult consider_by_chance(MemberId worker) {
    const Group& group = counts_.group(steps_[worker]);
    if (group.pass >= 1 || (group.pass > 0 && draw_random_.real() < group.pass)) return {true};
    if (!notify_) return {false};
    // Each laggard is as likely as another to be the first to answer. It is found by trial: few
    // laggards refuse few draws, so this takes at most beta trials a draw on average.
    while (true) {
      const auto other = static_cast<MemberId>(draw_random_.below(options_.workers));
      if (steps_[other] < group.floor) return {false, other};
    }
  }

  DrawResult consider_plainly(MemberId worker) {
    pick_others();
    const auto floor = barrier::floor(options_.barrier, steps_[worker]);
    seen_.clear();
    std::uint64_t laggards = 0;
    DrawResult result{false};
    for (const std::uint32_t pick : picks_) {
      const MemberId other = pick + (pick >= worker ? 1U : 0U);
      const Step step = steps_[other];
      seen_.push_back(step >= options_.last ? barrier::finished : step);
      // Any laggard may be the first to answer.
      if (notify_ && floor && step < *floor && draw_random_.below(++laggards) == 0)
        result.laggard = other;
    }
    result.pass = barrier::admits(options_.barrier, steps_[worker], seen_);
    return result;
  }

  /// Picks the workers that a worker sees, as numbers among the others: everyone, or a draw.
  void pick_others() {
    const auto others = static_cast<std::uint32_t>(options_.workers - 1);
    const auto sees = static_cast<std::uint32_t>(barrier::observes(options_.barrier, others));
    if (draws_) return barrier::draw(others, sees, draw_random_, picks_);
    picks_.resize(sees);
    std::iota(picks_.begin(), picks_.end(), 0U);
  }

  /// Arranges, after a refused draw, for the worker to draw again on a notice or a timer.
  void look_again(MemberId worker, const DrawResult& result) {
    Waiter& waiter = waiters_[worker];
    const bool told = notify_ && result.laggard;
    if (told) {
      const Step floor = *barrier::floor(options_.barrier, steps_[worker]);
      notify_requests_[*result.laggard].add({worker, floor, waiter.draw});
      if (!central_) ++result_.messages.notify_requests;
    }
    if (options_.recheck.interval || !(told || on_arrival_))
      schedule(worker, interval_of(worker));
    else
      waiter.due = never;
  }

  [[nodiscard]] Time interval_of(MemberId worker) const {
    const auto& interval = options_.recheck.interval;
    const bool fixed = interval && *interval != barrier::Recheck::automatic;
    return fixed ? *interval : waiters_[worker].step_times.recheck_interval();
  }

  void draw_by_clock(MemberId worker) {
    if (on_arrival_) {
      // The interval counts from the last draw, and the last arrival caused a draw.
      const Time due = reviewed_ + std::min(interval_of(worker), options_.horizon);
      if (due > now_) return schedule(worker, due - now_);
    }
    draw_again(worker);
  }

  void draw_again(MemberId worker) {
    const DrawResult result = consider(worker);
    if (!result.pass) return look_again(worker, result);
    if (on_arrival_ && by_chance_) counts_.leave(steps_[worker], worker);
    if (on_arrival_ && !by_chance_) std::erase(in_order_, worker);
    resume(worker);
  }

  /// Notifies the waiters that asked for the worker's new step. A late notice is sent all the same.
  void give_notice(MemberId worker) {
    const Step step = steps_[worker] >= options_.last ? barrier::finished : steps_[worker];
    const auto told = notify_requests_[worker].take(step);
    if (!central_) result_.messages.notices += told.size();
    for (const NotifyRequest& request : told)
      if (waiters_[request.from].waiting && waiters_[request.from].draw == request.draw)
        draw_again(request.from);
  }

  const StepOptions& options_;
  Learner* learner_;
  /// No worker ever waits.
  bool free_;
  /// The barrier draws others, so that the recheck policy matters.
  bool draws_;
  bool on_arrival_;
  bool notify_;
  /// A coordinator sees every step.
  bool central_;
  /// Some events are timers, or become stale.
  bool clocked_;
  /// Outcomes come from the chances that counts_ keeps.
  bool by_chance_;

  Random times_ = Random::stream(options_.seed, 1);
  Random draw_random_ = Random::stream(options_.seed, 2);
  /// See StepCounts::let_pass.
  double patience_ = draw_random_.exponential(1);

  StepQueue queue_;
  StepCounts counts_;
  std::vector<Step> steps_;
  std::vector<Waiter> waiters_;
  /// By laggard: the waiters that it is to notify.
  std::vector<NotifyRequests> notify_requests_;
  /// Waiters in the order of their arrival, where each draws plainly at each arrival.
  std::vector<MemberId> in_order_;
  std::size_t waiting_ = 0;
  Time now_{};
  /// When an arrival last made all waiters draw.
  Time reviewed_{};
  bool stopped_ = false;
  /// Sums over workers, in nanoseconds.
  double waited_ = 0;
  double ran_ = 0;
  StepResult result_;
  std::vector<std::uint32_t> picks_;
  std::vector<Step> seen_;
};

}  // namespace

std::uint64_t memory_estimate(const StepOptions& options) {
  const bool clocked =
      barrier::draws(options.barrier) && (!options.recheck.arrival || options.recheck.interval);
  // Steps, events in half-full buckets, waiters in half-full groups, figures at the end.
  std::uint64_t per_worker = 144;
  if (!options.slowness.empty()) per_worker += sizeof(double);
  if (clocked) per_worker += sizeof(Waiter) + 64;  // and the stale events
  if (clocked && options.recheck.notify)           // and capacity for as many requests as were seen
    per_worker += sizeof(NotifyRequests) + 96 * sizeof(NotifyRequest);
  return options.workers * per_worker + options.points * sizeof(Point) + (std::uint64_t{1} << 24U);
}

StepResult simulate(const StepOptions& options, Learner* learner) {
  STARLING_CHECK(check(options).ok());
  return Simulation{options, learner}.run();
}

}  // namespace starling::sim
