/// Unauthenticated peers of a cluster that trains. Neither many connections nor garbage slows its
/// nodes down, and an eavesdropper between the nodes cannot read what they send.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

const JobMode peer_pssp{"peer", "pssp:s=4,beta=2"};

/// Runs `work` on a thread of its own, in the network that `enter` enters. end() sets the flag at
/// which `work` must return. The thread has a low priority, because real peers would not use the
/// processors of the nodes.
class PeerThread {
 public:
  PeerThread(Process::Prepare enter, std::function<void(const std::atomic<bool>&)> work)
      : thread_([this, enter = std::move(enter), work = std::move(work)] {
          enter();
          (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
          work(must_end_);
        }) {}
  ~PeerThread() { end(); }
  PeerThread(const PeerThread&) = delete;
  PeerThread& operator=(const PeerThread&) = delete;

  void end() {
    must_end_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> must_end_ = false;
  std::thread thread_;
};

/// Connects to `tcp://HOST:PORT`. Returns the socket; -1 if there is no connection within a second.
int connect_to(const std::string& address) {
  const auto colon = address.rfind(':');
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(6, colon - 6).c_str(), &target.sin_addr);
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout{1, 0};
  ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0)
    return connection;
  ::close(connection);
  return -1;
}

/// Captures the bytes that pass through the network that `enter` enters, up to 256 MiB.
class Capture {
 public:
  explicit Capture(Process::Prepare enter)
      : thread_(std::move(enter), [this](const std::atomic<bool>& must_end) { listen(must_end); }) {
  }

  /// Ends the capture and returns the captured bytes.
  std::string end() {
    thread_.end();
    return std::move(captured_);
  }

 private:
  void listen(const std::atomic<bool>& must_end) {
    const int tap = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    const timeval timeout{0, 100'000};
    ::setsockopt(tap, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    const int buffer_bytes = 64 << 20;
    ::setsockopt(tap, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes);
    std::string frame(65536, '\0');
    while (true) {
      const bool is_last = must_end;  // reads the frames that have arrived by then
      const auto bytes = ::recv(tap, frame.data(), frame.size(), is_last ? MSG_DONTWAIT : 0);
      if (bytes <= 0 && is_last) break;
      if (bytes > 0 && captured_.size() < (std::size_t{256} << 20U))
        captured_.append(frame, 0, static_cast<std::size_t>(bytes));
    }
    ::close(tap);
  }

  std::string captured_;
  PeerThread thread_;
};

class UnauthenticatedPeers : public Drill {
 protected:
  /// Returns the updates a second during `time`.
  double updates_per_s(Time time) {
    const auto updates = [&] {
      return std::accumulate(
          fleet_->steps().begin(), fleet_->steps().end(), 0.0,
          [](double sum, const auto& step) { return sum + static_cast<double>(step.second); });
    };
    fleet_->watch(0ms);
    const double updates_before = updates();
    const auto started_at = hosts::Fleet::Clock::now();
    fleet_->watch(time);
    return (updates() - updates_before) /
           std::chrono::duration<double>(hosts::Fleet::Clock::now() - started_at).count();
  }

  /// Opens 5,000 connections to one node without sending a byte, and 20,000 that send garbage, each
  /// kind at `connections_per_s`. Expects that in each 5 s, training makes more than the share
  /// `min_share` of the updates that it made before.
  void flood(double connections_per_s, double min_share);
};

/// Limits the rate of connections: number n begins no earlier than n / `per_second` seconds after
/// the start.
class RateLimit {
 public:
  explicit RateLimit(double per_second) : per_second_(per_second) {}
  void wait_for(int number) const {
    std::this_thread::sleep_until(
        started_at_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                          static_cast<double>(number) / per_second_)));
  }

 private:
  using Clock = std::chrono::steady_clock;
  double per_second_;
  Clock::time_point started_at_ = Clock::now();
};

void UnauthenticatedPeers::flood(double connections_per_s, double min_share) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(4, Keys::given, 3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(peer_pssp, 100'000));
  const double rate_before = updates_per_s(10s);
  const std::size_t kib_before = fleet_->rss_kib(0);
  std::atomic<int> half_open = 0;
  std::atomic<int> garbage = 0;
  const PeerThread silent_peer{fleet_->hosts().in(3), [&](const std::atomic<bool>& must_end) {
                                 std::vector<int> connections;
                                 const RateLimit rate_limit{connections_per_s};
                                 while (!must_end) {
                                   if (half_open < 5000) {
                                     rate_limit.wait_for(half_open);
                                     if (const int connection = connect_to(fleet_->address(0));
                                         connection >= 0) {
                                       connections.push_back(connection);
                                       ++half_open;
                                     }
                                   } else {
                                     std::this_thread::sleep_for(50ms);
                                   }
                                 }
                                 for (const int connection : connections) ::close(connection);
                               }};
  const PeerThread noisy_peer{fleet_->hosts().in(3), [&](const std::atomic<bool>& must_end) {
                                std::mt19937 random{7};
                                std::string bytes(512, '\0');
                                const RateLimit rate_limit{connections_per_s};
                                while (!must_end && garbage < 20'000) {
                                  rate_limit.wait_for(garbage);
                                  for (char& c : bytes) c = static_cast<char>(random());
                                  // Every second connection begins as ZeroMQ's do.
                                  if (garbage % 2 == 0)
                                    bytes.replace(0, 10, "\xff\0\0\0\0\0\0\0\1\x7f", 10);
                                  const int connection = connect_to(fleet_->address(0));
                                  if (connection < 0) continue;
                                  (void)::send(connection, bytes.data(), bytes.size(),
                                               MSG_NOSIGNAL);
                                  ::close(connection);
                                  ++garbage;
                                }
                              }};
  std::size_t kib_max = 0;
  double lowest_rate = rate_before;
  for (const auto deadline = hosts::Fleet::Clock::now() + 120s;
       (half_open < 5000 || garbage < 20'000) && hosts::Fleet::Clock::now() < deadline;) {
    lowest_rate = std::min(lowest_rate, updates_per_s(5s));
    kib_max = std::max(kib_max, fleet_->rss_kib(0));
  }
  const double rate_after = updates_per_s(10s);
  kib_max = std::max(kib_max, fleet_->rss_kib(0));
  report("half_open", std::to_string(half_open));
  report("garbage", std::to_string(garbage));
  report("updates_per_s", std::to_string(rate_before) + " alone, " + std::to_string(lowest_rate) +
                              " in the worst 5 s, " + std::to_string(rate_after) +
                              " with all connections");
  report("kib", std::to_string(kib_before) + " before, at most " + std::to_string(kib_max));
  EXPECT_EQ(half_open, 5000);
  EXPECT_EQ(garbage, 20'000);
  EXPECT_GT(lowest_rate, min_share * rate_before);
  EXPECT_GT(rate_after, 0.9 * rate_before);
  EXPECT_LE(kib_max, kib_before + 64 * std::size_t{1024});
  EXPECT_EQ(fleet_->run("stop" + fleet_->client_flags(0)).code, 0);
  expect_good_model(60s);
}

TEST_F(UnauthenticatedPeers, AtAPortDoNotSlowTrainingDown) { flood(1000, 0.9); }
/// The peers connect as fast as they can. They use much of the processors, which the nodes need
/// too.
TEST_F(UnauthenticatedPeers, WithoutRateLimitHardlySlowTrainingDown) { flood(1e9, 0.85); }

TEST_F(UnauthenticatedPeers, BetweenNodesReadNothing) {
  for (const Keys keys : {Keys::none, Keys::given}) {
    ASSERT_NO_FATAL_FAILURE(start_on_hosts(3, keys, 3));
    if (IsSkipped()) return;
    Capture capture{fleet_->hosts().in_router()};
    ASSERT_NO_FATAL_FAILURE(submit(peer_pssp, 60));
    ASSERT_EQ(fleet_->finish().code, 0);
    const std::string captured = capture.end();
    const std::string model = fleet_->work_folder().read("m.safetensors");
    std::size_t pieces_found = 0;
    // `submit` fetched the model over the network. Looks for pieces of the model, of 32 bytes each.
    for (std::size_t offset = 4096; offset + 32 <= model.size(); offset += 4096)
      pieces_found += captured.find(model.substr(offset, 32)) != std::string::npos ? 1 : 0;
    const bool has_job = captured.find("mlp:784-32-10") != std::string::npos;
    report("captured_mib", std::to_string(captured.size() >> 20U) +
                               ", pieces of the model in it: " + std::to_string(pieces_found) +
                               " of " + std::to_string(model.size() / 4096));
    EXPECT_GT(captured.size(), std::size_t{4} << 20U);
    if (keys == Keys::none) {
      EXPECT_GT(pieces_found, model.size() / 4096 / 2);
      EXPECT_TRUE(has_job);
    } else {
      EXPECT_EQ(pieces_found, 0U);
      EXPECT_FALSE(has_job);
    }
  }
}

}  // namespace
}  // namespace starling::program
