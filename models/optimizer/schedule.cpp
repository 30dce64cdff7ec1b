#include "starling/models/optimizer/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling::models {
namespace {

double factor_of(const ConstantRate&, std::uint64_t) { return 1; }

double factor_of(const StepRate& step, std::uint64_t seen) {
  const std::uint64_t drops = seen / step.every;
  return std::pow(step.gamma, static_cast<double>(drops));
}

double factor_of(const CosineRate& cosine, std::uint64_t seen) {
  const double way = static_cast<double>(seen) / static_cast<double>(cosine.samples);
  const double height = (1 + std::cos(std::numbers::pi * std::min(way, 1.0))) / 2;
  return cosine.floor + (1 - cosine.floor) * height;
}

std::string print_of(const ConstantRate&) { return "constant"; }

std::string print_of(const StepRate& step) {
  return "step:every=" + std::to_string(step.every) + ",gamma=" + print_number(step.gamma);
}

std::string print_of(const CosineRate& cosine) {
  return "cosine:samples=" + std::to_string(cosine.samples) +
         ",floor=" + print_number(cosine.floor);
}

/// Reads a count of samples that has no default.
std::uint64_t samples(SpecReader& read, const char* key, const char* example) {
  if (!read.has(key)) read.refuse(std::string{"needs "} + key + ", e.g. " + example);
  return read.count(key, 1, 1);
}

Schedule read_step(SpecReader& read) {
  StepRate step;
  step.every = samples(read, "every", "step:every=20000,gamma=0.5");
  step.gamma = read.number("gamma", step.gamma, 0, 1);
  return step;
}

Schedule read_cosine(SpecReader& read) {
  CosineRate cosine;
  cosine.samples = samples(read, "samples", "cosine:samples=600000");
  cosine.floor = read.number("floor", cosine.floor, 0, 1);
  return cosine;
}

}  // namespace

Result<Schedule> parse_schedule(std::string_view text) {
  const auto spec = Spec::parse(text);
  if (!spec) return Error{"schedule: " + spec.error().message};
  SpecReader read{*spec};
  Schedule schedule;
  if (spec->name == "step") {
    schedule = read_step(read);
  } else if (spec->name == "cosine") {
    schedule = read_cosine(read);
  } else if (spec->name != "constant") {
    const std::array<std::string, 3> names{"constant", "step", "cosine"};
    return Error{"unknown schedule '" + spec->name + "'; " + suggest(spec->name, names)};
  }
  if (auto done = read.finish(); !done) return std::move(done).error();
  return schedule;
}

std::string print(const Schedule& schedule) {
  return std::visit([](const auto& any) { return print_of(any); }, schedule);
}

double factor(const Schedule& schedule, std::uint64_t samples_seen) {
  return std::visit([&](const auto& any) { return factor_of(any, samples_seen); }, schedule);
}

}  // namespace starling::models
