/// The base of the drills: nodes on hosts of their own, and a job that they train meanwhile.
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
struct Way {
  const char* mode;
  const char* barrier;
};

inline void PrintTo(const Way& way, std::ostream* out) { *out << way.mode << ", " << way.barrier; }

inline std::string flags(const Way& way) {
  return std::string{"--mode "} + way.mode + " --barrier " + way.barrier + " ";
}

/// Every mode.
inline const std::vector<Way> ways{{"central", "bsp"},
                                   {"central", "pssp:s=4,beta=2"},
                                   {"hybrid", "pssp:s=4,beta=2"},
                                   {"peer", "pssp:s=4,beta=2"}};

/// In a test's name.
inline std::string name_of(const testing::TestParamInfo<Way>& info) {
  const std::string barrier = info.param.barrier;
  return std::string{info.param.mode} + "_" + barrier.substr(0, barrier.find(':'));
}

/// The number behind `key` in an object of JSON; NaN where there is none.
inline double figure(const std::string& json, const std::string& key) {
  const auto at = json.find("\"" + key + "\":");
  if (at == std::string::npos) return std::nan("");
  return std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

/// The elements of a safetensors file, of all its tensors.
inline std::vector<float> elements(const std::string& file) {
  std::uint64_t head = 0;
  if (file.size() < sizeof head) return {};
  std::memcpy(&head, file.data(), sizeof head);
  std::vector<float> all((file.size() - sizeof head - head) / sizeof(float));
  std::memcpy(all.data(), file.data() + sizeof head + head, all.size() * sizeof(float));
  return all;
}

/// The elements of a tensor of whole numbers in a safetensors file.
inline std::vector<std::uint64_t> tensor_of(const std::string& file, const std::string& name) {
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

/// |a - b| / |b|.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || b.empty()) return INFINITY;
  double apart = 0;
  double all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(double{a[i]} - double{b[i]}, 2);
    all += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(apart / all);
}

using hosts::Keys;

/// For all drills that do not say otherwise.
inline Keys usual_keys() {
  return std::getenv("STARLING_DRILL_KEYS") != nullptr ? Keys::given : Keys::none;
}

class Drill : public testing::TestWithParam<Way> {
 protected:
  using Time = std::chrono::milliseconds;

  /// Nodes n0, n1, ..., one on each host; skips where there can be no hosts.
  void begin(std::size_t hosts) { begin(hosts, usual_keys(), hosts); }
  /// The same on the first `nodes` of them.
  void begin(std::size_t hosts, Keys keys, std::size_t nodes) {
    auto made = hosts::Hosts::make(hosts);
    if (!made) GTEST_SKIP() << made.error().message;
    begin(std::make_unique<hosts::Fleet>(STARLING_PROGRAM, *std::move(made), keys), nodes);
  }
  /// The same on this machine's loopback.
  void begin_here(std::size_t nodes) {
    begin(std::make_unique<hosts::Fleet>(STARLING_PROGRAM), nodes);
  }

  void TearDown() override {
    if (fleet_ && (HasFailure() || std::getenv("STARLING_DRILL_LOGS") != nullptr))
      std::fprintf(stderr, "%s\n", fleet_->logs().c_str());
    fleet_.reset();
  }

  /// A job of six workers that make some 30 to 50 steps a second each, and learn well; submitted to
  /// n1, which then has the coordinator of central mode.
  void submit(const Way& way, int steps, const std::string& more = "") {
    fleet_->submit(1,
                   "--data digits:n=3000 --model mlp:784-32-10 --workers 6 --delay exp:10ms "
                   "--json --save m.safetensors --checkpoint c.ckpt --steps " +
                       std::to_string(steps) + " " + flags(way) +
                       (way.mode == std::string{"peer"} ? "" : "--shards 2 ") + more);
    ASSERT_TRUE(fleet_->watch(30s, [&] { return fleet_->highest_step() > 10; }));
    ASSERT_TRUE(fleet_->is_training());
    fleet_->forget_pauses();
  }

  /// Waits for the job's end: expects success, a test accuracy above 0.9, and a saved model that
  /// can be evaluated.
  void expect_good_model(Time within) {
    (void)fleet_->watch(within, [] { return false; });
    ASSERT_FALSE(fleet_->is_training()) << "the job does not end";
    const Ran ran = fleet_->finish();
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_GT(figure(ran.out, "test_accuracy"), 0.9) << ran.out;
    const Ran judged = fleet_->run("evaluate " + saved().string() + " --json");
    EXPECT_EQ(judged.code, 0) << judged.err;
    tell("updates", std::to_string(static_cast<long>(figure(ran.out, "updates"))));
  }
  /// Returns how many more updates one range holds than another. Where a worker died with a push in
  /// flight, one range may hold that push and another not; nothing else sets ranges apart.
  [[nodiscard]] std::uint64_t updates_apart() const {
    const auto numbers = tensor_of(fleet_->work().read("c.ckpt"), "starling.ranges");
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < numbers.size(); i += 3) {
      least = std::min(least, numbers[i]);
      most = std::max(most, numbers[i]);
    }
    EXPECT_GT(most, 0U);
    tell("updates_by_range", std::to_string(least) + " to " + std::to_string(most) + " in " +
                                 std::to_string(numbers.size() / 3) + " ranges");
    return most - least;
  }
  [[nodiscard]] std::filesystem::path saved() const {
    return fleet_->work().path() / "m.safetensors";
  }

  void expect_good_model_without_long_pause() {
    expect_good_model(120s);
    tell_pause();
    EXPECT_LE(fleet_->longest_pause(), 3s);
  }

  void tell_death(int round, std::size_t killed) {
    tell("round_" + std::to_string(round),
         "n" + std::to_string(killed) + " killed, longest pause so far " +
             std::to_string(fleet_->longest_pause().count()) + " ms");
  }
  void tell_pause() { tell("longest_pause_ms", std::to_string(fleet_->longest_pause().count())); }
  /// A figure for people: printed, and kept with the test's result.
  static void tell(const std::string& what, const std::string& value) {
    std::printf("             %s: %s\n", what.c_str(), value.c_str());
    std::fflush(stdout);
    RecordProperty(what, value);
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
