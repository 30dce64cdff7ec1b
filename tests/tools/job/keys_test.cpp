#include "starling/tools/job/keys.hpp"

#include <gtest/gtest.h>

#include <set>

#include "starling/tools/cluster/job_preparer.hpp"

namespace starling::program {
namespace {

Job job_of(const Settings& settings) {
  auto job = make_job(settings, {});
  EXPECT_TRUE(job) << job.error().message;
  return *std::move(job);
}

TEST(Keys, AreUniqueAndHaveHelp) {
  std::set<std::string> names;
  for (const Key& key : job_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_FALSE(key.group.empty()) << key.name;
    EXPECT_NE(key.set, nullptr) << key.name;
    EXPECT_EQ(find_key(key.name), &key);
  }
  EXPECT_EQ(find_key("workerss"), nullptr);
}

/// Only the keys of files and of the model accept any text: the model is not looked up before the
/// data is known.
TEST(Job, RefusesABadValueWithItsLocation) {
  for (const Key& key : job_keys()) {
    if (key.type == ValueType::flag) continue;
    const auto job = make_job({{key.name, "\x01", "here"}}, {});
    EXPECT_EQ(job.ok(), key.value_name == "FILE" || key.name == "model") << key.name;
    if (!job) {
      EXPECT_TRUE(job.error().message.starts_with("here: ")) << job.error().message;
    }
  }
}

TEST(Job, HasTheDefaultsThatTheHelpNames) {
  const Job job = job_of({});
  EXPECT_EQ(job.train.job.workers, 4U);
  EXPECT_EQ(job.train.job.mode, core::Mode::peer);
  EXPECT_EQ(barrier::print(job.train.job.barrier), "pssp:s=4,beta=2");
  EXPECT_EQ(models::print(job.train.optimizer), "adam:lr=0.005");
  EXPECT_EQ(job.train.batch, 32U);
  EXPECT_EQ(job.epochs, epochs_default);
}

TEST(Job, AnyLimitReplacesTheDefaultOne) {
  EXPECT_FALSE(job_of({{"seconds", "3", ""}}).epochs);
  EXPECT_FALSE(job_of({{"steps", "3", ""}}).epochs);
  EXPECT_FALSE(job_of({{"until", "loss=1", ""}}).epochs);
  const Job both = job_of({{"steps", "3", ""}, {"epochs", "1.5", ""}, {"seconds", "0.25", ""}});
  EXPECT_EQ(both.epochs, 1.5);
  EXPECT_EQ(both.train.job.steps, 3U);
  EXPECT_EQ(both.train.job.time, std::chrono::milliseconds{250});
}

TEST(Job, TakesTimesWithAndWithoutTheirUnit) {
  using namespace std::chrono_literals;
  for (const auto& [text, time] : {std::pair{"1", 1000ms},
                                   {"1s", 1000ms},
                                   {"200ms", 200ms},
                                   {"0.5min", 30000ms},
                                   {"1e-3", 1ms}})
    EXPECT_EQ(job_of({{"seconds", text, ""}}).train.job.time, time) << text;
}

TEST(Job, CollectsRepeatedKeys) {
  const Job job = job_of({{"straggler", "1:4x", ""}, {"straggler", "25%:2x", ""}});
  EXPECT_EQ(job.train.job.stragglers.size(), 2U);
}

TEST(Job, TakesOneSeedForDataAndTraining) {
  const Job job = job_of({{"seed", "18446744073709551615", ""}});
  EXPECT_EQ(job.data.seed, UINT64_MAX);
  EXPECT_EQ(job.train.job.seed, UINT64_MAX);
}

TEST(AddLocation, AddsTheLocationOfTheSettingThatTheMessageNames) {
  const Settings settings{{"barrier", "bsp", "job.toml:2: barrier"}, {"workers", "2", "--workers"}};
  EXPECT_EQ(add_location(Error{"barrier bsp needs"}, settings).message,
            "job.toml:2: barrier: barrier bsp needs");
  EXPECT_EQ(add_location(Error{"recheck arrival works"}, settings).message,
            "--workers: recheck arrival works");
  EXPECT_EQ(add_location(Error{"something else"}, settings).message, "something else");
}

/// A node must not touch files that a submitter names.
TEST(SettingsOfNodes, HaveNoOutputs) {
  for (const char* key : {"save", "checkpoint", "metrics", "report", "trace"}) {
    EXPECT_TRUE(to_wire({{key, "file", ""}}).empty()) << key;
    EXPECT_FALSE(from_wire({{key, "file"}})) << key;
  }
}

}  // namespace
}  // namespace starling::program
