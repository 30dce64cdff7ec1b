/// Prepared jobs that count their updates, for tests of nodes.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "starling/actor/cluster/cluster_node.hpp"
#include "tests/actor/job/counters.hpp"

namespace starling::actor {

/// A job that trains Counters. `settings` has the keys mode, workers, steps, barrier and delay (in
/// ms).
class CountingJob final : public PreparedJob {
 public:
  explicit CountingJob(const wire::JobSettings& settings, OnStart on_start = {})
      : data_(load("linear:d=2,n=1200")), settings_(settings) {
    const auto text = [&](const std::string& key) {
      for (const auto& [name, value] : settings)
        if (name == key) return value;
      throw std::runtime_error{"no " + key};
    };
    options_ = counting_options(core::parse_mode(text("mode")).value(), std::stoul(text("workers")),
                                std::stoul(text("steps")), text("barrier"),
                                std::chrono::milliseconds{std::stoul(text("delay"))});
    options_.job.on_start = std::move(on_start);
  }

  [[nodiscard]] const JobOptions& options() const override { return options_.job; }
  [[nodiscard]] std::size_t ranges() const override { return job().task->layout().ranges.size(); }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 1; }
  [[nodiscard]] Result<std::unique_ptr<LocalJob>> make_local_job(
      LocalJobOptions options) const override {
    return actor::make_local_job(job(), std::move(options));
  }

 private:
  [[nodiscard]] Assignment job() const { return counting_assignment(data_, options_); }

  models::Table data_;
  wire::JobSettings settings_;
  TrainOptions options_;
};

/// A CountingJob whose make_local_job() blocks until `released` is ready.
class DelayedJob final : public PreparedJob {
 public:
  DelayedJob(const wire::JobSettings& settings, std::shared_future<void> released)
      : prepared_(settings), released_(std::move(released)) {}

  [[nodiscard]] const JobOptions& options() const override { return prepared_.options(); }
  [[nodiscard]] std::size_t ranges() const override { return prepared_.ranges(); }
  [[nodiscard]] std::uint64_t fingerprint() const override { return prepared_.fingerprint(); }
  [[nodiscard]] Result<std::unique_ptr<LocalJob>> make_local_job(
      LocalJobOptions options) const override {
    released_.wait();
    return prepared_.make_local_job(std::move(options));
  }

 private:
  CountingJob prepared_;
  std::shared_future<void> released_;
};

/// Returns a CountingJob, or an Error if there are no settings.
inline Result<std::shared_ptr<const PreparedJob>> prepare_counting_job(
    const wire::JobSettings& settings) {
  if (settings.empty()) return Error{"there is nothing to count"};
  return std::shared_ptr<const PreparedJob>{std::make_shared<CountingJob>(settings)};
}

}  // namespace starling::actor
