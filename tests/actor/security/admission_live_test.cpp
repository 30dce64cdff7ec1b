/// Tests that a transport admits and refuses clients as its Admission decides. Uses sockets on the
/// loopback interface.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "starling/actor/security/admission.hpp"
#include "tests/actor/security/certificates.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/waiting.hpp"

namespace starling::security {
namespace {

using namespace std::chrono_literals;
using wire::TrafficClass;

wire::Frame frame_of(std::uint64_t sequence) {
  core::Envelope envelope;
  envelope.packet.sequence = sequence;
  return wire::encode(1, 1, envelope);
}

/// A node that receives from clients whose keys its Admission admits, at a time that the test sets.
class Server {
 public:
  Server(const ClusterKey& cluster, const Key& handshake_keys)
      : admission(cluster.public_key, handshake_keys) {
    wire::TransportOptions options;
    options.keys = keys;
    options.admits = [this](const Key& key) { return admission.admits(key, time); };
    auto opened = wire::Transport::open(
        options, [this](const wire::IncomingFrame& incoming) { receive(incoming); });
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    transport = std::move(opened).value();
  }
  ~Server() { transport.reset(); }

  [[nodiscard]] wire::Peer peer() const { return {transport->address(), keys.public_key}; }

  /// Waits until `count` frames were received from clients with this key. Returns false if that
  /// takes too long.
  [[nodiscard]] bool wait_for(const Key& key, std::size_t count) {
    return wait_until([&] { return received_from(key) >= count; });
  }
  /// Waits until more than this number of frames and connections were refused. Returns false if
  /// that takes too long.
  [[nodiscard]] bool wait_for_refusals(std::uint64_t more_than) const {
    return wait_until([&] { return transport->counts().refused > more_than; });
  }
  /// Returns the number of frames that were received from clients with this key.
  std::size_t received_from(const Key& key) {
    const std::lock_guard lock{mutex_};
    return received_[key];
  }

  const KeyPair keys = wire::make_key_pair();
  std::atomic<UtcSeconds> time = now;
  Admission admission;
  std::unique_ptr<wire::Transport> transport;

 private:
  void receive(const wire::IncomingFrame& incoming) {
    const std::lock_guard lock{mutex_};
    ++received_[*incoming.key];
  }

  std::mutex mutex_;
  std::map<Key, std::size_t> received_;
};

/// A client that sends to a Server.
class TestClient {
 public:
  explicit TestClient(KeyPair own = wire::make_key_pair()) : keys(own) {
    wire::TransportOptions options;
    options.keys = keys;
    auto opened = wire::Transport::open(options, [](const wire::IncomingFrame&) {});
    EXPECT_TRUE(opened);
    transport_ = std::move(opened).value();
  }
  void send(const Server& to) { transport_->send(to.peer(), TrafficClass::control, frame_of(1)); }
  [[nodiscard]] const Key& key() const { return keys.public_key; }

  const KeyPair keys;

 private:
  std::unique_ptr<wire::Transport> transport_;
};

class AdmissionLive : public testing::Test {
 protected:
  Certificate issue(const TestClient& client) {
    return certificate_for("caller", client.key(), cluster);
  }
  /// Expects that the server refuses the client's connections: it receives none of the client's
  /// many frames, but meanwhile receives from an admitted client.
  void expect_refused(TestClient& client) {
    const auto before = server.transport->counts().refused;
    constexpr int frames = 200;
    for (int i = 0; i < frames; ++i) client.send(server);
    EXPECT_TRUE(server.wait_for_refusals(before));
    TestClient admitted;
    Certificate certificate = issue(admitted);
    certificate.not_after = now + 3600;
    ASSERT_TRUE(server.admission.learn(sign(certificate, cluster), server.time));
    admitted.send(server);
    EXPECT_TRUE(server.wait_for(admitted.key(), 1));
    EXPECT_EQ(server.received_from(client.key()), 0U);
    // ZeroMQ tries to connect a few times a second. Each attempt is one refusal.
    EXPECT_LT(server.transport->counts().refused, before + frames / 2);
  }

  ClusterKey cluster = make_cluster_key();
  KeyPair handshake_keys = wire::make_key_pair();
  Server server{cluster, handshake_keys.public_key};
};

TEST_F(AdmissionLive, ReceivesFromTheHolderOfACertificate) {
  TestClient client;
  ASSERT_TRUE(server.admission.learn(issue(client), now));
  client.send(server);
  EXPECT_TRUE(server.wait_for(client.key(), 1));
}

TEST_F(AdmissionLive, RefusesAClientWithoutACertificate) {
  TestClient client;
  expect_refused(client);
}

TEST_F(AdmissionLive, RefusesAKeyThatIsNotTheCertificates) {
  TestClient certified;
  TestClient client;
  ASSERT_TRUE(server.admission.learn(issue(certified), now));
  expect_refused(client);
}

TEST_F(AdmissionLive, RefusesAClientWhoseCertificateHasExpired) {
  TestClient client;
  ASSERT_TRUE(server.admission.learn(issue(client), now));
  server.time = now + 601;
  expect_refused(client);
}

TEST_F(AdmissionLive, ReceivesFromAClientAfterItsIntroductionUnderTheHandshakeKey) {
  TestClient client;
  TestClient client_with_handshake_key{handshake_keys};
  client_with_handshake_key.send(server);
  ASSERT_TRUE(server.wait_for(handshake_keys.public_key, 1));
  EXPECT_EQ(server.admission.access_of(handshake_keys.public_key, now), KeyAccess::handshake);
  client.send(server);
  ASSERT_TRUE(server.wait_for_refusals(0));
  // A certificate that a client sends under the handshake key is learned. After that, frames under
  // the client's own key are received.
  ASSERT_TRUE(server.admission.learn(issue(client), now));
  TestClient reconnected{client.keys};
  reconnected.send(server);
  EXPECT_TRUE(server.wait_for(client.key(), 1));
}

TEST_F(AdmissionLive, ReceivesNoFrameAfterARevocation) {
  TestClient client;
  const Certificate certificate = issue(client);
  ASSERT_TRUE(server.admission.learn(certificate, now));
  const std::jthread sender{[&](const std::stop_token& stop_token) {
    while (!stop_token.stop_requested()) {
      client.send(server);
      std::this_thread::sleep_for(100us);
    }
  }};
  ASSERT_TRUE(server.wait_for(client.key(), 20)) << "connected and received";
  ASSERT_TRUE(server.admission.revoke(revocation_of(certificate.serial, cluster), now));
  // The receiver may still handle a frame that was admitted just before the revocation.
  ASSERT_TRUE(server.wait_for_refusals(server.transport->counts().refused));
  const std::size_t received_from = server.received_from(client.key());
  const auto refused = server.transport->counts().refused;
  ASSERT_TRUE(server.wait_for_refusals(refused + 100)) << "further frames are refused";
  EXPECT_EQ(server.received_from(client.key()), received_from);
}

TEST_F(AdmissionLive, ReceivesNoFrameAfterTheCertificateExpired) {
  TestClient client;
  ASSERT_TRUE(server.admission.learn(issue(client), now));
  client.send(server);
  ASSERT_TRUE(server.wait_for(client.key(), 1));
  server.time = now + 601;
  const auto refused = server.transport->counts().refused;
  client.send(server);
  EXPECT_TRUE(server.wait_for_refusals(refused));
  EXPECT_EQ(server.received_from(client.key()), 1U);
}

}  // namespace
}  // namespace starling::security
