#include "starling/base/distribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>

#include "starling/base/check.hpp"
#include "starling/base/input.hpp"
#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling {
namespace {

using Duration = Distribution::Duration;

constexpr const char* valid_forms =
    "valid: none, const:20ms, exp:20ms, uniform:20ms, gamma:mean=20ms,shape=2, "
    "lognormal:mean=20ms,sigma=0.5, pareto:mean=20ms,alpha=2.5, trace:FILE";

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

double in_ns(Duration duration) { return static_cast<double>(duration.count()); }

/// Gamma of the given shape and scale 1 (Marsaglia, Tsang, ACM TOMS 26, 2000; section 6 of it for
/// shapes below 1).
double gamma(double shape, Random& random) {
  if (shape < 1) {
    const double boost = std::pow(1 - random.real(), 1 / shape);
    return gamma(shape + 1, random) * boost;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {  // more than 95 % pass each time
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - random.real();
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double draw_ns(const laws::None&, Random&) { return 0; }
double draw_ns(const laws::Constant& law, Random&) { return in_ns(law.mean); }
double draw_ns(const laws::Exponential& law, Random& random) {
  return random.exponential(in_ns(law.mean));
}
double draw_ns(const laws::Uniform& law, Random& random) {
  return random.real(0, 2 * in_ns(law.mean));
}
double draw_ns(const laws::Gamma& law, Random& random) {
  return in_ns(law.mean) / law.shape * gamma(law.shape, random);
}
double draw_ns(const laws::Lognormal& law, Random& random) {
  return in_ns(law.mean) * std::exp(law.sigma * random.normal() - law.sigma * law.sigma / 2);
}
double draw_ns(const laws::Pareto& law, Random& random) {
  const double least = in_ns(law.mean) * (law.alpha - 1) / law.alpha;
  return least * std::pow(1 - random.real(), -1 / law.alpha);
}
double draw_ns(const laws::Trace& law, Random& random) {
  return in_ns((*law.durations)[random.below(law.durations->size())]);
}

/// Reads a line, its comment removed, as a duration; a plain number means seconds.
Result<Duration> parse_line(std::string_view line) {
  if (const auto seconds = parse_number(line); seconds && *seconds >= 0)
    return parse_duration(std::string{line} + "s");
  auto duration = parse_duration(line);
  if (!duration)
    return Error{shown(line) + " is neither a duration like 20ms nor seconds like 0.02"};
  return duration;
}

Result<Distribution> read_trace(const std::string& file) {
  constexpr std::size_t bytes_max = std::size_t{1} << 26U;
  const auto text = read_text(file, bytes_max);
  if (!text) return text.error();
  std::vector<Duration> durations;
  std::size_t number = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    const auto written = trimmed(line.substr(0, line.find('#')));
    if (written.empty()) continue;
    auto duration = parse_line(written);
    if (!duration) return std::move(duration).error().within(file + ":" + std::to_string(number));
    durations.push_back(*duration);
  }
  if (durations.empty()) return Error{file + ": holds no duration"};
  return Distribution{
      laws::Trace{file, std::make_shared<const std::vector<Duration>>(std::move(durations))}};
}

/// Reads the mean, with or without its key, and the parameter of the law, if it has one.
class LawReader {
 public:
  explicit LawReader(const Spec& spec) : read_(spec) {}

  Duration mean() {
    std::string text = read_.text("mean", "");
    if (text.empty()) text = read_.positional();
    if (text.empty()) {
      lack("mean");
      return {};
    }
    const auto mean = parse_duration(text);
    if (mean) return *mean;
    read_.refuse(mean.error().message);
    return {};
  }

  double number(const char* key, double least, double most) {
    if (!read_.has(key)) lack(key);
    return read_.number(key, 1, least, most);
  }

  /// Reports a bad option before a missing one.
  Result<void> finish() {
    if (auto done = read_.finish(); !done || missing_.empty()) return done;
    read_.refuse(missing_);
    return read_.finish();
  }

 private:
  void lack(const char* key) {
    if (missing_.empty()) missing_ = "the " + std::string{key} + " is missing";
  }

  SpecReader read_;
  std::string missing_;
};

std::optional<Distribution::Law> read_law(std::string_view name, LawReader& read) {
  if (name == "const") return laws::Constant{read.mean()};
  if (name == "exp") return laws::Exponential{read.mean()};
  if (name == "uniform") return laws::Uniform{read.mean()};
  if (name == "gamma") return laws::Gamma{read.mean(), read.number("shape", 0.001, 1e6)};
  if (name == "lognormal") return laws::Lognormal{read.mean(), read.number("sigma", 0, 10)};
  if (name == "pareto") return laws::Pareto{read.mean(), read.number("alpha", 1.001, 1e6)};
  return std::nullopt;
}

}  // namespace

Duration lasting(double ns) {
  constexpr Duration longest = std::chrono::hours{24 * 365};
  return ns < in_ns(longest) ? Duration{std::llround(ns)} : longest;
}

Duration Distribution::draw(Random& random) const {
  return std::visit([&](const auto& law) { return lasting(draw_ns(law, random)); }, law_);
}

double Distribution::mean() const {
  const auto of_trace = [](const laws::Trace& trace) {
    double sum = 0;
    for (const Duration duration : *trace.durations) sum += in_ns(duration);
    return sum / static_cast<double>(trace.durations->size());
  };
  const double ns = std::visit(Overloaded{[](const laws::None&) { return 0.0; }, of_trace,
                                          [](const auto& law) { return in_ns(law.mean); }},
                               law_);
  return ns / 1e9;
}

Result<Distribution> parse_distribution(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return Error{"distribution " + shown(text) + ": " + why + "; " + valid_forms};
  };
  constexpr std::string_view trace = "trace:";
  if (text.starts_with(trace) && text.size() > trace.size()) {
    // Handled before the grammar: a file's name may hold the grammar's separators.
    auto law = read_trace(std::string{text.substr(trace.size())});
    if (!law) return Error{"distribution " + std::string{trace} + law.error().message};
    return law;
  }
  const auto spec = Spec::parse(text);
  if (!spec) return refuse(spec.error().message);
  if (text == "none") return Distribution{};
  LawReader read{*spec};
  auto law = read_law(spec->name, read);
  if (!law) return refuse("unknown law");
  if (auto done = read.finish(); !done) return refuse(done.error().message);
  return Distribution{*std::move(law)};
}

std::string print(const Distribution& distribution) {
  const auto with = [](const char* name, Duration mean, const char* key, double value) {
    return std::string{name} + ":mean=" + print_duration(mean) + "," + key + "=" +
           print_number(value);
  };
  return std::visit(
      Overloaded{
          [](const laws::None&) { return std::string{"none"}; },
          [](const laws::Constant& law) { return "const:" + print_duration(law.mean); },
          [](const laws::Exponential& law) { return "exp:" + print_duration(law.mean); },
          [](const laws::Uniform& law) { return "uniform:" + print_duration(law.mean); },
          [&](const laws::Gamma& law) { return with("gamma", law.mean, "shape", law.shape); },
          [&](const laws::Lognormal& law) {
            return with("lognormal", law.mean, "sigma", law.sigma);
          },
          [&](const laws::Pareto& law) { return with("pareto", law.mean, "alpha", law.alpha); },
          [](const laws::Trace& law) { return "trace:" + law.file; },
      },
      distribution.law());
}

}  // namespace starling
