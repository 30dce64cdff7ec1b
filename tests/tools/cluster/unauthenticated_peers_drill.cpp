/// Unauthenticated peers of a cluster that trains: they hold its nodes up neither by many
/// connections nor by garbage, and read nothing on the way.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "tests/tools/cluster/drills.hpp"

namespace starling::program {
namespace {

const Way peer{"peer", "pssp:s=4,beta=2"};

/// Runs `work` on a thread of its own, in the network of `enter`, until its end. Unauthenticated
/// peers have processors of their own, so this thread yields to the nodes.
class Elsewhere {
 public:
  Elsewhere(Process::Prepare enter, std::function<void(const std::atomic<bool>&)> work)
      : thread_([this, enter = std::move(enter), work = std::move(work)] {
          enter();
          (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
          work(ends_);
        }) {}
  ~Elsewhere() { end(); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  void end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

/// A connection to `tcp://HOST:PORT`; -1 where there is none within a second.
int call(const std::string& address) {
  const auto colon = address.rfind(':');
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(6, colon - 6).c_str(), &there.sin_addr);
  const int line = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval second{1, 0};
  ::setsockopt(line, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  if (::connect(line, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) return line;
  ::close(line);
  return -1;
}

/// Captures the bytes that pass in the network of `enter`, up to 256 MiB.
class Capture {
 public:
  explicit Capture(Process::Prepare enter)
      : elsewhere_(std::move(enter), [this](const std::atomic<bool>& ends) { listen(ends); }) {}

  std::string end() {
    elsewhere_.end();
    return std::move(seen_);
  }

 private:
  void listen(const std::atomic<bool>& ends) {
    const int tap = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    const timeval brief{0, 100'000};
    ::setsockopt(tap, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief);
    const int room = 64 << 20;
    ::setsockopt(tap, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    std::string frame(65536, '\0');
    while (true) {
      const bool is_last = ends;  // what has come by then is read still
      const auto bytes = ::recv(tap, frame.data(), frame.size(), is_last ? MSG_DONTWAIT : 0);
      if (bytes <= 0 && is_last) break;
      if (bytes > 0 && seen_.size() < (std::size_t{256} << 20U))
        seen_.append(frame, 0, static_cast<std::size_t>(bytes));
    }
    ::close(tap);
  }

  std::string seen_;
  Elsewhere elsewhere_;
};

class UnauthenticatedPeers : public Drill {
 protected:
  /// Updates a second, over so long.
  double rate(Time time) {
    const auto made = [&] {
      return std::accumulate(
          fleet_->steps().begin(), fleet_->steps().end(), 0.0,
          [](double sum, const auto& step) { return sum + static_cast<double>(step.second); });
    };
    fleet_->watch(0ms);
    const double before = made();
    const auto began = hosts::Fleet::Clock::now();
    fleet_->watch(time);
    return (made() - before) /
           std::chrono::duration<double>(hosts::Fleet::Clock::now() - began).count();
  }

  /// Opens 5,000 connections without a byte to one node, and 20,000 with garbage, each kind at
  /// `connections_per_s`; training keeps the share `share_least` of its rate in any 5 s.
  void flood(double connections_per_s, double share_least);
};

/// Spaces the connections out: none begins before its time.
class Pace {
 public:
  explicit Pace(double per_second) : per_second_(per_second) {}
  void wait_for(int number) const {
    std::this_thread::sleep_until(
        began_ + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(static_cast<double>(number) / per_second_)));
  }

 private:
  using Clock = std::chrono::steady_clock;
  double per_second_;
  Clock::time_point began_ = Clock::now();
};

void UnauthenticatedPeers::flood(double connections_per_s, double share_least) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ASSERT_NO_FATAL_FAILURE(begin(4, Keys::given, 3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(peer, 100'000));
  const double alone = rate(10s);
  const std::size_t before = fleet_->rss_kib(0);
  std::atomic<int> half_open = 0;
  std::atomic<int> garbage = 0;
  const Elsewhere silent{fleet_->hosts().in(3), [&](const std::atomic<bool>& ends) {
                           std::vector<int> lines;
                           const Pace pace{connections_per_s};
                           while (!ends) {
                             if (half_open < 5000) {
                               pace.wait_for(half_open);
                               if (const int line = call(fleet_->address(0)); line >= 0) {
                                 lines.push_back(line);
                                 ++half_open;
                               }
                             } else {
                               std::this_thread::sleep_for(50ms);
                             }
                           }
                           for (const int line : lines) ::close(line);
                         }};
  const Elsewhere noisy{fleet_->hosts().in(3), [&](const std::atomic<bool>& ends) {
                          std::mt19937 random{7};
                          std::string noise(512, '\0');
                          const Pace pace{connections_per_s};
                          while (!ends && garbage < 20'000) {
                            pace.wait_for(garbage);
                            for (char& c : noise) c = static_cast<char>(random());
                            // Some begin as ZeroMQ does.
                            if (garbage % 2 == 0)
                              noise.replace(0, 10, "\xff\0\0\0\0\0\0\0\1\x7f", 10);
                            const int line = call(fleet_->address(0));
                            if (line < 0) continue;
                            (void)::send(line, noise.data(), noise.size(), MSG_NOSIGNAL);
                            ::close(line);
                            ++garbage;
                          }
                        }};
  std::size_t most = 0;
  double least = alone;
  for (const auto deadline = hosts::Fleet::Clock::now() + 120s;
       (half_open < 5000 || garbage < 20'000) && hosts::Fleet::Clock::now() < deadline;) {
    least = std::min(least, rate(5s));
    most = std::max(most, fleet_->rss_kib(0));
  }
  const double flooded = rate(10s);
  most = std::max(most, fleet_->rss_kib(0));
  tell("half_open", std::to_string(half_open));
  tell("garbage", std::to_string(garbage));
  tell("updates_per_s", std::to_string(alone) + " alone, " + std::to_string(least) +
                            " in the worst 5 s, " + std::to_string(flooded) + " with all there");
  tell("kib", std::to_string(before) + " before, at most " + std::to_string(most));
  EXPECT_EQ(half_open, 5000);
  EXPECT_EQ(garbage, 20'000);
  EXPECT_GT(least, share_least * alone);
  EXPECT_GT(flooded, 0.9 * alone);
  EXPECT_LE(most, before + 64 * std::size_t{1024});
  EXPECT_EQ(fleet_->run("stop" + fleet_->access(0)).code, 0);
  expect_good_model(60s);
}

TEST_F(UnauthenticatedPeers, AtAPortHoldNobodyUp) { flood(1000, 0.9); }
/// The peers connect as fast as they can, which takes a good part of the processors that the nodes
/// have too.
TEST_F(UnauthenticatedPeers, InACrowdAtAPortHoldNobodyUp) { flood(1e9, 0.85); }

TEST_F(UnauthenticatedPeers, BetweenNodesReadNothing) {
  for (const Keys keys : {Keys::none, Keys::given}) {
    ASSERT_NO_FATAL_FAILURE(begin(3, keys, 3));
    if (IsSkipped()) return;
    Capture capture{fleet_->hosts().in_router()};
    ASSERT_NO_FATAL_FAILURE(submit(peer, 60));
    ASSERT_EQ(fleet_->finish().code, 0);
    const std::string seen = capture.end();
    const std::string model = fleet_->work().read("m.safetensors");
    std::size_t found = 0;
    // The model as `submit` fetched it, piece by piece where it is not all zeros.
    for (std::size_t at = 4096; at + 32 <= model.size(); at += 4096)
      found += seen.find(model.substr(at, 32)) != std::string::npos ? 1 : 0;
    const bool knows_job = seen.find("mlp:784-32-10") != std::string::npos;
    tell("captured_mib", std::to_string(seen.size() >> 20U) + ", pieces of the model in it: " +
                             std::to_string(found) + " of " + std::to_string(model.size() / 4096));
    EXPECT_GT(seen.size(), std::size_t{4} << 20U);
    if (keys == Keys::none) {
      EXPECT_GT(found, model.size() / 4096 / 2);
      EXPECT_TRUE(knows_job);
    } else {
      EXPECT_EQ(found, 0U);
      EXPECT_FALSE(knows_job);
    }
  }
}

}  // namespace
}  // namespace starling::program
