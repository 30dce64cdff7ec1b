// Tests what a command says if no node answers it, or if a node has an unusual name.
#include "starling/tools/cluster/keys/access.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/wire/frame.hpp"
#include "starling/actor/wire/listener.hpp"
#include "starling/actor/wire/zmtp.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// Answers one connection with these bytes, and keeps it open until the other end closes it.
class Server {
 public:
  explicit Server(const wire::Signature& answer)
      : listener_(wire::open_listener("tcp://127.0.0.1:*").value()), thread_([this, answer] {
          pollfd item{listener_.descriptor, POLLIN, 0};
          (void)::poll(&item, 1, 10'000);
          const int connection = ::accept(listener_.descriptor, nullptr, nullptr);
          (void)::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
          wire::Signature received{};
          while (::recv(connection, received.data(), received.size(), 0) > 0) {
          }
          ::close(connection);
        }) {}
  ~Server() {
    thread_.join();
    ::close(listener_.descriptor);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const std::string& address() const { return listener_.address; }

 private:
  const wire::Listener listener_;
  std::thread thread_;
};

std::string message_for(const wire::Signature& answer) {
  const Server server{answer};
  return explain_silence(server.address(), false).message;
}

TEST(Access, NamesTheVersionOfANodeThatIsBuiltFromAnotherVersion) {
  wire::Signature other = wire::own_signature();
  other[8] = std::byte{wire::version + 1};
  EXPECT_NE(
      message_for(other).find("sends messages of version " + std::to_string(wire::version + 1)),
      std::string::npos)
      << message_for(other);
}

TEST(Access, BlamesNoVersionIfItIsTheSameOrUnknown) {
  const wire::Signature unknown{std::byte{0xff}, {}, {}, {}, {}, {}, {}, {}, std::byte{1},
                                std::byte{0x7f}};
  for (const wire::Signature& answer : {wire::own_signature(), unknown, wire::Signature{}})
    EXPECT_NE(message_for(answer).find("where something listens"), std::string::npos);
}

/// Another process chose the name, which could make a terminal show a false text.
TEST(Access, LeavePrintsNoControlCharactersOfANodesName) {
  actor::ClusterOptions options;
  options.name = "a\n\x1b[31mb";
  auto node = actor::ClusterNode::open(options).value();
  const std::string address = node->address().substr(std::string{"tcp://"}.size());
  const std::jthread leaver{[&node](const std::stop_token& stop) {
    while (!node->is_asked_to_leave() && !stop.stop_requested())
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    node->leave(std::chrono::seconds{1});
    node.reset();
  }};
  const Folder work;
  const ProgramResult left = starling(work, "leave --to " + address);
  EXPECT_EQ(left.code, 0) << left.err;
  EXPECT_EQ(left.out, "a\\x0a\\x1b[31mb has left\n");
}

}  // namespace
}  // namespace starling::program
