/// Parses the small grammars of flags and job files. The first byte chooses the grammar.
#include <array>
#include <string>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/base/spec.hpp"
#include "starling/base/straggler.hpp"
#include "starling/base/text.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/plan.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/models/optimizer/schedule.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace starling::fuzz {
namespace {

/// Returns true if the text is valid. Requires that printing and parsing the value again gives the
/// same value and text.
template <class Parse, class Print>
bool parse_and_print(std::string_view text, Parse parse, Print print) {
  const auto parsed = parse(text);
  if (!parsed) return false;
  const std::string printed = print(*parsed);
  const auto again = parse(printed);
  require(again.ok() && *again == *parsed, "parsing a printed value gives the same value");
  require(print(*again) == printed, "printing a parsed value gives the same text");
  return true;
}

template <class Parse>
bool parse_and_print(std::string_view text, Parse parse) {
  return parse_and_print(text, parse, [](const auto& value) { return print(value); });
}

bool check_distribution(std::string_view text) {
  if (text.starts_with("trace")) return false;  // would read a file
  return parse_and_print(text, parse_distribution);
}

bool check_spec(std::string_view text) {
  const auto spec = Spec::parse(text);
  if (!spec) return false;
  SpecReader read{*spec};
  (void)read.count("n", 1, 1, 100);
  (void)read.count_or_inf("s", 4);
  (void)read.number("share", 0.5, 0, 1);
  (void)read.duration("time", std::chrono::seconds{1});
  (void)read.flag("fast");
  (void)read.positional();
  (void)read.finish();
  return true;
}

bool check_number(std::string_view text) {
  return parse_and_print(text, parse_number, print_number);
}
bool check_duration(std::string_view text) {
  return parse_and_print(text, parse_duration, print_duration);
}

/// Parses layers, and plans a net of them.
bool check_layers(std::string_view text) {
  if (!parse_and_print(text, models::parse_layers, models::print_layers)) return false;
  const auto plan = models::Plan<double>::make(models::parse_layers(text).value(), {8, 8, 3});
  if (plan) require(models::volume(plan->output()) <= models::volume_max, "samples are bounded");
  return true;
}

struct Grammar {
  bool (*check)(std::string_view text);
  std::vector<std::string_view> examples;
};

const std::vector<Grammar>& grammars() {
  static const std::vector<Grammar> all{
      {check_spec, {"csv:file.csv,n=7,s=inf,share=0.25,time=20ms,fast"}},
      {[](std::string_view text) {
         return parse_and_print(text, [](std::string_view t) { return barrier::parse(t); });
       },
       {"bsp", "ssp:s=4", "asp", "pbsp:beta=10", "pssp:s=inf,beta=2"}},
      {[](std::string_view text) { return parse_and_print(text, barrier::parse_recheck); },
       {"arrival", "notify+interval:auto", "interval:5ms"}},
      {check_distribution,
       {"none", "const:20ms", "exp:1.5s", "uniform:2us", "gamma:mean=20ms,shape=2",
        "lognormal:mean=20ms,sigma=0.5", "pareto:mean=1h,alpha=2.5"}},
      {[](std::string_view text) { return parse_and_print(text, parse_straggler); },
       {"1:4x", "25%:1.5x"}},
      {check_number, {"1e-4", "-0.25", "17976931348623157e292"}},
      {check_duration, {"250us", "20ms", "1.5s", "2min", "1h", "0.1ns"}},
      {[](std::string_view text) { return parse_and_print(text, models::parse_optimizer); },
       {"sgd:lr=0.1,momentum=0.9,nesterov", "adagrad:lr=0.1", "adam:lr=0.001"}},
      {[](std::string_view text) { return parse_and_print(text, models::parse_schedule); },
       {"constant", "step:every=1000,gamma=0.5", "cosine:samples=100000"}},
      {[](std::string_view text) { return parse_and_print(text, models::parse_clip); },
       {"none", "norm:5", "value:0.5"}},
      {check_layers,
       {"conv2d 4 kernel=3 padding=1 bias=0; batch-norm; relu; max-pool 2 stride=1; flatten; dense "
        "9",
        "residual(conv2d 3 kernel=1; tanh | ); avg-pool 3 padding=1; dropout 0.5; gelu",
        "random-flip; random-shift 2; residual(residual(relu)); global-avg-pool; dense 2"}},
  };
  return all;
}

}  // namespace

bool read(Input input) {
  InputReader reader{input};
  return grammars()[reader.byte() % grammars().size()].check(text_of(reader.rest()));
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (std::size_t i = 0; i < grammars().size(); ++i)
    for (const std::string_view example : grammars()[i].examples)
      all.push_back(bytes_of(std::string(1, static_cast<char>(i)).append(example)));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
