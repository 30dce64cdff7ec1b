/// The fixture of the drills: tests in which nodes, each on a host of its own, train a job while
/// the test injects faults.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "programs.hpp"
#include "tests/hosts/fleet.hpp"

namespace starling::program {

using namespace std::chrono_literals;

/// A mode, and a barrier that jobs in this mode may have.
struct JobMode {
  const char* mode;
  const char* barrier;
};

inline void PrintTo(const JobMode& mode, std::ostream* out) {
  *out << mode.mode << ", " << mode.barrier;
}

/// Returns the flags that select the mode and the barrier, followed by a space.
inline std::string flags(const JobMode& mode) {
  return std::string{"--mode "} + mode.mode + " --barrier " + mode.barrier + " ";
}

/// All modes; central mode with two barriers.
inline const std::vector<JobMode> job_modes{{"central", "bsp"},
                                            {"central", "pssp:s=4,beta=2"},
                                            {"hybrid", "pssp:s=4,beta=2"},
                                            {"peer", "pssp:s=4,beta=2"}};

/// Returns the end of a test's name, such as `peer_pssp`.
inline std::string name_of(const testing::TestParamInfo<JobMode>& info) {
  const std::string barrier = info.param.barrier;
  return std::string{info.param.mode} + "_" + barrier.substr(0, barrier.find(':'));
}

/// Returns the number behind the first `key` in JSON text; NaN if `key` is absent.
inline double number_in(const std::string& json, const std::string& key) {
  const auto at = json.find("\"" + key + "\":");
  if (at == std::string::npos) return std::nan("");
  return std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

/// Returns the elements of all tensors of a safetensors file of float32, in the order of the file;
/// nothing if the file is too short.
inline std::vector<float> elements(const std::string& file) {
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes) return {};
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  std::vector<float> values((file.size() - sizeof header_bytes - header_bytes) / sizeof(float));
  std::memcpy(values.data(), file.data() + sizeof header_bytes + header_bytes,
              values.size() * sizeof(float));
  return values;
}

/// Returns the elements of the uint64 tensor `name` of a safetensors file; nothing if it is absent.
inline std::vector<std::uint64_t> integers_of(const std::string& file, const std::string& name) {
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes) return {};
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const auto tensor = file.find("\"" + name + "\":{");
  const auto offsets = file.find("\"data_offsets\":[", tensor);
  if (tensor == std::string::npos || offsets == std::string::npos) return {};
  char* end = nullptr;
  const auto from = std::strtoull(file.c_str() + offsets + 16, &end, 10);
  const auto to = std::strtoull(end + 1, nullptr, 10);
  std::vector<std::uint64_t> values((to - from) / sizeof(std::uint64_t));
  std::memcpy(values.data(), file.data() + sizeof header_bytes + header_bytes + from, to - from);
  return values;
}

/// Returns |a - b| / |b| with the Euclidean norm; infinity if the sizes differ or `b` is empty.
inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || b.empty()) return INFINITY;
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

/// Returns the seed that decides which nodes are killed, and when: the value of
/// STARLING_DRILL_SEED, or a random number if that is not set.
inline unsigned draw_seed() {
  const char* chosen = std::getenv("STARLING_DRILL_SEED");
  return chosen != nullptr ? static_cast<unsigned>(std::stoul(chosen)) : std::random_device{}();
}

/// Returns how many nodes are to be killed: the value of STARLING_DRILL_DEATHS, if that is set.
inline int number_of_deaths(int fallback) {
  const char* chosen = std::getenv("STARLING_DRILL_DEATHS");
  return chosen != nullptr ? std::atoi(chosen) : fallback;
}

using hosts::Keys;

/// Returns true if nodes have key files in a drill that does not choose: they do if
/// STARLING_DRILL_KEYS is set.
inline Keys default_keys() {
  return std::getenv("STARLING_DRILL_KEYS") != nullptr ? Keys::given : Keys::none;
}

/// Nodes that train a job. `fleet_` runs the nodes and the commands, and observes the job.
class Drill : public testing::TestWithParam<JobMode> {
 protected:
  using Time = std::chrono::milliseconds;

  /// Starts nodes n0, n1, ..., one on each of `hosts` hosts. Skips the test if hosts cannot be
  /// made.
  void start_on_hosts(std::size_t hosts) { start_on_hosts(hosts, default_keys(), hosts); }
  /// Makes `hosts` hosts, and starts a node on each of the first `nodes` of them.
  void start_on_hosts(std::size_t hosts, Keys keys, std::size_t nodes) {
    auto network = hosts::Hosts::make(hosts);
    if (!network) GTEST_SKIP() << network.error().message;
    start_fleet(std::make_unique<hosts::Fleet>(STARLING_PROGRAM, *std::move(network), keys), nodes);
  }
  /// Starts nodes on this machine's loopback.
  void start_on_loopback(std::size_t nodes) {
    start_fleet(std::make_unique<hosts::Fleet>(STARLING_PROGRAM), nodes);
  }

  void TearDown() override {
    if (fleet_ && (HasFailure() || std::getenv("STARLING_DRILL_LOGS") != nullptr))
      std::fprintf(stderr, "%s\n", fleet_->logs().c_str());
    fleet_.reset();
  }

  /// Submits a job to n1, and waits until the job trains. In central mode, n1 then has the
  /// coordinator. The job has six workers, which make some 30 to 50 steps a second each.
  void submit(const JobMode& mode, int steps, const std::string& more_flags = "") {
    fleet_->submit(1,
                   "--data digits:n=3000 --model mlp:784-32-10 --workers 6 --delay exp:10ms "
                   "--json --save m.safetensors --checkpoint c.ckpt --steps " +
                       std::to_string(steps) + " " + flags(mode) +
                       (mode.mode == std::string{"peer"} ? "" : "--shards 2 ") + more_flags);
    ASSERT_TRUE(fleet_->watch(30s, [&] { return fleet_->highest_step() > 10; }));
    ASSERT_TRUE(fleet_->is_training());
    fleet_->reset_longest_pause();
  }

  /// Waits for the job's end. Expects success, a test accuracy above 0.9, and a saved model that
  /// can be evaluated.
  void expect_good_model(Time timeout) {
    (void)fleet_->watch(timeout, [] { return false; });
    ASSERT_FALSE(fleet_->is_training()) << "the job does not end";
    const ProgramResult ran = fleet_->finish();
    EXPECT_EQ(ran.code, 0) << ran.err;
    summary_ = ran.out;
    EXPECT_GT(number_in(ran.out, "test_accuracy"), 0.9) << ran.out;
    const ProgramResult evaluated = fleet_->run("evaluate " + saved_model().string() + " --json");
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    report("updates", std::to_string(static_cast<long>(number_in(ran.out, "updates"))));
  }
  /// Reads the job's last checkpoint. Returns the updates of the range with the most updates, minus
  /// those of the range with the fewest. Ranges differ only by pushes that were in flight when
  /// their worker died: one range may hold such a push and another not.
  [[nodiscard]] std::uint64_t difference_of_updates() const {
    // Three numbers for each range; the first one counts its updates.
    const auto numbers = integers_of(fleet_->work_folder().read("c.ckpt"), "starling.ranges");
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < numbers.size(); i += 3) {
      least = std::min(least, numbers[i]);
      most = std::max(most, numbers[i]);
    }
    EXPECT_GT(most, 0U);
    report("updates_by_range", std::to_string(least) + " to " + std::to_string(most) + " in " +
                                   std::to_string(numbers.size() / 3) + " ranges");
    return most - least;
  }
  [[nodiscard]] std::filesystem::path saved_model() const {
    return fleet_->work_folder().path() / "m.safetensors";
  }

  /// Also expects that training never paused for more than 3 s.
  void expect_good_model_without_long_pause() {
    expect_good_model(120s);
    report_pause();
    EXPECT_LE(fleet_->longest_pause(), 3s);
  }

  void report_death(int round, std::size_t killed) {
    report("round_" + std::to_string(round),
           "n" + std::to_string(killed) + " killed, longest pause so far " +
               std::to_string(fleet_->longest_pause().count()) + " ms");
  }
  void report_pause() {
    report("longest_pause_ms", std::to_string(fleet_->longest_pause().count()));
  }
  /// Prints a measurement, and records it as a property of the test.
  static void report(const std::string& name, const std::string& value) {
    std::printf("             %s: %s\n", name.c_str(), value.c_str());
    std::fflush(stdout);
    RecordProperty(name, value);
  }

  std::unique_ptr<hosts::Fleet> fleet_;
  /// The job's summary, after expect_good_model().
  std::string summary_;

 private:
  void start_fleet(std::unique_ptr<hosts::Fleet> fleet, std::size_t nodes) {
    fleet_ = std::move(fleet);
    for (std::size_t i = 0; i < nodes; ++i) fleet_->start(i);
    ASSERT_TRUE(fleet_->wait_until_members_agree(20s));
  }
};

}  // namespace starling::program
