#include "starling/engine/live/slowdown.hpp"

#include <cmath>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling::live {
namespace {

Delay::Duration lasting(double ns) {
  constexpr Delay::Duration longest = std::chrono::hours{24 * 365};
  return ns < static_cast<double>(longest.count()) ? Delay::Duration{std::llround(ns)} : longest;
}

/// A share that rounds to nobody would leave a job as if it had no stragglers.
Error none_of(const Straggler& straggler, std::size_t workers) {
  const std::string factor = ":" + print_number(straggler.factor) + "x";
  return Error{"straggler " + print(straggler) + ": this share of " + std::to_string(workers) +
               " workers rounds to none; valid: " +
               print_number(std::ceil(500.0 / static_cast<double>(workers)) / 10) + "%" + factor +
               " or more, or a number of workers, 1" + factor};
}

}  // namespace

Delay::Duration slowed(Delay::Duration took, Delay::Duration delay, double factor) {
  return lasting(static_cast<double>((took + delay).count()) * factor) - took;
}

Delay::Duration Delay::draw(Random& random) const {
  const auto ns = static_cast<double>(mean.count());
  switch (law) {
    case Law::none:
      return Duration{0};
    case Law::constant:
      return lasting(ns);
    case Law::exponential:
      return lasting(random.exponential(ns));
    case Law::uniform:
      return lasting(random.real(0, 2 * ns));
  }
  return Duration{0};
}

Result<Delay> parse_delay(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return Error{"delay '" + std::string{text} + "': " + why +
                 "; valid: none, const:20ms, exp:20ms, uniform:20ms"};
  };
  auto spec = Spec::parse(text);
  if (!spec) return refuse(spec.error().message);
  if (text == "none") return Delay{};
  Delay delay;
  if (spec->name == "const")
    delay.law = Delay::Law::constant;
  else if (spec->name == "exp")
    delay.law = Delay::Law::exponential;
  else if (spec->name == "uniform")
    delay.law = Delay::Law::uniform;
  else
    return refuse("unknown law");
  SpecReader read{*spec};
  const auto mean = parse_duration(read.positional());
  if (!mean) return refuse(mean.error().message);
  delay.mean = *mean;
  if (auto done = read.finish(); !done) return refuse(done.error().message);
  return delay;
}

std::string print(const Delay& delay) {
  switch (delay.law) {
    case Delay::Law::none:
      return "none";
    case Delay::Law::constant:
      return "const:" + print_duration(delay.mean);
    case Delay::Law::exponential:
      return "exp:" + print_duration(delay.mean);
    case Delay::Law::uniform:
      return "uniform:" + print_duration(delay.mean);
  }
  return {};
}

Result<Straggler> parse_straggler(std::string_view text) {
  const Error bad{"straggler '" + std::string{text} +
                  "' is not of the form 1:4x (one worker, 4 times slower) or 25%:4x"};
  const auto parts = split(text, ':');
  if (parts.size() != 2 || parts[0].empty() || !parts[1].ends_with('x')) return bad;
  Straggler straggler;
  if (parts[0].ends_with('%')) {
    const auto percent = parse_number(parts[0].substr(0, parts[0].size() - 1));
    if (!percent || *percent < 0 || *percent > 100) return bad;
    straggler.share = *percent / 100;
  } else {
    const auto count = parse_count(parts[0]);
    if (!count) return bad;
    straggler.count = *count;
  }
  const auto factor = parse_number(parts[1].substr(0, parts[1].size() - 1));
  if (!factor || *factor < 1 || *factor > 1e6) return bad;
  straggler.factor = *factor;
  return straggler;
}

std::string print(const Straggler& straggler) {
  const std::string who = straggler.share > 0 ? print_number(straggler.share * 100) + "%"
                                              : std::to_string(straggler.count);
  return who + ":" + print_number(straggler.factor) + "x";
}

Result<std::vector<double>> slowness(const std::vector<Straggler>& stragglers,
                                     std::size_t workers) {
  std::vector<double> factors(workers, 1.0);
  std::size_t next = workers;
  for (const Straggler& straggler : stragglers) {
    const auto share = std::llround(straggler.share * static_cast<double>(workers));
    if (straggler.share > 0 && share == 0) return none_of(straggler, workers);
    const std::size_t count = straggler.count + static_cast<std::size_t>(share);
    if (count > next)
      return Error{"straggler " + print(straggler) + ": more stragglers than the job's " +
                   std::to_string(workers) + " workers"};
    for (std::size_t i = 0; i < count; ++i) factors[--next] = straggler.factor;
  }
  return factors;
}

}  // namespace starling::live
