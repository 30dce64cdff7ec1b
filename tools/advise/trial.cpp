#include "starling/tools/advise/trial.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/random.hpp"
#include "starling/base/seconds.hpp"

namespace starling::program {
namespace {

/// The key of the seed's streams from which step times are drawn.
constexpr std::uint64_t step_times_stream = 0x57e9;

sim::ProtocolOptions protocol_options(const TrialOptions& options) {
  return {.mode = options.mode,
          .barrier = options.barrier,
          .workers = options.workers,
          .horizon = options.horizon,
          .seed = options.seed,
          .point_every = std::max(core::Time{1},
                                  options.horizon / static_cast<core::Time::rep>(options.points))};
}

/// Collects the reads and the updates of a run.
class RunStatistics {
 public:
  explicit RunStatistics(std::size_t workers) : updates_at_read_(workers) {}

  void on_read(core::MemberId worker, std::span<const double> parameters, core::Time now) {
    updates_at_read_[worker] = updates_;
    losses_ = losses(parameters);
    for (std::size_t r = 0; r < learning_rates.size(); ++r)
      if (!(losses_[r] <= target_loss))
        seconds_to_loss_[r].reset();
      else if (!seconds_to_loss_[r])
        seconds_to_loss_[r] = in_seconds(now);
  }
  void on_update(core::MemberId worker) {
    stale_ += static_cast<double>(updates_ - updates_at_read_[worker]);
    ++updates_;
  }

  /// The losses of the model that was read last.
  [[nodiscard]] const auto& last_losses() const noexcept { return losses_; }
  /// Returns for each learning rate the time, in seconds, from which on the loss was at most
  /// `target_loss`; absent if there is none up to `end_s`.
  [[nodiscard]] auto seconds_to_loss(double end_s) const {
    auto seconds = seconds_to_loss_;
    for (auto& time : seconds)
      if (time && *time > end_s) time.reset();
    return seconds;
  }
  [[nodiscard]] double staleness() const {
    return updates_ == 0 ? 0 : stale_ / static_cast<double>(updates_);
  }

 private:
  std::uint64_t updates_ = 0;
  /// By worker: the number of updates when the worker last read the model.
  std::vector<std::uint64_t> updates_at_read_;
  /// The sum of the staleness of all updates.
  double stale_ = 0;
  std::array<double, learning_rates.size()> losses_ = losses(initial_parameters());
  std::array<std::optional<double>, learning_rates.size()> seconds_to_loss_{};
};

}  // namespace

Result<void> check(const TrialOptions& options) { return sim::check(protocol_options(options)); }

Trial run_trial(const TrialOptions& options) {
  RunStatistics statistics{options.workers};
  sim::Job job = quadratic_job(options.seed);
  job.compute = [&statistics, compute = std::move(job.compute)](core::MemberId worker,
                                                                const core::Compute& read) {
    statistics.on_update(worker);
    return compute(worker, read);
  };
  Trial trial;
  std::vector<Random> randoms;
  for (core::MemberId worker = 0; worker < options.workers; ++worker)
    randoms.push_back(Random::stream(options.seed, step_times_stream, worker));
  sim::ProtocolOptions settings = protocol_options(options);
  settings.step_time_of = [&randoms, step_times = options.step_times](core::MemberId worker,
                                                                      core::Step step) {
    return step_times(worker, step + 1, randoms[worker]);
  };
  sim::Protocol protocol{std::move(settings), std::move(job)};
  protocol.on_compute = [&](core::MemberId worker, const core::Compute& read) {
    statistics.on_read(worker, read.values.front().value.as<double>(), protocol.now());
  };
  protocol.on_point = [&](const sim::ProtocolPoint& point) {
    trial.curve.push_back({.seconds = in_seconds(point.at),
                           .updates = static_cast<double>(point.updates),
                           .spread = static_cast<double>(point.max - point.min),
                           .losses = statistics.last_losses()});
    return true;
  };
  if (!protocol.run()) trial.error = protocol.error();
  const sim::ProtocolResult result = protocol.result();
  trial.updates = static_cast<double>(result.updates);
  trial.waiting_share = result.waiting_share;
  trial.max_lag = static_cast<double>(result.max_lag);
  trial.staleness = barrier::is_bsp(options.barrier) ? 0 : statistics.staleness();
  // A time in the last tenth of the run does not count; see Trial::seconds_to_loss.
  trial.seconds_to_loss = statistics.seconds_to_loss(0.9 * in_seconds(options.horizon));
  return trial;
}

}  // namespace starling::program
