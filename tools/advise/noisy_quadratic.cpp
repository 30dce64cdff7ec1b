#include "starling/tools/advise/noisy_quadratic.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include "starling/base/random.hpp"
#include "starling/engine/exchange/applier.hpp"

namespace starling::program {
namespace {

constexpr std::array<double, 4> curvatures{1, 0.3, 0.1, 0.03};
/// The standard deviation of a gradient's noise at the curvature 1.
constexpr double noise_sd = 0.02;
constexpr std::size_t parameter_count = curvatures.size() * learning_rates.size();

core::Update gradient_of(std::span<const double> w, Random random) {
  auto gradient = core::Buffer::make<double>(parameter_count);
  const auto g = gradient->as<double>();
  for (std::size_t i = 0; i < curvatures.size(); ++i) {
    const double error = noise_sd * std::sqrt(curvatures[i]) * random.normal();
    for (std::size_t r = 0; r < learning_rates.size(); ++r) {
      const std::size_t at = r * curvatures.size() + i;
      g[at] = learning_rates[r] * (curvatures[i] * w[at] + error);
    }
  }
  return {.parts = {{0, {std::move(gradient), 0, parameter_count, nullptr}}}, .samples = 1};
}

}  // namespace

std::vector<double> initial_parameters() {
  std::vector<double> w;
  for (std::size_t r = 0; r < learning_rates.size(); ++r)
    for (const double curvature : curvatures) w.push_back(1 / std::sqrt(curvature));
  return w;
}

sim::Job quadratic_job(std::uint64_t seed) {
  sim::Job job;
  const auto layout = std::make_shared<core::Layout>();
  layout->parameters.push_back({.name = "w", .shape = {learning_rates.size(), curvatures.size()}});
  layout->offsets.push_back(0);
  layout->ranges.push_back({0, parameter_count, 0, {{0, 0, 0, parameter_count}}});
  layout->size = parameter_count;
  job.layout = layout;
  job.initial_states.push_back(
      {.range = 0,
       .value = {core::Buffer::copy_of<double>(initial_parameters()), 0, parameter_count, nullptr},
       .slots = {},
       .ledger = {}});
  job.applier = core::gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .l2 = 0, .batch = 1});
  job.compute = [seed](core::MemberId worker, const core::Compute& read) {
    return gradient_of(read.values.front().value.as<double>(),
                       Random::stream(seed, worker, read.step));
  };
  return job;
}

std::array<double, learning_rates.size()> losses(std::span<const double> w) {
  std::array<double, learning_rates.size()> found{};
  for (std::size_t i = 0; i < curvatures.size(); ++i)
    for (std::size_t r = 0; r < learning_rates.size(); ++r)
      found[r] += curvatures[i] * std::pow(w[r * curvatures.size() + i], 2);
  // At the start each of the sum's terms is 1.
  for (double& loss : found) loss /= static_cast<double>(curvatures.size());
  return found;
}

}  // namespace starling::program
