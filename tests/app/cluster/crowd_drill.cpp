/// Many nodes that do nothing but watch each other.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/app/cluster/drills.hpp"

namespace starling::app {
namespace {

class Crowd : public Drill {
 protected:
  /// What `status` shows of all nodes.
  nlohmann::json nodes() {
    const Ran ran = fleet_->run("status --json" + fleet_->access(0));
    const auto seen = nlohmann::json::parse(ran.out, nullptr, false);
    return seen.is_discarded() ? nlohmann::json::array() : seen["nodes"];
  }
  std::size_t alive() {
    const auto seen = fleet_->run("status --here --json" + fleet_->access(0));
    const auto json = nlohmann::json::parse(seen.out, nullptr, false);
    if (json.is_discarded()) return 0;
    const auto& all = json["nodes"];
    return static_cast<std::size_t>(
        std::ranges::count(all, "alive", [](const auto& node) { return node["state"]; }));
  }
};

/// Each takes some 20 MiB of memory and, where all are on one machine, its part of the processors.
TEST_F(Crowd, CostsEachLittle) {
  constexpr std::size_t others = 100;
  ASSERT_NO_FATAL_FAILURE(begin_here(2));
  std::this_thread::sleep_for(10s);
  const std::size_t before = fleet_->rss_kib(0);
  while (fleet_->awake().size() < others + 1) fleet_->start(0);
  const auto give_up = hosts::Fleet::Clock::now() + 120s;
  while (alive() < others + 1 && hosts::Fleet::Clock::now() < give_up)
    std::this_thread::sleep_for(1s);
  EXPECT_EQ(alive(), others + 1);
  // Each in touch with each, as far as it ever will be.
  std::this_thread::sleep_for(60s);
  const auto busy = fleet_->busy(0);
  std::this_thread::sleep_for(60s);
  const double share = (fleet_->busy(0) - busy) / 60s;
  const auto grown = static_cast<double>(fleet_->rss_kib(0)) - static_cast<double>(before);
  tell("kb_a_peer", std::to_string(grown * 1.024 / (others - 1)));
  tell("share_of_a_core", std::to_string(share));
  EXPECT_EQ(alive(), others + 1);
  EXPECT_LE(grown * 1.024 / (others - 1), 100);
  EXPECT_LE(share, 0.05);
}

/// Programs that do nothing but take all the processors, four for each.
class Overload {
 public:
  Overload() {
    for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
      if (const pid_t child = ::fork(); child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned long turns = 0;;) turns = turns + 1;
      } else {
        all_.push_back(child);
      }
  }
  ~Overload() {
    for (const pid_t child : all_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  Overload(const Overload&) = delete;
  Overload& operator=(const Overload&) = delete;

 private:
  std::vector<pid_t> all_;
};

TEST_F(Crowd, OnOverloadedMachinesDeclaresNobodyDead) {
  ASSERT_NO_FATAL_FAILURE(begin_here(10));
  std::uint64_t probes = 0;
  std::uint64_t suspicions = 0;
  std::uint64_t deaths = 0;
  {
    const Overload overload;
    const auto give_up = hosts::Fleet::Clock::now() + 900s;
    while (probes < 10'000 && hosts::Fleet::Clock::now() < give_up) {
      std::this_thread::sleep_for(5s);
      std::uint64_t all = 0;
      suspicions = deaths = 0;
      for (const auto& node : nodes()) {
        if (!node.contains("membership")) continue;
        all += node["membership"]["probes"].get<std::uint64_t>();
        suspicions += node["membership"]["suspicions"].get<std::uint64_t>();
        deaths += node["membership"]["deaths"].get<std::uint64_t>();
      }
      probes = std::max(probes, all);
    }
  }
  tell("probes", std::to_string(probes));
  tell("suspicions", std::to_string(suspicions));
  tell("deaths", std::to_string(deaths));
  EXPECT_GE(probes, 10'000U);
  EXPECT_LE(deaths, 1U);
  EXPECT_TRUE(fleet_->agree(10s));
}

}  // namespace
}  // namespace starling::app
