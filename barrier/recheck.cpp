#include "starling/barrier/recheck.hpp"

#include <array>
#include <utility>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling::barrier {
namespace {

Result<Recheck::Duration> parse_interval(std::string_view text) {
  if (text.empty()) return Error{"give the interval, as in interval:5ms or interval:auto"};
  if (text == "auto") return Recheck::automatic;
  auto duration = parse_duration(text);
  if (duration && *duration <= Recheck::Duration{0})
    return Error{"interval:" + std::string{text} + " must be longer than 0"};
  return duration;
}

}  // namespace

Result<Recheck> parse_recheck(std::string_view text) {
  Recheck recheck;
  const auto refuse = [&](const std::string& reason) {
    return Error{"recheck '" + std::string{text} + "': " + reason};
  };
  for (const std::string_view part : split(text, '+')) {
    const auto spec = Spec::parse(part);
    if (!spec) return refuse(spec.error().message);
    SpecReader reader{*spec};
    if (spec->name == "arrival") {
      if (std::exchange(recheck.arrival, true)) return refuse("'arrival' is given twice");
    } else if (spec->name == "notify") {
      if (std::exchange(recheck.notify, true)) return refuse("'notify' is given twice");
    } else if (spec->name == "interval") {
      const auto interval = parse_interval(reader.positional());
      if (!interval) return refuse(interval.error().message);
      if (recheck.interval) return refuse("'interval' is given twice");
      recheck.interval = *interval;
    } else {
      const std::array<std::string, 3> names{"arrival", "notify", "interval"};
      return refuse("'" + spec->name + "' is unknown; " + suggest(spec->name, names));
    }
    if (auto done = reader.finish(); !done) return refuse(done.error().message);
  }
  if (recheck == Recheck{})
    return refuse("names no trigger; valid: arrival, notify, interval:5ms, notify+interval:auto");
  return recheck;
}

std::string print(const Recheck& recheck) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "+") + part; };
  if (recheck.arrival) add("arrival");
  if (recheck.notify) add("notify");
  if (recheck.interval)
    add("interval:" +
        (*recheck.interval == Recheck::automatic ? "auto" : print_duration(*recheck.interval)));
  return text;
}

}  // namespace starling::barrier
