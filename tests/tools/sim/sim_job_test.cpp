#include "starling/tools/sim/sim_job.hpp"

#include <set>

#include "starling/tools/command_line/job_file.hpp"
#include "starling/tools/sim/sim_keys.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

SimJob job_of(const Settings& settings, bool has_file = false) {
  auto job = make_sim_job(settings, {}, has_file);
  EXPECT_TRUE(job) << job.error().message;
  return *std::move(job);
}

std::vector<std::string> barriers_of(const SimJob& job) {
  std::vector<std::string> texts;
  for (const auto& barrier : job.barriers) texts.push_back(barrier::print(barrier));
  return texts;
}

/// Returns the settings of a job file with that content, as `starling sim` reads it.
Settings file_of(const std::string& content) {
  const Folder folder;
  folder.write("job.toml", content);
  auto settings = read_sim_file((folder.path() / "job.toml").string());
  EXPECT_TRUE(settings) << settings.error().message;
  return *std::move(settings);
}

TEST(SimKeys, HaveUniqueNamesAndHelp) {
  std::set<std::string> names;
  for (const SimKey& key : sim_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_FALSE(key.group.empty()) << key.name;
    EXPECT_NE(key.set, nullptr) << key.name;
    EXPECT_EQ(find_sim_key(key.name), &key);
  }
  EXPECT_EQ(find_sim_key("save"), nullptr);
}

TEST(SimJob, IsThePublishedSimulationWithoutSettings) {
  const SimJob job = job_of({});
  EXPECT_EQ(job.options.workers, 1000U);
  EXPECT_EQ(job.options.horizon, 40s);
  EXPECT_EQ(print(job.options.step_time), "exp:100ms");
  EXPECT_EQ(job.mode, core::Mode::central);
  EXPECT_EQ(job.options.recheck, barrier::Recheck::central());
  EXPECT_EQ(barriers_of(job), (std::vector<std::string>{"bsp", "ssp:s=4", "pbsp:beta=10",
                                                        "pssp:s=4,beta=10", "asp"}));
}

TEST(SimJob, RechecksByNoticeInPeerMode) {
  const SimJob job = job_of({{"mode", "peer", ""}});
  EXPECT_EQ(job.options.recheck, barrier::Recheck::distributed());
  EXPECT_EQ(barriers_of(job),
            (std::vector<std::string>{"pbsp:beta=10", "pssp:s=4,beta=10", "asp"}));
}

TEST(SimJob, LimitsDefaultSampleSizesToTheOtherWorkers) {
  EXPECT_EQ(barriers_of(job_of({{"workers", "5", ""}, {"mode", "peer", ""}})),
            (std::vector<std::string>{"pbsp:beta=4", "pssp:s=4,beta=4", "asp"}));
  EXPECT_FALSE(make_sim_job({{"workers", "5", ""}, {"barrier", "pbsp:beta=10", ""}}, {}, false));
}

TEST(SimJob, TakesWorkersDelayAndLimitsFromATrainingJob) {
  const SimJob job = job_of(file_of("workers = 8\n"
                                    "straggler = [\"1:4x\", \"1:2x\"]\n"
                                    "delay = \"exp:20ms\"\n"
                                    "seconds = 6\n"
                                    "steps = 100\n"
                                    "data = \"csv:is-not-read.csv\"\n"
                                    "model = \"no-such-model\"\n"
                                    "optimizer = \"sgd:lr=0.1\"\n"
                                    "save = \"is-not-written\"\n"),
                            true);
  EXPECT_EQ(job.options.workers, 8U);
  EXPECT_EQ(job.options.slowness, (std::vector<double>{1, 1, 1, 1, 1, 1, 2, 4}));
  EXPECT_EQ(print(job.options.step_time), "exp:20ms");
  EXPECT_EQ(job.options.horizon, 6s);
  EXPECT_EQ(job.options.steps_max, 100U);
  // A job file without mode and barrier has those that training has by default.
  EXPECT_EQ(job.mode, core::Mode::peer);
  EXPECT_EQ(barriers_of(job), std::vector<std::string>{"pssp:s=4,beta=2"});
}

TEST(SimJob, PrefersTheSimTableOfAJobFile) {
  const SimJob job = job_of(file_of("workers = 8\n"
                                    "delay = \"exp:20ms\"\n"
                                    "seconds = 6\n"
                                    "mode = \"central\"\n"
                                    "barrier = \"bsp\"\n"
                                    "[sim]\n"
                                    "workers = 100\n"
                                    "barrier = [\"asp\", \"ssp:s=2\"]\n"
                                    "step-time = \"gamma:mean=30ms,shape=2\"\n"
                                    "horizon = \"2min\"\n"
                                    "seeds = 3\n"),
                            true);
  EXPECT_EQ(job.options.workers, 100U);
  EXPECT_EQ(barriers_of(job), (std::vector<std::string>{"asp", "ssp:s=2"}));
  EXPECT_EQ(print(job.options.step_time), "gamma:mean=30ms,shape=2");
  EXPECT_EQ(job.options.horizon, 120s);
  EXPECT_EQ(job.seeds, 3U);
}

TEST(SimJob, ConvertsEpochsToStepsByTheSizeOfItsData) {
  // By default 480 of 600 rows are for training, and there are 4 workers: at batch 8, an epoch has
  // 15 steps.
  const std::string file = "epochs = 2\ndata = \"digits:n=600\"\nbatch = 8\n";
  EXPECT_EQ(job_of(file_of(file), true).options.steps_max, 30U);
  EXPECT_EQ(job_of(file_of(file + "steps = 20\n"), true).options.steps_max, 20U);
}

TEST(SimJob, CannotConvertEpochsToStepsWithoutItsData) {
  const auto job = make_sim_job(file_of("\nepochs = 2\ndata = \"csv:gone.csv\"\n"), {}, true);
  ASSERT_FALSE(job);
  for (const char* part : {"job.toml:2: epochs: the data, which says how many steps", "gone.csv",
                           "valid: steps instead"})
    EXPECT_NE(job.error().message.find(part), std::string::npos) << job.error().message;
}

TEST(SimJob, SimulatesTheExchangeOfAModelOfSomeSize) {
  const SimJob job = job_of({{"workers", "10000", ""},
                             {"exchange", "allreduce:ring", "--exchange"},
                             {"bytes", "100M", "--bytes"},
                             {"latency", "const:50us", "--latency"},
                             {"bandwidth", "1GB", "--bandwidth"}});
  ASSERT_TRUE(job.options.exchange);
  EXPECT_EQ(job.options.exchange->name, "allreduce:ring");
  EXPECT_EQ(job.options.exchange->bytes, 1e8);
  EXPECT_EQ(job.options.exchange->bytes_per_second, 1e9);
  EXPECT_EQ(print(job.options.exchange->latency), "const:50us");
  EXPECT_EQ(job.mode, core::Mode::peer);
  EXPECT_EQ(barriers_of(job), std::vector<std::string>{"bsp"});
}

TEST(SimJob, TakesTheShardsOfAnExchangeWithServers) {
  const SimJob job = job_of({{"bytes", "1M", "--bytes"},
                             {"mode", "central", "--mode"},
                             {"barrier", "asp", "--barrier"},
                             {"shards", "3", "--shards"}});
  EXPECT_EQ(job.options.exchange->name, "owners");
  EXPECT_EQ(job.options.exchange->servers, 3U);
}

TEST(SimJob, RefusesAnExchangeWithoutASize) {
  const auto refused = [](const Settings& settings) {
    return make_sim_job(settings, {}, false).error().message;
  };
  const std::string valid =
      ": has no effect at the step level without the size of the model; valid: with bytes, like "
      "100M, or --level protocol";
  EXPECT_EQ(refused({{"exchange", "gossip", "--exchange"}}), "--exchange" + valid);
  EXPECT_EQ(refused({{"latency", "exp:1ms", "--latency"}}), "--latency" + valid);
  EXPECT_EQ(
      refused({{"bytes", "1M", "--bytes"}, {"mode", "peer", "--mode"}, {"shards", "3", "--shards"}})
          .substr(0, 34),
      "--shards: peer mode has no servers");
  EXPECT_EQ(
      refused({{"bytes", "1M", "--bytes"}, {"learn", "true", "--learn"}}),
      "--learn: its linear model has no exchange, which bytes asks for; valid: without bytes, or "
      "without learn");
  EXPECT_EQ(refused({{"bytes", "1M", "--bytes"}, {"level", "protocol", "--level"}}),
            "--bytes: at the protocol level the model has its own size; valid: without bytes, or "
            "--level step");
}

TEST(SimJob, HasNoMoreThreadsThanRuns) {
  EXPECT_EQ(threads_of(job_of({{"barrier", "asp", ""}, {"seeds", "3", ""}, {"threads", "8", ""}})),
            3U);
  EXPECT_GE(threads_of(job_of({})), 1U);
}

TEST(SimJob, IsRefusedIfItExceedsTheMemoryLimit) {
  const Settings large{{"workers", "1000000", ""}, {"threads", "2", ""}};
  const auto with = [&](const std::string& limit) {
    Settings settings = large;
    settings.push_back({"memory", limit, "--memory"});
    return make_sim_job(settings, {}, false);
  };
  EXPECT_TRUE(with("64GiB"));
  const auto refused = with("1.5MB");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(
      "--memory: 2 runs at the same time of 1000000 workers would take about "))
      << refused.error().message;
}

TEST(SimTable, IsCheckedButIgnoredByTraining) {
  const Folder folder;
  const std::string path = (folder.path() / "job.toml").string();
  folder.write("job.toml", "workers = 3\n[sim]\nhorizon = \"1s\"\n");
  const auto settings = read_job_file(path);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->size(), 1U);
  folder.write("job.toml", "workers = 3\n[sim]\nhorizn = \"1s\"\n");
  const auto wrong = read_job_file(path);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("job.toml:3: unknown key 'horizn'; did you mean 'horizon'?"),
            std::string::npos)
      << wrong.error().message;
}

TEST(SimJob, SaysThatAnExchangeIsNotSimulated) {
  const auto job = make_sim_job(file_of("\nexchange = \"average:every=4\"\n"), {}, true);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->notes.back(),
            "exchange average:every=4 is not simulated without bytes; instead, workers wait for "
            "all others in every step");
  const auto other =
      make_sim_job(file_of("\nexchange = \"average:every=4\"\nbarrier = \"asp\"\n"), {}, true);
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(other->notes.back(), "exchange average:every=4 is not simulated without bytes");
}

}  // namespace
}  // namespace starling::program
