/// Real sockets on the loopback interface.
#include "starling/actor/wire/transport.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <zmq.hpp>

#include "starling/actor/wire/pack.hpp"
#include "tests/actor/wire/examples.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;

/// A node's end: keeps what has come.
class End {
 public:
  explicit End(TransportOptions options = {}) {
    auto opened = Transport::open(options, [this](const Incoming& incoming) { take(incoming); });
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    transport = std::move(opened).value();
    if (options.keys) key = options.keys->public_key;
  }
  ~End() { transport.reset(); }

  [[nodiscard]] Peer peer() const { return {transport->address(), key}; }

  /// False where they do not come in time.
  bool wait_for(std::size_t count, std::chrono::milliseconds within = 10s) {
    std::unique_lock lock{mutex_};
    return came_.wait_for(lock, within, [&] { return packets.size() >= count; });
  }

  std::unique_ptr<Transport> transport;
  std::optional<Key> key;
  /// Sequence numbers, in order of arrival.
  std::vector<std::uint64_t> packets;
  std::vector<std::optional<Key>> senders;
  /// The elements of each tensor that has come.
  std::vector<std::vector<float>> floats;
  std::size_t bytes = 0;
  int refused = 0;
  /// Taking a frame takes this long.
  std::atomic<std::chrono::milliseconds> pause{};
  /// A test that holds it keeps frames from being taken.
  std::mutex taking;

 private:
  void take(const Incoming& incoming) {
    const std::lock_guard turn{taking};
    const auto decoded = decode_envelope(incoming.frame);
    std::this_thread::sleep_for(pause.load());
    const std::lock_guard lock{mutex_};
    if (!decoded) {
      ++refused;
    } else {
      packets.push_back(decoded->envelope.packet.sequence);
      senders.push_back(incoming.key);
      if (const auto& peer_message = decoded->envelope.packet.payload) {
        const auto values = std::get<core::Value>(**peer_message).value.as<float>();
        floats.emplace_back(values.begin(), values.end());
      }
      bytes += incoming.frame.head.size() + incoming.frame.body.size();
    }
    came_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable came_;
};

Frame frame_of(std::uint64_t sequence, core::Slice value) {
  core::Envelope envelope;
  envelope.packet.sequence = sequence;
  if (!value.empty())
    envelope.packet.payload =
        std::make_shared<const core::PeerMessage>(core::Value{0, 0, std::move(value)});
  return encode(1, 1, envelope);
}

Frame frame_of(std::uint64_t sequence, std::size_t floats = 0) {
  return frame_of(sequence, slice_of<float>(std::vector<float>(floats, 1.5F)));
}

std::size_t size_of(const Frame& frame) { return frame.head.size() + frame.body_size(); }

TransportOptions with_keys(std::function<bool(const Key&)> admits = [](const Key&) {
  return true;
}) {
  TransportOptions options;
  options.keys = make_keys();
  options.admits = std::move(admits);
  return options;
}

TEST(Transport, CarriesFramesOfALaneInOrder) {
  End from;
  End to;
  constexpr std::uint64_t count = 500;
  for (std::uint64_t i = 1; i <= count; ++i)
    from.transport->send(to.peer(), TrafficClass::data, frame_of(i, i % 7 == 0 ? 20000 : 0));
  ASSERT_TRUE(to.wait_for(count));
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_EQ(to.packets[i], i + 1);
  EXPECT_EQ(from.transport->counts().dropped, 0U);
}

/// Small frames travel in packs, which the receiver unpacks unnoticed; long ones between them
/// travel by themselves.
TEST(Transport, CarriesFramesTogetherAsOneByOne) {
  End from{with_keys()};
  End to{with_keys()};
  from.transport->send(to.peer(), TrafficClass::data, frame_of(1));
  std::vector<Frame> frames;
  std::size_t bytes = size_of(frame_of(1));
  constexpr std::uint64_t count = 300;
  for (std::uint64_t i = 2; i <= count; ++i) {
    frames.push_back(frame_of(i, i % 50 == 0 ? 20000 : i % 3 * 500));
    bytes += size_of(frames.back());
  }
  from.transport->send(to.peer(), TrafficClass::data, frames);
  ASSERT_TRUE(to.wait_for(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(to.packets[i], i + 1);
    EXPECT_EQ(to.senders[i], from.key);
  }
  EXPECT_EQ(to.bytes, bytes);
  EXPECT_EQ(to.refused, 0);
  EXPECT_EQ(from.transport->counts().sent, count);
  EXPECT_EQ(to.transport->counts().received, count);
}

/// Long ones travel joined where nothing is encrypted, from one piece of memory or from many.
TEST(Transport, CarriesLongFramesTogetherAsOneByOne) {
  constexpr std::size_t length = 40'000;
  std::vector<float> all(30 * length);
  std::iota(all.begin(), all.end(), 0.0F);
  const auto part = [&](std::size_t i) { return std::span{all}.subspan(i * length, length); };
  for (const bool in_one_piece : {true, false})
    for (const bool encrypted : {false, true}) {
      End from{encrypted ? with_keys() : TransportOptions{}};
      End to{encrypted ? with_keys() : TransportOptions{}};
      from.transport->send(to.peer(), TrafficClass::data, frame_of(0, 1));  // connects
      ASSERT_TRUE(to.wait_for(1));
      std::vector<Frame> frames;
      core::Slice piece = slice_of<float>(all);
      for (std::size_t i = 0; i < 30; ++i) {
        piece.offset = i * length;
        piece.count = length;
        frames.push_back(frame_of(
            i + 1, in_one_piece ? piece : slice_of<float>({part(i).begin(), part(i).end()})));
      }
      from.transport->send(to.peer(), TrafficClass::data, frames);
      ASSERT_TRUE(to.wait_for(31));
      for (std::size_t i = 0; i < 30; ++i) {
        EXPECT_EQ(to.packets[i + 1], i + 1);
        EXPECT_TRUE(std::ranges::equal(to.floats[i + 1], part(i))) << i;
      }
      EXPECT_EQ(to.refused, 0);
    }
}

TEST(Transport, KeepsControlMovingBesideData) {
  End from;
  End to;
  from.transport->send(to.peer(), TrafficClass::data, frame_of(1));
  from.transport->send(to.peer(), TrafficClass::control, frame_of(2));
  ASSERT_TRUE(to.wait_for(2));
  to.pause = 1ms;
  {
    // Nothing is taken before all is on its way.
    const std::lock_guard held{to.taking};
    for (std::uint64_t i = 1; i <= 100; ++i)
      from.transport->send(to.peer(), TrafficClass::data, frame_of(i, 65536));
    for (std::uint64_t i = 1001; i <= 1010; ++i)
      from.transport->send(to.peer(), TrafficClass::control, frame_of(i));
  }
  ASSERT_TRUE(to.wait_for(112));
  const auto last = std::ranges::find(to.packets, 1010U);
  EXPECT_LT(last - to.packets.begin(), 50);
}

TEST(Transport, DropsWhatNobodyTakesBeyondItsBound) {
  TransportOptions options;
  options.queue_bytes_max = 1 << 20U;
  End from{options};
  const Peer nobody{"tcp://127.0.0.1:1", std::nullopt};
  for (std::uint64_t i = 1; i <= 100; ++i)
    from.transport->send(nobody, TrafficClass::data, frame_of(i, 65536));
  End to;
  from.transport->send(to.peer(), TrafficClass::control, frame_of(1));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(from.transport->counts().dropped, 97U);
}

TEST(Transport, ReachesWhoIsThereAgain) {
  End from;
  TransportOptions options;
  std::string address;
  {
    const End to;
    address = to.transport->address();
  }
  from.transport->send({address, std::nullopt}, TrafficClass::control, frame_of(1));
  options.listen = address;
  End again{options};
  EXPECT_TRUE(again.wait_for(1));
}

TEST(Transport, KnowsWhoSends) {
  End from{with_keys()};
  End to{with_keys()};
  from.transport->send(to.peer(), TrafficClass::data, frame_of(1, 70000));
  ASSERT_TRUE(to.wait_for(1));
  EXPECT_EQ(to.senders[0], from.key);
}

TEST(Transport, TurnsAwayKeysThatAreNotAdmitted) {
  const auto friendly = with_keys();
  End to{with_keys([&](const Key& key) { return key == friendly.keys->public_key; })};
  End stranger{with_keys()};
  stranger.transport->send(to.peer(), TrafficClass::control, frame_of(66));
  End from{friendly};
  from.transport->send(to.peer(), TrafficClass::control, frame_of(1));
  ASSERT_TRUE(to.wait_for(1));
  while (to.transport->counts().refused == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

TEST(Transport, IsNotHeardUnderTheWrongServerKeyNorWithoutKeys) {
  End to{with_keys()};
  End from{with_keys()};
  from.transport->send({to.transport->address(), make_keys().public_key}, TrafficClass::control,
                       frame_of(66));
  End plain;
  plain.transport->send({to.transport->address(), std::nullopt}, TrafficClass::control,
                        frame_of(67));
  from.transport->send({to.transport->address(), std::nullopt}, TrafficClass::control,
                       frame_of(68));
  End other{with_keys()};
  other.transport->send(to.peer(), TrafficClass::control, frame_of(1));
  ASSERT_TRUE(to.wait_for(1));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

/// Sends `bytes` over TCP to where `end` listens; returns the socket.
int stranger_at(const End& end, std::string_view bytes) {
  const std::string& address = end.transport->address();
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(descriptor, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  if (!bytes.empty()) {
    EXPECT_GT(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  }
  return descriptor;
}

TEST(Transport, OutlivesGarbageAndHalfOpenConnections) {
  End to{with_keys()};
  std::vector<int> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(stranger_at(to, ""));
    strangers.push_back(stranger_at(to, "GET / HTTP/1.1\r\n\r\n"));
    std::string zeros(64, '\0');
    zeros[0] = '\xff';
    zeros[9] = '\x7f';
    strangers.push_back(stranger_at(to, zeros));
  }
  End from{with_keys()};
  from.transport->send(to.peer(), TrafficClass::control, frame_of(1));
  EXPECT_TRUE(to.wait_for(1));
  for (const int stranger : strangers) ::close(stranger);
}

TEST(Transport, DoesNotTakeFramesBeyondItsBound) {
  TransportOptions options;
  options.part_bytes_max = 100'000;
  End to{options};
  End from;
  from.transport->send(to.peer(), TrafficClass::data, frame_of(66, 65536));
  End other;
  other.transport->send(to.peer(), TrafficClass::data, frame_of(1, 20000));
  ASSERT_TRUE(to.wait_for(1));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(to.packets, std::vector<std::uint64_t>{1});
}

/// It sends part after part and never the last, as ZeroMQ itself would not.
TEST(Transport, BreaksWithWhoNeverEnds) {
  using namespace std::string_literals;
  End to;
  // RFC 37: a greeting without security, READY of a DEALER, then parts with MORE.
  const std::string greeting = "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL"s + std::string(48, '\0') +
                               "\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER"s;
  const int endless = stranger_at(to, greeting);
  const std::string part = "\1\1x"s;
  for (int i = 0; i < 11; ++i) (void)::send(endless, part.data(), part.size(), MSG_NOSIGNAL);
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  while (to.transport->counts().refused == 0 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(1ms);
  ::close(endless);
  EXPECT_EQ(to.transport->counts().refused, 1U);
  End from;
  from.transport->send(to.peer(), TrafficClass::control, frame_of(1));
  EXPECT_TRUE(to.wait_for(1));
}

/// A sender of a message that is no pack, or half of one, loses only that message.
TEST(Transport, PassesOverBrokenPacks) {
  const auto packed = [](const std::vector<Frame>& frames, Bodies bodies) {
    Bytes pack(pack_max);
    std::byte* at = begin_pack(pack.data());
    for (const Frame& frame : frames) at = put_packed(frame, bodies, at);
    pack.resize(static_cast<std::size_t>(at - pack.data()));
    return pack;
  };
  const auto body_of = [](const Frame& frame) {
    Bytes body;
    for (const Attachment& part : frame.body)
      body.insert(body.end(), part.bytes.begin(), part.bytes.end());
    return body;
  };
  const Frame small = frame_of(1);
  const Frame large = frame_of(2, 5000);
  const Bytes body = body_of(large);
  Bytes cut = packed({small, frame_of(66)}, Bodies::inside);
  cut.resize(cut.size() - 1);
  Bytes endless = packed({small}, Bodies::inside);
  std::fill_n(endless.begin() + pack_prefix, 8, std::byte{0xff});
  const Bytes heads = packed({large, frame_of(67, 5000)}, Bodies::behind);
  const std::vector<std::vector<Bytes>> messages{
      {packed({}, Bodies::inside)},
      {endless},
      {cut},          // its first frame is whole
      {heads, body},  // and so is this one's
      {heads, body, body},
      {heads},
      {Bytes{}},
      {Bytes{}, body},
      {packed({frame_of(3)}, Bodies::inside)},
  };

  End to;
  zmq::context_t context;
  zmq::socket_t stranger{context, zmq::socket_type::dealer};
  stranger.set(zmq::sockopt::linger, 0);
  stranger.connect(to.transport->address());
  for (const auto& message : messages)
    for (std::size_t i = 0; i < message.size(); ++i)
      stranger.send(zmq::buffer(message[i]),
                    i + 1 < message.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  ASSERT_TRUE(to.wait_for(3));
  EXPECT_EQ(to.packets, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(Transport, ClosesThePeerUsedLeastLately) {
  TransportOptions options;
  options.peers_max = 2;
  End from{options};
  End first;
  End second;
  End third;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (End* to : {&first, &second, &third}) {
      from.transport->send(to->peer(), TrafficClass::control, frame_of(round));
      ASSERT_TRUE(to->wait_for(round));
    }
  }
}

TEST(Transport, RefusesToListenWhereItCannot) {
  const End taken;
  for (const std::string& address :
       {taken.transport->address(), std::string{"tcp://192.0.2.1:5"}, std::string{"nonsense"}}) {
    TransportOptions options;
    options.listen = address;
    const auto opened = Transport::open(options, [](const Incoming&) {});
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("cannot listen at " + address + ": "), std::string::npos);
  }
}

}  // namespace
}  // namespace starling::wire
