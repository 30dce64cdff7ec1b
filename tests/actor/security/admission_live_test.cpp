/// Admission of clients by a real transport, on the loopback interface.
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
        options, [this](const wire::IncomingFrame& incoming) { take(incoming); });
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    transport = std::move(opened).value();
  }
  ~Server() { transport.reset(); }

  [[nodiscard]] wire::Peer peer() const { return {transport->address(), keys.public_key}; }

  [[nodiscard]] bool wait_for(const Key& key, std::size_t count) {
    return wait_until([&] { return received_from(key) >= count; });
  }
  [[nodiscard]] bool wait_for_refusals(std::uint64_t more_than) const {
    return wait_until([&] { return transport->counts().refused > more_than; });
  }
  /// The number of frames that were received under a key.
  std::size_t received_from(const Key& key) {
    const std::lock_guard lock{mutex_};
    return received_[key];
  }

  const KeyPair keys = wire::make_key_pair();
  std::atomic<UtcSeconds> time = now;
  Admission admission;
  std::unique_ptr<wire::Transport> transport;

 private:
  void take(const wire::IncomingFrame& incoming) {
    const std::lock_guard lock{mutex_};
    ++received_[*incoming.key];
  }

  std::mutex mutex_;
  std::map<Key, std::size_t> received_;
};

/// A client that sends to a Server.
class Caller {
 public:
  explicit Caller(KeyPair own = wire::make_key_pair()) : keys(own) {
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
  Certificate issue(const Caller& caller) {
    return certificate_for("caller", caller.key(), cluster);
  }
  /// Expects that the server refuses the caller when it connects: it receives none of the caller's
  /// many frames, although it receives from another caller meanwhile.
  void expect_refused(Caller& caller) {
    const auto before = server.transport->counts().refused;
    constexpr int frames = 200;
    for (int i = 0; i < frames; ++i) caller.send(server);
    EXPECT_TRUE(server.wait_for_refusals(before));
    Caller admitted;
    Certificate theirs = issue(admitted);
    theirs.not_after = now + 3600;
    ASSERT_TRUE(server.admission.learn(sign(theirs, cluster), server.time));
    admitted.send(server);
    EXPECT_TRUE(server.wait_for(admitted.key(), 1));
    EXPECT_EQ(server.received_from(caller.key()), 0U);
    // ZeroMQ tries to connect some times a second, and each attempt is one refusal.
    EXPECT_LT(server.transport->counts().refused, before + frames / 2);
  }

  ClusterKey cluster = make_cluster_key();
  KeyPair handshake_keys = wire::make_key_pair();
  Server server{cluster, handshake_keys.public_key};
};

TEST_F(AdmissionLive, ReceivesFromTheHolderOfACertificate) {
  Caller caller;
  ASSERT_TRUE(server.admission.learn(issue(caller), now));
  caller.send(server);
  EXPECT_TRUE(server.wait_for(caller.key(), 1));
}

TEST_F(AdmissionLive, RefusesAClientWithoutACertificate) {
  Caller caller;
  expect_refused(caller);
}

TEST_F(AdmissionLive, RefusesAKeyThatIsNotTheCertificates) {
  Caller certified;
  Caller caller;
  ASSERT_TRUE(server.admission.learn(issue(certified), now));
  expect_refused(caller);
}

TEST_F(AdmissionLive, RefusesAClientWhoseCertificateHasExpired) {
  Caller caller;
  ASSERT_TRUE(server.admission.learn(issue(caller), now));
  server.time = now + 601;
  expect_refused(caller);
}

TEST_F(AdmissionLive, ReceivesFromAClientIntroducedUnderTheHandshakeKey) {
  Caller caller;
  Caller with_handshake_key{handshake_keys};
  with_handshake_key.send(server);
  ASSERT_TRUE(server.wait_for(handshake_keys.public_key, 1));
  EXPECT_EQ(server.admission.access_of(handshake_keys.public_key, now), KeyAccess::handshake);
  caller.send(server);
  ASSERT_TRUE(server.wait_for_refusals(0));
  // The caller's certificate came under the handshake key, so the caller's next attempt is
  // received.
  ASSERT_TRUE(server.admission.learn(issue(caller), now));
  Caller again{caller.keys};
  again.send(server);
  EXPECT_TRUE(server.wait_for(caller.key(), 1));
}

TEST_F(AdmissionLive, ReceivesNoFrameAfterARevocation) {
  Caller caller;
  const Certificate certificate = issue(caller);
  ASSERT_TRUE(server.admission.learn(certificate, now));
  const std::jthread sender{[&](const std::stop_token& stop_token) {
    while (!stop_token.stop_requested()) {
      caller.send(server);
      std::this_thread::sleep_for(100us);
    }
  }};
  ASSERT_TRUE(server.wait_for(caller.key(), 20)) << "connected and received";
  ASSERT_TRUE(server.admission.revoke(revocation_of(certificate.serial, cluster), now));
  // The receiver may still handle a frame that was admitted just before the revocation.
  ASSERT_TRUE(server.wait_for_refusals(server.transport->counts().refused));
  const std::size_t received_from = server.received_from(caller.key());
  const auto refused = server.transport->counts().refused;
  ASSERT_TRUE(server.wait_for_refusals(refused + 100)) << "further frames are refused";
  EXPECT_EQ(server.received_from(caller.key()), received_from);
}

TEST_F(AdmissionLive, ReceivesNoFrameAfterTheCertificateExpired) {
  Caller caller;
  ASSERT_TRUE(server.admission.learn(issue(caller), now));
  caller.send(server);
  ASSERT_TRUE(server.wait_for(caller.key(), 1));
  server.time = now + 601;
  const auto refused = server.transport->counts().refused;
  caller.send(server);
  EXPECT_TRUE(server.wait_for_refusals(refused));
  EXPECT_EQ(server.received_from(caller.key()), 1U);
}

}  // namespace
}  // namespace starling::security
