/// Tests endpoints that introduce themselves to each other, over sockets on the loopback interface.
#include "starling/actor/security/endpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/security/credentials.hpp"
#include "tests/actor/security/certificates.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/waiting.hpp"

namespace starling::security {
namespace {

using namespace std::chrono_literals;
using wire::TrafficClass;

wire::Frame example_frame() {
  core::Envelope envelope;
  envelope.packet.sequence = 1;
  return wire::encode(1, 1, envelope);
}

/// An endpoint that counts the frames that it receives.
class TestEndpoint {
 public:
  explicit TestEndpoint(std::optional<NodeSecrets> secrets) {
    auto opened =
        Endpoint::open({.secrets = std::move(secrets), .utc_now = [this] { return time.load(); }},
                       [this](const wire::FrameView&, const Sender& sender) {
                         if (sender.role == Role::client) ++from_clients;
                         ++received;
                       });
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    endpoint = std::move(opened).value();
  }
  ~TestEndpoint() { endpoint.reset(); }

  /// Sends frames to `other` until it has received one. Returns false if that takes too long.
  bool reaches(TestEndpoint& other) {
    const std::uint64_t before = other.received;
    return wait_until([&] {
      endpoint->send(other.endpoint->address(), TrafficClass::control, example_frame());
      std::this_thread::sleep_for(10ms);
      return other.received > before;
    });
  }
  /// Lets `other` send until this endpoint has handled 5 of its connections, introductions or
  /// frames. Returns true if this endpoint has accepted no frame.
  bool refuses(TestEndpoint& other) {
    const auto handled = [&] {
      const auto counts = endpoint->counts();
      return counts.refused + counts.received;
    };
    const std::uint64_t before = received;
    const std::uint64_t enough = handled() + 5;
    EXPECT_TRUE(wait_until([&] {
      other.endpoint->send(endpoint->address(), TrafficClass::control, example_frame());
      return handled() >= enough;
    })) << "nothing arrives from the other endpoint";
    return received == before;
  }
  /// Lets `other` send for 100 ms. Returns true if no frame was received. Waits for a fixed time,
  /// because no event shows that an endpoint sends nothing: an endpoint with keys does not send to
  /// an address without a key, and one without keys does not send to an address with a key.
  bool receives_nothing_from(TestEndpoint& other) {
    const std::uint64_t before = received;
    for (int i = 0; i < 20; ++i) {
      other.endpoint->send(endpoint->address(), TrafficClass::control, example_frame());
      std::this_thread::sleep_for(5ms);
    }
    return received == before;
  }

  std::atomic<UtcSeconds> time = now;
  std::atomic<std::uint64_t> received = 0;
  std::atomic<std::uint64_t> from_clients = 0;
  std::unique_ptr<Endpoint> endpoint;
};

class EndpointTest : public testing::Test {
 protected:
  NodeSecrets issue(const std::string& name, Role role = Role::node) {
    NodeSecrets secrets;
    secrets.cluster = cluster.public_key;
    secrets.handshake_keys = handshake_keys;
    secrets.keys = wire::make_key_pair();
    secrets.certificate = certificate_for(name, secrets.keys.public_key, cluster, role);
    secrets.known = issued;
    issued.push_back(secrets.certificate);
    return secrets;
  }

  ClusterKey cluster = make_cluster_key();
  KeyPair handshake_keys = wire::make_key_pair();
  std::vector<Certificate> issued;
};

TEST_F(EndpointTest, ReachesAnEndpointThatDoesNotKnowIt) {
  TestEndpoint older{issue("older")};
  TestEndpoint newer{issue("newer")};
  EXPECT_TRUE(newer.reaches(older));
  EXPECT_TRUE(older.reaches(newer));
}

TEST_F(EndpointTest, ReachesAnEndpointThatItDoesNotKnow) {
  TestEndpoint older{issue("older")};
  TestEndpoint newer{issue("newer")};
  EXPECT_TRUE(older.reaches(newer));
  EXPECT_TRUE(newer.reaches(older));
}

TEST_F(EndpointTest, DistinguishesNodesFromClients) {
  TestEndpoint node{issue("node")};
  TestEndpoint client{issue("client", Role::client)};
  EXPECT_TRUE(client.reaches(node));
  EXPECT_EQ(node.from_clients, node.received);
  EXPECT_TRUE(node.reaches(client));
  EXPECT_EQ(client.from_clients, 0U);
}

TEST_F(EndpointTest, RefusesNodesOfAnotherCluster) {
  TestEndpoint node{issue("node")};
  const auto others_handshake_keys = wire::make_key_pair();
  const auto own = std::exchange(handshake_keys, others_handshake_keys);
  const auto own_cluster = std::exchange(cluster, make_cluster_key());
  TestEndpoint foreign{issue("foreign")};
  EXPECT_TRUE(node.refuses(foreign));
  // The handshake key of the cluster, which a node with a revoked key still has, gives no access.
  handshake_keys = own;
  TestEndpoint with_handshake_key{issue("with-handshake-key")};
  EXPECT_TRUE(node.refuses(with_handshake_key));
  cluster = own_cluster;
  TestEndpoint admitted{issue("admitted")};
  EXPECT_TRUE(admitted.reaches(node));
}

/// A client that sends any frames without an introduction: a transport without an endpoint.
class RogueClient {
 public:
  RogueClient(const KeyPair& own, const KeyPair& handshake_keys) {
    wire::TransportOptions options;
    options.keys = own;
    options.handshake_keys = handshake_keys;
    auto opened = wire::Transport::open(options, [](const wire::IncomingFrame&) {});
    EXPECT_TRUE(opened);
    transport_ = std::move(opened).value();
  }
  void send(const TestEndpoint& to, TrafficClass traffic_class, const wire::Frame& frame) {
    transport_->send(wire::parse_peer(to.endpoint->address()).value(), traffic_class, frame);
  }

 private:
  std::unique_ptr<wire::Transport> transport_;
};

TEST_F(EndpointTest, AcceptsOnlyIntroductionsUnderTheHandshakeKey) {
  TestEndpoint node{issue("node")};
  TestEndpoint admitted{issue("admitted")};
  RogueClient rogue_client{handshake_keys, handshake_keys};
  for (int i = 0; i < 20; ++i) {
    rogue_client.send(node, TrafficClass::control, example_frame());
    rogue_client.send(node, TrafficClass::handshake, example_frame());
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(wait_until([&] { return node.endpoint->counts().received >= 20; }));
  EXPECT_EQ(node.received, 0U);
  EXPECT_TRUE(admitted.reaches(node));
}

TEST_F(EndpointTest, RefusesAnIntroductionThatTheHolderDidNotSend) {
  TestEndpoint node{issue("node")};
  const NodeSecrets other = issue("other");
  RogueClient rogue_client{wire::make_key_pair(), handshake_keys};
  const std::string address = wire::print({"tcp://127.0.0.1:1", other.keys.public_key});
  const auto received = node.endpoint->counts().received;
  Proof proof{};
  for (const bool answers : {false, true}) {
    rogue_client.send(node, TrafficClass::handshake,
                      encode({address, Introduction{other.certificate, answers, 1, proof}}));
    // The second introduction has a proof by another key.
    proof = prove("I am, at " + address + " 1", wire::make_key_pair().secret_key,
                  *wire::parse_peer(node.endpoint->address()).value().key);
  }
  ASSERT_TRUE(wait_until([&] { return node.endpoint->counts().received >= received + 2; }));
  RogueClient holder{other.keys, handshake_keys};
  holder.send(node, TrafficClass::control, example_frame());
  EXPECT_TRUE(wait_until([&] { return node.endpoint->counts().refused > 0; }));
  EXPECT_EQ(node.received, 0U);
}

TEST_F(EndpointTest, RefusesPlainConnectionsIfItHasKeys) {
  TestEndpoint node{issue("node")};
  TestEndpoint plain{std::nullopt};
  EXPECT_TRUE(node.receives_nothing_from(plain));
  EXPECT_TRUE(plain.receives_nothing_from(node));
}

TEST_F(EndpointTest, WithoutKeysReceivesFromAllEndpointsWithoutKeys) {
  TestEndpoint one{std::nullopt};
  TestEndpoint two{std::nullopt};
  EXPECT_TRUE(one.reaches(two));
}

/// Peers refuse such addresses, so they could not answer.
TEST_F(EndpointTest, RefusesAnAddressAtWhichNoPeerCanReachIt) {
  const auto ignore = [](const wire::FrameView&, const Sender&) {};
  for (const char* listen : {"tcp://0.0.0.0:*", "tcp://*:*", "tcp://[::ffff:127.0.0.1]:*"}) {
    const auto opened = Endpoint::open({.listen = listen, .utc_now = [] { return 0; }}, ignore);
    ASSERT_FALSE(opened) << listen;
    EXPECT_NE(opened.error().message.find("--advertise"), std::string::npos)
        << opened.error().message;
  }
  EXPECT_TRUE(Endpoint::open({.listen = "tcp://0.0.0.0:*",
                              .advertise = "tcp://127.0.0.1:7400",
                              .utc_now = [] { return 0; }},
                             ignore));
}

/// The receiver can report them; the peer gets no answer, and cannot tell why.
TEST_F(EndpointTest, PassesOnFramesOfAnotherVersionEvenOfAPeerThatItDoesNotKnow) {
  TestEndpoint node{issue("node")};
  const auto newer = wire::Transport::open(
      {.keys = wire::make_key_pair(), .handshake_keys = handshake_keys}, [](const auto&) {});
  ASSERT_TRUE(newer);
  wire::Frame frame = example_frame();
  frame.head[2] = std::byte{wire::version + 1};
  (*newer)->send(wire::parse_peer(node.endpoint->address()).value(), TrafficClass::handshake,
                 std::move(frame));
  EXPECT_TRUE(wait_until([&] { return node.received == 1; }));
  EXPECT_EQ(node.from_clients, 1U) << "it has no rights of a node";
}

TEST_F(EndpointTest, PassesRevocationsOn) {
  TestEndpoint first{issue("first")};
  TestEndpoint second{issue("second")};
  TestEndpoint third{issue("third")};
  for (TestEndpoint* from : {&first, &second, &third})
    for (TestEndpoint* to : {&first, &second, &third})
      if (from != to) {
        ASSERT_TRUE(from->reaches(*to));
      }
  first.endpoint->revoke(std::vector{revocation_of(issued[2].serial, cluster)});
  EXPECT_TRUE(wait_until([&] {
    first.endpoint->compare_revocations(second.endpoint->address());
    std::this_thread::sleep_for(5ms);
    return first.endpoint->digest_matches() > 0;
  }));
  EXPECT_TRUE(second.refuses(third));
  EXPECT_TRUE(first.reaches(second));
}

TEST_F(EndpointTest, LearnsRevocationsThatItMissed) {
  TestEndpoint first{issue("first")};
  const auto late = issue("second");
  TestEndpoint third{issue("third")};
  ASSERT_TRUE(third.reaches(first));
  first.endpoint->revoke(std::vector{revocation_of(issued[2].serial, cluster)});
  TestEndpoint second{late};
  EXPECT_TRUE(wait_until([&] {
    second.endpoint->compare_revocations(first.endpoint->address());
    std::this_thread::sleep_for(5ms);
    return second.endpoint->digest_matches() > 0;
  }));
  EXPECT_TRUE(second.refuses(third));
}

/// The limit is needed because a short request (a digest) is answered with a long list.
TEST_F(EndpointTest, LimitsHowOftenAPeerGetsTheRevocations) {
  TestEndpoint first{issue("first")};
  TestEndpoint second{issue("second")};
  issue("third");
  ASSERT_TRUE(second.reaches(first));
  ASSERT_TRUE(first.reaches(second));
  first.endpoint->revoke(std::vector{revocation_of(issued[2].serial, cluster)});
  const auto began = std::chrono::steady_clock::now();
  const auto before = first.endpoint->counts();
  constexpr std::uint64_t asked = 300;
  for (std::uint64_t i = 0; i < asked; ++i) {
    second.endpoint->send(
        first.endpoint->address(), TrafficClass::control,
        encode({second.endpoint->address(), RevocationsDigest{.digest = i, .is_answer = true}}));
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_TRUE(
      wait_until([&] { return first.endpoint->counts().received >= before.received + asked; }));
  const auto time = std::chrono::steady_clock::now() - began;
  // Up to 4 other frames are introductions, which are repeated if this takes long.
  EXPECT_LE(first.endpoint->counts().sent - before.sent,
            static_cast<std::uint64_t>(time / 500ms) + 4);
}

TEST_F(EndpointTest, NeedsACertificateThatIsValidNow) {
  auto secrets = issue("late");
  const auto opened = Endpoint::open({.secrets = secrets, .utc_now = [] { return now + 601; }},
                                     [](const auto&, const auto&) {});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("late"), std::string::npos) << opened.error().message;
  secrets.revocations.push_back(revocation_of(secrets.certificate.serial, cluster));
  const auto revoked = Endpoint::open({.secrets = secrets, .utc_now = [] { return now; }},
                                      [](const auto&, const auto&) {});
  ASSERT_FALSE(revoked);
  EXPECT_NE(revoked.error().message.find("revoked"), std::string::npos) << revoked.error().message;
}

TEST_F(EndpointTest, FindsTheKeysOfAName) {
  issue("a");
  issue("b");
  issue("laptop", Role::client);
  const std::optional<NodeSecrets> own = issue("c");
  const auto addresses = addresses_of("b", "tcp://10.0.0.2:7400", own, now);
  ASSERT_TRUE(addresses);
  EXPECT_EQ(*addresses, std::vector{wire::print({"tcp://10.0.0.2:7400", issued[1].key})});
  for (const std::string name : {"", "laptop", "z"}) {
    const auto none = addresses_of(name, "tcp://10.0.0.2:7400", own, now);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("one of a, b"), std::string::npos) << none.error().message;
  }
  EXPECT_EQ(addresses_of("", "tcp://10.0.0.2:7400", std::nullopt, now).value(),
            std::vector<std::string>{"tcp://10.0.0.2:7400"});
  EXPECT_FALSE(addresses_of("a", "tcp://10.0.0.2:7400", std::nullopt, now));
}

TEST_F(EndpointTest, FindsNoKeyThatIsRevokedOrExpiredOrItsOwn) {
  issue("a");
  issue("b");
  std::optional<NodeSecrets> own = issue("c");
  const auto error_of = [&](const std::string& name, UtcSeconds time) {
    const auto found = addresses_of(name, "tcp://10.0.0.2:7400", own, time);
    return found ? "" : found.error().message;
  };
  own->known = issued;  // with its own certificate
  EXPECT_EQ(error_of("c", now), "the key file knows no node 'c'; valid: one of a, b");
  own->revocations.push_back(revocation_of(issued[1].serial, cluster));
  EXPECT_EQ(error_of("b", now), "the key file knows no node 'b'; valid: one of a");
  EXPECT_EQ(addresses_of("", "tcp://10.0.0.2:7400", own, now).value(),
            std::vector{wire::print({"tcp://10.0.0.2:7400", issued[0].key})});
  EXPECT_EQ(error_of("a", now + 600), "");
  EXPECT_NE(error_of("a", now + 601).find("the key file knows no node:"), std::string::npos);
}

/// Nobody listens at the peer's address, so the frames wait for an introduction.
TEST_F(EndpointTest, HoldsNoMoreThanAMebibyteForAPeerThatDoesNotAnswer) {
  TestEndpoint node{issue("node")};
  const std::string address = wire::print({"tcp://127.0.0.1:1", issue("silent").keys.public_key});
  std::vector<std::weak_ptr<const wire::Bytes>> bodies;
  for (int i = 0; i < 20; ++i) {
    const auto body = std::make_shared<const wire::Bytes>(std::size_t{200} << 10U);
    wire::Frame frame = example_frame();
    frame.body.push_back({body, *body});
    node.endpoint->send(address, TrafficClass::data, std::move(frame));
    bodies.emplace_back(body);
  }
  const auto is_held = [](const auto& body) { return !body.expired(); };
  EXPECT_EQ(std::ranges::count_if(bodies, is_held), 5);
  node.endpoint->forget(address);
  EXPECT_EQ(std::ranges::count_if(bodies, is_held), 0);
}

}  // namespace
}  // namespace starling::security
