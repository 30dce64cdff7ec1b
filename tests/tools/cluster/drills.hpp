/// The base of the drills: long tests with nodes on hosts of their own, which train a job while
/// faults are injected.
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

/// A mode, with a barrier that works in it.
struct JobMode {
  const char* mode;
  const char* barrier;
};

inline void PrintTo(const JobMode& mode, std::ostream* out) {
  *out << mode.mode << ", " << mode.barrier;
}

inline std::string flags(const JobMode& mode) {
  return std::string{"--mode "} + mode.mode + " --barrier " + mode.barrier + " ";
}

/// Every mode, central mode with two barriers.
inline const std::vector<JobMode> job_modes{{"central", "bsp"},
                                            {"central", "pssp:s=4,beta=2"},
                                            {"hybrid", "pssp:s=4,beta=2"},
                                            {"peer", "pssp:s=4,beta=2"}};

/// Returns the end of a test's name.
inline std::string name_of(const testing::TestParamInfo<JobMode>& info) {
  const std::string barrier = info.param.barrier;
  return std::string{info.param.mode} + "_" + barrier.substr(0, barrier.find(':'));
}

/// Returns the number behind `key` in a JSON object; NaN if there is none.
inline double figure(const std::string& json, const std::string& key) {
  const auto at = json.find("\"" + key + "\":");
  if (at == std::string::npos) return std::nan("");
  return std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

/// Returns the elements of all tensors of a safetensors file.
inline std::vector<float> elements(const std::string& file) {
  std::uint64_t head = 0;
  if (file.size() < sizeof head) return {};
  std::memcpy(&head, file.data(), sizeof head);
  std::vector<float> all((file.size() - sizeof head - head) / sizeof(float));
  std::memcpy(all.data(), file.data() + sizeof head + head, all.size() * sizeof(float));
  return all;
}

/// Returns the elements of a tensor of 64-bit whole numbers in a safetensors file.
inline std::vector<std::uint64_t> integers_of(const std::string& file, const std::string& name) {
  std::uint64_t head = 0;
  if (file.size() < sizeof head) return {};
  std::memcpy(&head, file.data(), sizeof head);
  const auto tensor = file.find("\"" + name + "\":{");
  const auto offsets = file.find("\"data_offsets\":[", tensor);
  if (tensor == std::string::npos || offsets == std::string::npos) return {};
  char* end = nullptr;
  const auto from = std::strtoull(file.c_str() + offsets + 16, &end, 10);
  const auto to = std::strtoull(end + 1, nullptr, 10);
  std::vector<std::uint64_t> all((to - from) / sizeof(std::uint64_t));
  std::memcpy(all.data(), file.data() + sizeof head + head + from, to - from);
  return all;
}

/// Returns |a - b| / |b|.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || b.empty()) return INFINITY;
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

using hosts::Keys;

/// Returns whether the nodes of a drill have key files, unless the drill itself decides that.
inline Keys default_keys() {
  return std::getenv("STARLING_DRILL_KEYS") != nullptr ? Keys::given : Keys::none;
}

class Drill : public testing::TestWithParam<JobMode> {
 protected:
  using Time = std::chrono::milliseconds;

  /// Starts nodes n0, n1, ..., one on each host; skips the test if hosts cannot be made.
  void begin(std::size_t hosts) { begin(hosts, default_keys(), hosts); }
  /// Starts nodes on the first `nodes` of the hosts.
  void begin(std::size_t hosts, Keys keys, std::size_t nodes) {
    auto network = hosts::Hosts::make(hosts);
    if (!network) GTEST_SKIP() << network.error().message;
    begin(std::make_unique<hosts::Fleet>(STARLING_PROGRAM, *std::move(network), keys), nodes);
  }
  /// Starts nodes on this machine's loopback.
  void begin_here(std::size_t nodes) {
    begin(std::make_unique<hosts::Fleet>(STARLING_PROGRAM), nodes);
  }

  void TearDown() override {
    if (fleet_ && (HasFailure() || std::getenv("STARLING_DRILL_LOGS") != nullptr))
      std::fprintf(stderr, "%s\n", fleet_->logs().c_str());
    fleet_.reset();
  }

  /// Submits a job to n1, which then has the coordinator of central mode, and waits until it
  /// trains. Its six workers make some 30 to 50 steps a second each, and learn well.
  void submit(const JobMode& mode, int steps, const std::string& more = "") {
    fleet_->submit(1,
                   "--data digits:n=3000 --model mlp:784-32-10 --workers 6 --delay exp:10ms "
                   "--json --save m.safetensors --checkpoint c.ckpt --steps " +
                       std::to_string(steps) + " " + flags(mode) +
                       (mode.mode == std::string{"peer"} ? "" : "--shards 2 ") + more);
    ASSERT_TRUE(fleet_->watch(30s, [&] { return fleet_->highest_step() > 10; }));
    ASSERT_TRUE(fleet_->is_training());
    fleet_->reset_longest_pause();
  }

  /// Waits for the job's end: expects success, a test accuracy above 0.9, and a saved model that
  /// can be evaluated.
  void expect_good_model(Time timeout) {
    (void)fleet_->watch(timeout, [] { return false; });
    ASSERT_FALSE(fleet_->is_training()) << "the job does not end";
    const Ran ran = fleet_->finish();
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_GT(figure(ran.out, "test_accuracy"), 0.9) << ran.out;
    const Ran evaluated = fleet_->run("evaluate " + saved_model().string() + " --json");
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    report("updates", std::to_string(static_cast<long>(figure(ran.out, "updates"))));
  }
  /// Returns how many more updates the range with the most holds than the one with the fewest. If a
  /// worker died with a push in flight, one range may hold that push and another not; nothing else
  /// makes a difference.
  [[nodiscard]] std::uint64_t difference_of_updates() const {
    const auto numbers = integers_of(fleet_->work().read("c.ckpt"), "starling.ranges");
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
    return fleet_->work().path() / "m.safetensors";
  }

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
  /// Prints a figure, and keeps it with the test's result.
  static void report(const std::string& name, const std::string& value) {
    std::printf("             %s: %s\n", name.c_str(), value.c_str());
    std::fflush(stdout);
    RecordProperty(name, value);
  }

  std::unique_ptr<hosts::Fleet> fleet_;

 private:
  void begin(std::unique_ptr<hosts::Fleet> fleet, std::size_t nodes) {
    fleet_ = std::move(fleet);
    for (std::size_t i = 0; i < nodes; ++i) fleet_->start(i);
    ASSERT_TRUE(fleet_->agree(20s));
  }
};

}  // namespace starling::program
