/// Measures tensors that one process sends to another on this host, one after the other: by ZeroMQ,
/// plain and encrypted, and by one-sided writes. The ways alternate. Prints medians of 5 runs:
///
///     fabric_benchmark [PROVIDER] [SIZE]    shm, tcp or verbs [shm]; one of the sizes [all]
///
/// A tensor has arrived when the receiver has decoded all of its messages, of 8 MB at most.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "starling/actor/wire/transport.hpp"
#include "tests/benchmarks/wire/pair.hpp"

namespace starling::benchmarks {
namespace {

constexpr std::size_t message_bytes_max = 8'000'000;
constexpr std::size_t runs = 5;

enum class Way { plain, curve, fabric };

struct Size {
  const char* name;
  std::size_t bytes;
  std::size_t rounds;
};
constexpr std::array sizes{Size{"64KiB", 64U << 10U, 2000}, Size{"1MiB", 1U << 20U, 500},
                           Size{"8MB", 8'000'000, 60}, Size{"40MB", 40'000'000, 12}};

bool is_size(std::string_view name) {
  return std::ranges::any_of(sizes, [&](const Size& size) { return name == size.name; });
}

wire::Frame frame_of(std::uint64_t sequence, core::Slice value) {
  core::Envelope envelope;
  envelope.packet.sequence = sequence;
  if (!value.empty())
    envelope.packet.payload =
        std::make_shared<const core::PeerMessage>(core::Value{0, 0, std::move(value)});
  return wire::encode(1, 1, envelope);
}

wire::TransportOptions options_of(Way way, fabric::Provider provider) {
  wire::TransportOptions options;
  options.queue_bytes_max = 2 * sizes.back().bytes;  // nothing sends lost frames again
  if (way == Way::plain) return options;
  options.keys = wire::make_key_pair();
  options.admits = [](const wire::Key&) { return true; };
  if (way == Way::fabric) options.fabric.provider = provider;
  return options;
}

/// A transport that counts what it receives, and its peer.
class End {
 public:
  End(const wire::TransportOptions& options, const Pipe& pipe,
      std::function<void(std::size_t)> receive)
      : transport(wire::Transport::open(options, [this, receive](const auto& incoming) {
                    const auto message = wire::decode_envelope(incoming.frame);
                    while (!is_ready) std::this_thread::yield();
                    if (message) receive(incoming.frame.body.size());
                  }).value()) {
    wire::Peer self{transport->address(), std::nullopt};
    if (options.keys) self.key = options.keys->public_key;
    pipe.send(print(self));
    peer = wire::parse_peer(pipe.receive()).value();
    is_ready = true;
  }
  std::unique_ptr<wire::Transport> transport;
  wire::Peer peer;
  std::atomic<bool> is_ready = false;
};

/// Answers each tensor when it is complete, until the process is killed.
void run_receiver(const Pipe& pipe, Way way, fabric::Provider provider, const Size& size) {
  End* end = nullptr;
  std::atomic<bool> has_end = false;
  std::size_t bytes = 0;
  end = new End{options_of(way, provider), pipe, [&](std::size_t count) {
                  while (!has_end) std::this_thread::yield();
                  bytes += count;
                  if (bytes < size.bytes) return;
                  bytes = 0;
                  end->transport->send(end->peer, wire::TrafficClass::control, frame_of(1, {}));
                }};
  has_end = true;
  std::this_thread::sleep_for(std::chrono::hours{1});
}

/// Returns the seconds of all measured rounds, and the number of writes.
std::vector<double> run_sender(const Pipe& pipe, Way way, fabric::Provider provider,
                               const Size& size) {
  std::mutex mutex;
  std::condition_variable answered;
  std::size_t answers = 0;
  auto& end = *new End{options_of(way, provider), pipe, [&](std::size_t) {
                         const std::lock_guard lock{mutex};
                         ++answers;
                         answered.notify_one();
                       }};
  const auto buffer = core::Buffer::make<float>(size.bytes / sizeof(float));
  std::ranges::fill(buffer->as<float>(), 1.0F);
  std::size_t sent = 0;
  const auto send_one = [&] {
    std::vector<wire::Frame> frames;
    constexpr std::size_t step = message_bytes_max / sizeof(float);
    for (std::size_t i = 0; i < buffer->as<float>().size(); i += step)
      frames.push_back(
          frame_of(1, {buffer, i, std::min(step, buffer->as<float>().size() - i), nullptr}));
    end.transport->send(end.peer, wire::TrafficClass::data, frames);
    ++sent;
    std::unique_lock lock{mutex};
    answered.wait(lock, [&] { return answers == sent; });
  };
  const auto warm_until = Clock::now() + std::chrono::milliseconds{300};
  while (Clock::now() < warm_until) send_one();
  const auto writes = end.transport->counts().written;
  const auto started_at = Clock::now();
  for (std::size_t i = 0; i < size.rounds; ++i) send_one();
  const double seconds = std::chrono::duration<double>(Clock::now() - started_at).count();
  return {seconds, static_cast<double>(end.transport->counts().written - writes)};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

int run(fabric::Provider provider, std::string_view only) {
  if (const auto usable = fabric::check(provider); !usable) {
    std::fprintf(stderr, "%s\n", usable.error().message.c_str());
    return 1;
  }
  std::printf("%-7s %9s %9s %9s  %12s  %s\n", "MB/s", "plain", "curve", "fabric", "fabric/plain",
              "written");
  for (const Size& size : sizes) {
    if (!only.empty() && only != size.name) continue;
    std::array<std::vector<double>, 3> rates;
    double written = 0;
    for (std::size_t i = 0; i < runs; ++i)
      for (const Way way : {Way::plain, Way::curve, Way::fabric}) {
        const auto figures =
            measure([&](const Pipe& pipe) { run_receiver(pipe, way, provider, size); },
                    [&](const Pipe& pipe) { return run_sender(pipe, way, provider, size); });
        if (figures.size() != 2) {
          std::fprintf(stderr, "%s: a run has failed\n", size.name);
          return 1;
        }
        rates.at(static_cast<std::size_t>(way))
            .push_back(static_cast<double>(size.bytes * size.rounds) / figures[0] / 1e6);
        written = figures[1];
      }
    const double plain = median(rates[0]);
    const double fabric_rate = median(rates[2]);
    const std::size_t messages =
        size.rounds * ((size.bytes + message_bytes_max - 1) / message_bytes_max);
    std::printf("%-7s %9.0f %9.0f %9.0f  %12.2f  %3.0f %%\n", size.name, plain, median(rates[1]),
                fabric_rate, fabric_rate / plain, 100 * written / static_cast<double>(messages));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace starling::benchmarks

int main(int argc, char** argv) {
  const auto provider = starling::fabric::parse_provider(argc > 1 ? argv[1] : "shm");
  if (!provider) {
    std::fprintf(stderr, "%s\n", provider.error().message.c_str());
    return 2;
  }
  const std::string_view only = argc > 2 ? argv[2] : "";
  if (!only.empty() && !starling::benchmarks::is_size(only)) {
    std::fprintf(stderr, "unknown size '%s'; valid: 64KiB, 1MiB, 8MB, 40MB\n", argv[2]);
    return 2;
  }
  return starling::benchmarks::run(*provider, only);
}
