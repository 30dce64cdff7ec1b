/// Passes bytes of unauthenticated peers to a connection: ZMTP's greeting, handshake and frames.
/// The first byte of an input chooses between NULL and CURVE security, the second the size of the
/// pieces in which the rest arrives.
#include "starling/actor/wire/zmtp.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

namespace starling::fuzz {
namespace {

using namespace std::string_literals;

constexpr std::size_t part_bytes_max = 4096;
/// Memory for the receiver itself and for its answers.
constexpr std::size_t receiver_bytes = 65536;

/// The complete messages of a connection, and whether the receiver has refused its bytes.
struct Received {
  std::vector<Bytes> messages;
  bool is_refused = false;
  bool operator==(const Received&) const = default;
};

Bytes copy_of(const wire::InboundMessage& message) {
  require(message.is_valid || (message.head.filled().empty() && message.body.filled().empty()),
          "a message with too many parts is empty");
  Bytes bytes{message.head.filled().begin(), message.head.filled().end()};
  bytes.insert(bytes.end(), message.body.filled().begin(), message.body.filled().end());
  return bytes;
}

/// Passes the input to a receiver as a connection does, at most `piece_bytes` at a time.
Received receive(const wire::ZmtpRules& rules, Input input, std::size_t piece_bytes) {
  wire::ZmtpReceiver receiver{rules};
  Received received;
  while (!input.empty()) {
    Input next = input.first(std::min(piece_bytes, input.size()));
    input = input.subspan(next.size());
    while (!next.empty()) {
      std::optional<wire::ZmtpReceiver::Fault> fault;
      if (const auto buffer = receiver.direct_buffer(); !buffer.empty()) {
        const std::size_t bytes = std::min(buffer.size(), next.size());
        std::ranges::copy(next.first(bytes), buffer.begin());
        next = next.subspan(bytes);
        fault = receiver.take_direct(bytes);
      } else {
        fault = receiver.take(next);
      }
      (void)receiver.take_answer();
      if ((received.is_refused = fault.has_value())) return received;
      if (const auto message = receiver.take_message())
        received.messages.push_back(copy_of(*message));
      require(receiver.unfinished_bytes() <= 3 * part_bytes_max,
              "the memory for an unfinished message is bounded");
    }
  }
  return received;
}

const wire::ZmtpRules& rules_of(bool uses_curve) {
  static const auto made = [] {
    std::array<wire::ZmtpRules, 2> both;
    for (wire::ZmtpRules& rules : both) rules.part_bytes_max = part_bytes_max;
    both[1].secret_key = wire::SecretKey{{7}};
    both[1].admits = [](const wire::Key&) { return true; };
    return both;
  }();
  return made.at(uses_curve ? 1 : 0);
}

/// Returns a client's first CURVE command. Its later commands depend on the server's answers.
std::string hello() {
  const wire::SecretKey& secret = *rules_of(true).secret_key;
  std::array<unsigned char, crypto_box_PUBLICKEYBYTES> server_key{};
  crypto_scalarmult_base(server_key.data(), secret.data());
  std::array<unsigned char, crypto_box_SECRETKEYBYTES> own_secret{1};
  std::array<unsigned char, crypto_box_PUBLICKEYBYTES> own{};
  crypto_scalarmult_base(own.data(), own_secret.data());
  const std::string number = "\0\0\0\0\0\0\0\1"s;
  const std::string nonce = "CurveZMQHELLO---" + number;
  const std::array<unsigned char, 64> zeros{};
  std::array<unsigned char, zeros.size() + crypto_box_MACBYTES> box{};
  const auto* const nonce_bytes = reinterpret_cast<const unsigned char*>(nonce.data());
  require(crypto_box_easy(box.data(), zeros.data(), zeros.size(), nonce_bytes, server_key.data(),
                          own_secret.data()) == 0,
          "a HELLO is encrypted");
  const std::string body = "\5HELLO\1\0"s + std::string(72, '\0') +
                           std::string{own.begin(), own.end()} + number +
                           std::string{box.begin(), box.end()};
  return "\4"s + static_cast<char>(body.size()) + body;
}

}  // namespace

bool read(Input input) {
  InputReader reader{input};
  const wire::ZmtpRules& rules = rules_of(reader.byte() % 2 == 1);
  const std::size_t piece_bytes = 1 + reader.byte();
  const Input stream = reader.rest();
  const Received whole = with_bounded_heap(heap_bound(stream.size()) + receiver_bytes, [&] {
    return receive(rules, stream, stream.size() + 1);
  });
  require(receive(rules, stream, piece_bytes) == whole,
          "the result does not depend on the size of the pieces");
  return !whole.is_refused;
}

std::vector<Bytes> seeds() {
  const auto greeting = [](const std::string& mechanism) {
    std::string bytes = "\xff\0\0\0\0\0\0\0\1\x7f\3\0"s + mechanism;
    bytes.resize(64, '\0');
    return bytes;
  };
  const std::string ready = "\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER"s;
  const std::string open = greeting("NULL") + ready;
  const std::string two_parts = "\1\4head\0\4body"s;
  const std::string long_part = "\3\0\0\0\0\0\0\4\0"s + std::string(1024, 'x') + "\0\1y"s;
  const std::string four_parts = "\1\1a\1\1b\1\1c\0\1d"s;
  const std::string ping = "\4\7\4PING\0\x0a"s;
  std::vector<Bytes> all;
  for (const std::string& stream :
       {greeting("NULL"), open, open + two_parts, open + two_parts + long_part + two_parts,
        open + four_parts + two_parts, open + ping + "\0\0"s + two_parts})
    all.push_back(bytes_of("\0\5"s + stream));
  all.push_back(bytes_of("\1\5"s + greeting("CURVE") + hello()));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
