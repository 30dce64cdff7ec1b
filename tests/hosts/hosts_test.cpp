/// Tests the partitions between Hosts: a program on each host prints the datagrams that it
/// receives.
#include "tests/hosts/hosts.hpp"

#include "tests/waiting.hpp"

namespace starling::hosts {
namespace {

class HostsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Hosts::make(3);
    if (!made) GTEST_SKIP() << made.error().message;
    hosts_ = *std::move(made);
    if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "python3 is not installed";
    for (std::size_t i = 0; i < 3; ++i)
      listeners_.push_back(std::make_unique<program::Process>(
          listener_folders_[i], "/usr/bin/python3",
          std::vector<std::string>{"-c",
                                   "import socket\n"
                                   "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                                   "s.bind(('0.0.0.0', 9000))\n"
                                   "print('listens', flush=True)\n"
                                   "while True: print(s.recv(99).decode(), flush=True)"},
          hosts_->in(i)));
    for (const auto& listener : listeners_) EXPECT_TRUE(has_received(*listener, "listens"));
  }
  void TearDown() override {
    for (const auto& listener : listeners_) listener->signal(SIGKILL);
  }

  [[nodiscard]] static bool has_received(const program::Process& listener,
                                         const std::string& word) {
    return wait_until([&] { return listener.out().find(word + "\n") != std::string::npos; });
  }

  void send(std::size_t from, std::size_t to, const std::string& word) {
    const program::Folder folder;
    const auto ran = program::Process{folder,
                                      "/usr/bin/python3",
                                      {"-c",
                                       "import socket\n"
                                       "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                                       "s.sendto(b'" +
                                           word + "', ('" + Hosts::address(to) + "', 9000))"},
                                      hosts_->in(from)}
                         .wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
  }

  std::unique_ptr<Hosts> hosts_;
  std::array<program::Folder, 3> listener_folders_;
  std::vector<std::unique_ptr<program::Process>> listeners_;
};

TEST_F(HostsTest, ReachEachOtherUnlessPartitioned) {
  send(0, 1, "before");
  EXPECT_TRUE(has_received(*listeners_[1], "before"));

  hosts_->partition_one_way(0, 1);
  send(0, 1, "lost");
  send(1, 0, "back");
  send(0, 2, "aside");
  EXPECT_TRUE(has_received(*listeners_[0], "back"));
  EXPECT_TRUE(has_received(*listeners_[2], "aside"));

  hosts_->cut(0, 2);
  send(2, 0, "lost");
  send(0, 2, "lost");

  hosts_->heal();
  // Sends in each direction in which a datagram was lost.
  for (const auto& [from, to] : {std::pair{0U, 1U}, {2U, 0U}, {0U, 2U}}) {
    send(from, to, "healed");
    EXPECT_TRUE(has_received(*listeners_[to], "healed"));
    EXPECT_EQ(listeners_[to]->out().find("lost"), std::string::npos) << to;
  }
}

TEST_F(HostsTest, AreNotAffectedByOtherHostsOfTheSameAddresses) {
  const auto others = Hosts::make(2);
  ASSERT_TRUE(others) << others.error().message;
  (*others)->cut(0, 1);
  send(0, 1, "untouched");
  EXPECT_TRUE(has_received(*listeners_[1], "untouched"));
}

}  // namespace
}  // namespace starling::hosts
