/// A transport that records the frames that it receives, and functions that make frames. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/wire/transport.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/waiting.hpp"

namespace starling::wire {

/// A node's transport, and the frames that it has received.
class TestNode {
 public:
  explicit TestNode(TransportOptions options = {}) {
    auto opened =
        Transport::open(options, [this](const IncomingFrame& incoming) { receive(incoming); });
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    transport = std::move(opened).value();
    if (options.keys) key = options.keys->public_key;
  }
  ~TestNode() { transport.reset(); }

  [[nodiscard]] Peer peer() const { return {transport->address(), key}; }

  /// Waits until `count` packets have been received. Returns false if that takes too long.
  [[nodiscard]] bool wait_for(std::size_t count) {
    return wait_until([&] {
      const std::lock_guard lock{mutex_};
      return packets.size() >= count;
    });
  }

  /// Waits until the packet with this sequence number has been received. Returns false if that
  /// takes too long.
  [[nodiscard]] bool wait_for_packet(std::uint64_t sequence) {
    return wait_until([&] {
      const std::lock_guard lock{mutex_};
      return std::ranges::find(packets, sequence) != packets.end();
    });
  }

  std::unique_ptr<Transport> transport;
  std::optional<Key> key;
  /// The sequence numbers of the packets, in order of arrival.
  std::vector<std::uint64_t> packets;
  /// The public keys of the packets' senders, in the same order.
  std::vector<std::optional<Key>> senders;
  /// The elements of each received tensor.
  std::vector<std::vector<float>> floats;
  /// The sum of the sizes of the decoded frames.
  std::size_t bytes = 0;
  /// The number of frames that could not be decoded.
  int refused = 0;
  /// The time for which the receiver sleeps at each frame.
  std::atomic<std::chrono::milliseconds> pause{};
  /// While a test locks this mutex, the receiver handles no frame.
  std::mutex receiving;

 private:
  void receive(const IncomingFrame& incoming) {
    const std::lock_guard turn{receiving};
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
  }

  std::mutex mutex_;
};

/// Returns the frame of a packet with this sequence number, and with `value` if it is not empty.
inline Frame numbered_frame(std::uint64_t sequence, core::Slice value) {
  core::Envelope envelope;
  envelope.packet.sequence = sequence;
  if (!value.empty())
    envelope.packet.payload =
        std::make_shared<const core::PeerMessage>(core::Value{0, 0, std::move(value)});
  return encode(1, 1, envelope);
}

inline Frame numbered_frame(std::uint64_t sequence, std::size_t floats = 0) {
  return numbered_frame(sequence, slice_of<float>(std::vector<float>(floats, 1.5F)));
}

/// Returns options with a new key pair.
inline TransportOptions with_keys(std::function<bool(const Key&)> admits = [](const Key&) {
  return true;
}) {
  TransportOptions options;
  options.keys = make_key_pair();
  options.admits = std::move(admits);
  return options;
}

}  // namespace starling::wire
