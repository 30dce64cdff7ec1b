/// Tests that scenario files are read as they were written, and that invalid ones are refused.
#include "starling/engine/sim/chaos/scenario.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/engine/core/training/exchanges.hpp"

namespace starling::sim {
namespace {

/// Returns the error message for a scenario file, or "accepted".
std::string refusal(const std::string& text) {
  const auto read = parse_scenario(text);
  return read.ok() ? std::string{"accepted"} : read.error().message;
}

/// Returns a valid scenario file in which `from` is replaced by `to`.
std::string scenario_with(const std::string& from, const std::string& to) {
  Scenario scenario;
  scenario.barrier = barrier::sampled(barrier::Ssp{2}, 2);
  scenario.faults.push_back(
      {.kind = Fault::Kind::freeze, .node = 1, .at = Time{1'000'000}, .lasts = Time{1'000'000}});
  std::string text = print(scenario);
  EXPECT_EQ(refusal(text), "accepted");
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Scenario, IsReadAsItWasPrinted) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    const auto read = parse_scenario(print(scenario));
    ASSERT_TRUE(read.ok()) << read.error().message << "\n" << print(scenario);
    ASSERT_EQ(*read, scenario) << print(scenario);
  }
}

TEST(Scenario, DrawsWithWeightsOnlyWhereWorkersAskEachOther) {
  std::map<barrier::Weighting, int> seen;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    ++seen[scenario.barrier.weighting];
    EXPECT_TRUE(core::check_exchange(scenario.exchange, scenario.mode, scenario.barrier,
                                     scenario.recheck, scenario.workers));
    if (scenario.barrier.weighting != barrier::Weighting::uniform) {
      EXPECT_TRUE(barrier::is_weighted(scenario.barrier)) << seed;
    }
  }
  EXPECT_GT(seen[barrier::Weighting::availability], 20);
  EXPECT_GT(seen[barrier::Weighting::speed], 20);
}

/// One seed in six has a sampled barrier that decides by paces, in every mode.
TEST(Scenario, DrawsEverySampledBarrierOfPaces) {
  std::map<std::pair<core::Mode, std::string>, int> seen;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    if (!scenario.barrier.sample || !barrier::needs_paces(scenario.barrier)) continue;
    const std::string text = barrier::print(scenario.barrier);
    ++seen[{scenario.mode, text.substr(0, text.find(':'))}];
  }
  for (const core::Mode mode : {core::Mode::central, core::Mode::hybrid, core::Mode::peer})
    for (const char* name : {"pdssp", "pfluent", "psoon"})
      EXPECT_GT((seen[{mode, name}]), 10) << core::print(mode) << " " << name;
}

TEST(Scenario, IsRefusedIfALineIsMissing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = print(draw_scenario(seed));
    const auto lines = split(text, '\n');
    for (std::size_t removed = 0; removed + 1 < lines.size(); ++removed) {
      std::string rest;
      for (std::size_t i = 0; i + 1 < lines.size(); ++i)
        if (i != removed) rest += std::string{lines[i]} + "\n";
      EXPECT_NE(refusal(rest), "accepted") << "without " << lines[removed];
    }
  }
}

TEST(Scenario, IsRefusedIfItIsTruncated) {
  const std::string text = print(draw_scenario(5));
  for (std::size_t length = 0; length + 1 < text.size(); ++length)
    EXPECT_NE(refusal(text.substr(0, length)), "accepted") << text.substr(0, length);
}

struct BadScenario {
  const char* from;
  const char* to;
  const char* part_of_message;
};

TEST(Scenario, IsRefusedIfALineIsInvalidAndTheMessageSaysWhich) {
  EXPECT_EQ(refusal(""), "is empty; valid: a scenario as chaos writes it");
  EXPECT_EQ(refusal("# nothing\n\n"),
            "has no line seed; valid: the whole file, as chaos writes it");
  EXPECT_EQ(refusal("\xff\x1b 1").substr(0, 16), "line 1: \\xff\\x1b");
  for (const auto& [from, to, part_of_message] :
       {BadScenario{"seed 1", "sede 1", "line 1: sede: this key is unknown; did you mean 'seed'?"},
        BadScenario{"seed 1", "seed 1\nseed 1", "line 2: seed: is given twice; valid: once"},
        BadScenario{"faults 1", "faults 1\nfaults 1", "comes after the last line, faults"},
        BadScenario{"faults 1", "faults 2", "faults: '2', but 1 of them are above"},
        BadScenario{"faults 1\n", "", "has no line faults"},
        BadScenario{"loss 0", "loss 2", "line 12: loss: 2 is out of bounds; valid: 0 to 0.3"},
        BadScenario{"mode peer", "mode hybrid", "servers=0"},
        BadScenario{"pssp:s=2,beta=2", "bsp", "central"},
        BadScenario{"workers 5", "workers 2", "beta"},
        BadScenario{"exchange owners\ncache no\nbarrier pssp:s=2,beta=2",
                    "exchange allreduce:ring,buckets=5\ncache no\nbarrier bsp",
                    "exchange allreduce:ring,buckets=5: buckets=5; valid: at most 4"},
        BadScenario{"copies 2", "copies 24", "valid: 1 to 4"},
        BadScenario{"workers 5\nservers 0\nranges 4\ncopies 2",
                    "workers 3\nservers 0\nranges 4\ncopies 4",
                    "copies 4, but only 3 nodes own ranges; valid: 1 to 3"},
        BadScenario{"steps 12", "steps 100000", "valid: 1 to 30"},
        BadScenario{"compute 5ms", "compute 1h", "valid: above 0s, at most 100ms"},
        BadScenario{"compute 5ms", "compute 0s", "valid: above 0s, at most 100ms"},
        BadScenario{"recheck notify+interval:auto", "recheck interval:1us",
                    "interval:1us; valid: interval:1ms to interval:1s, or interval:auto"},
        BadScenario{"recheck notify+interval:auto", "recheck notify+interval:1h",
                    "interval:1h; valid: interval:1ms to interval:1s, or interval:auto"},
        BadScenario{"latency 1ms", "latency 10h", "valid: above 0s, at most 2ms"},
        BadScenario{
            "steps 12\nloss 0\nduplication 0\nreordering 0\nlatency 1ms\ncompute 5ms\nstraggling 1",
            "steps 30\nloss 0\nduplication 0\nreordering 0\nlatency 1ms\ncompute 100ms\nstraggling "
            "10",
            "steps x compute x straggling takes longer than 15s"},
        BadScenario{"freeze:at=1ms,node=1,lasts=1ms", "crush:at=3ms,node=1",
                    "did you mean 'crash'?"},
        BadScenario{"freeze:at=1ms,node=1,lasts=1ms", "crash",
                    "line 19: fault: crash: at is missing"},
        BadScenario{"freeze:at=1ms,node=1,lasts=1ms", "crash:at=1ms", "crash: node is missing"},
        BadScenario{"freeze:at=1ms,node=1,lasts=1ms", "partition:at=1ms,lasts=1ms",
                    "partition: group is missing"},
        BadScenario{"freeze:at=1ms,node=1,lasts=1ms", "partition:at=1ms,node=1,lasts=1ms,group=1",
                    "unknown option 'node'"},
        BadScenario{"freeze:at=1ms,node=1,lasts=1ms", "partition:at=1ms,lasts=1ms,group=31",
                    "group=31"},
        BadScenario{"freeze:at=1ms,node=1,lasts=1ms", "partition:at=1ms,lasts=1ms,group=32",
                    "group=32"},
        BadScenario{"node=1,lasts=1ms", "node=1", "freeze: lasts is missing"},
        BadScenario{"node=1,lasts=1ms", "node=5,lasts=1ms",
                    "line 19: fault: there is no node 5; valid: 0 to 4, or a node that joins"},
        BadScenario{"lasts=1ms", "lasts=50h", "lasts must be at most 1min"}}) {
    const std::string message = refusal(scenario_with(from, to));
    EXPECT_NE(message.find(part_of_message), std::string::npos)
        << part_of_message << "\nis not in\n"
        << message;
  }
}

}  // namespace
}  // namespace starling::sim
