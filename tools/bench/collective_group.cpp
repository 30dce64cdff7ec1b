#include "starling/tools/bench/collective_group.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "starling/actor/wire/transport.hpp"
#include "starling/base/seconds.hpp"
#include "starling/engine/exchange/allreduce/pieces.hpp"
#include "starling/engine/exchange/allreduce/round_sum.hpp"
#include "starling/engine/exchange/collective/executor.hpp"
#include "starling/engine/exchange/exchange.hpp"

namespace starling::program {
namespace {

using collective::Rank;
using Values = std::vector<float>;

constexpr auto answer_timeout = std::chrono::minutes{1};
constexpr auto lost_check_interval = std::chrono::milliseconds{200};
/// The epoch of all messages, because the group never changes.
constexpr core::Epoch epoch = 1;
/// Above every window (collective::ExecutorOptions::window). The id of a collective is n * windows
/// plus its window, for the n-th collective, so that a receiver learns the window from the id.
constexpr collective::CollectiveId windows = 1024;

/// True once the process of another member has reported a failure, or has ended.
using HasLostMember = std::function<bool()>;

/// Cuts a vector as training jobs do.
core::SumSlices cut(const CollectiveRun& run) {
  const auto bytes = static_cast<double>(run.elements * sizeof(float));
  return core::cut_sum(run.schedule, bytes, core::ExchangeOptions{}.window);
}

/// A member of the group: a transport, and a collective::Executor for each window.
class Member {
 public:
  explicit Member(Rank self) : self_(self) {}

  /// Listens at a free port of the loopback. With a provider, the member makes its own keys and
  /// accepts all others.
  [[nodiscard]] Result<void> open(std::optional<fabric::Provider> provider) {
    wire::TransportOptions options;
    if (provider) {
      options.keys = wire::make_key_pair();
      options.admits = [](const wire::Key&) { return true; };
      options.fabric.provider = provider;
      key_ = options.keys->public_key;
    }
    auto transport = wire::Transport::open(
        options, [this](const wire::IncomingFrame& incoming) { receive(incoming.frame); });
    if (!transport) return std::move(transport).error();
    transport_ = *std::move(transport);
    return {};
  }
  [[nodiscard]] std::string address() const {
    return print(wire::Peer{transport_->address(), key_});
  }
  /// Stores the addresses of all members.
  void connect(const std::vector<std::string>& addresses) {
    const std::lock_guard lock{mutex_};
    for (const std::string& address : addresses)
      peers_.push_back(wire::parse_peer(address).value());
  }
  /// Runs a collective to its end. Returns nullopt if another member does not answer, or once
  /// `has_lost_member()` is true.
  [[nodiscard]] std::optional<Values> run(const std::shared_ptr<const collective::Program>& program,
                                          const core::SumSlices& cut, Values values,
                                          const HasLostMember& has_lost_member) {
    collective::Effects<float> effects;
    std::unique_lock lock{mutex_};
    const collective::CollectiveId id = ++started_ * windows + cut.slice_window;
    executor_of(id).start(effects, id, program, std::move(values), cut.slices);
    execute(std::move(effects), lock);
    const auto is_complete = [&] { return result_.has_value(); };
    const auto give_up_at = std::chrono::steady_clock::now() + answer_timeout;
    while (!completed_.wait_for(lock, lost_check_interval, is_complete))
      if (has_lost_member() || std::chrono::steady_clock::now() > give_up_at) return std::nullopt;
    return std::exchange(result_, std::nullopt);
  }

 private:
  /// Called on the transport's thread.
  void receive(const wire::FrameView& frame) {
    const auto decoded = wire::decode_envelope(frame);
    if (!decoded || !decoded->envelope.packet.payload) return;
    const core::PeerMessage& message = **decoded->envelope.packet.payload;
    const Rank from = decoded->envelope.from;
    collective::Effects<float> effects;
    std::unique_lock lock{mutex_};
    // SumPiece::sum and SumAck::sum are the id of the collective.
    if (const auto* piece = std::get_if<core::SumPiece>(&message)) {
      (void)executor_of(piece->sum).on(effects, from, core::to_piece<float>(*piece));
    } else if (const auto* ack = std::get_if<core::SumAck>(&message)) {
      (void)executor_of(ack->sum).on(effects, from, core::to_ack(*ack));
    }
    execute(std::move(effects), lock);
  }

  /// Sends messages, and stores the result if there is one. Requires: the caller holds `lock`,
  /// which this function releases while it sends.
  void execute(collective::Effects<float> effects, std::unique_lock<std::mutex>& lock) {
    for (auto& effect : effects)
      if (auto* completed = std::get_if<collective::Completed<float>>(&effect)) {
        result_ = std::move(completed->values);
        completed_.notify_one();
      }
    lock.unlock();
    for (const auto& effect : effects)
      if (const auto* send = std::get_if<collective::Send<float>>(&effect)) send_to(*send);
    lock.lock();
  }

  /// Returns the executor for the window that the id contains. Each window has an executor of its
  /// own, so a collective is as fast as in a job that runs only collectives with this window.
  collective::Executor<float>& executor_of(collective::CollectiveId id) {
    // At least 1, because an executor requires it, and a received id may contain 0.
    const auto window = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(id % windows));
    return executors_.try_emplace(window, collective::ExecutorOptions{.window = window})
        .first->second;
  }

  void send_to(const collective::Send<float>& send) {
    core::Envelope envelope;
    envelope.from = self_;
    envelope.to = send.to;
    envelope.packet.payload = std::make_shared<const core::PeerMessage>(std::visit(
        [](const auto& message) { return core::PeerMessage{core::to_message(message, epoch)}; },
        send.message));
    // Job 1, and a node for each member; neither id may be 0.
    wire::Frame frame = wire::encode(1, self_ + 1, envelope);
    const auto traffic_class = wire::traffic_class_of(frame);
    transport_->send(peers_[send.to], traffic_class, std::move(frame));
  }

  Rank self_;
  std::optional<wire::Key> key_;
  std::vector<wire::Peer> peers_;
  std::mutex mutex_;
  std::condition_variable completed_;
  /// By window.
  std::map<std::uint32_t, collective::Executor<float>> executors_;
  collective::CollectiveId started_ = 0;
  std::optional<Values> result_;
  /// Declared last, because its thread uses the fields above.
  std::unique_ptr<wire::Transport> transport_;
};

/// Runs all collectives at a member. Returns the mean time of each run, in seconds.
Result<std::vector<double>> run_at(Member& member, Rank self,
                                   const std::vector<CollectiveRun>& runs, bool has_fabric,
                                   const HasLostMember& has_lost_member) {
  const Error no_answer{"a member of the collective does not answer"};
  // Warm-up: with a fabric, members agree on one-sided writes to each other only once they have
  // long vectors to send, and that must not be measured.
  for (int i = 0; has_fabric && i < 20; ++i) {
    CollectiveRun warm_up = runs.front();
    warm_up.elements = std::size_t{1} << 20U;
    const auto program = std::make_shared<const collective::Program>(
        collective::make_program(warm_up.schedule, self));
    if (!member.run(program, cut(warm_up), Values(warm_up.elements), has_lost_member))
      return no_answer;
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  std::vector<double> times;
  for (const CollectiveRun& run : runs) {
    const auto program =
        std::make_shared<const collective::Program>(collective::make_program(run.schedule, self));
    const core::SumSlices slices = cut(run);
    // The first sum is not measured, but its result is checked.
    auto values = member.run(program, slices, Values(run.elements, static_cast<float>(self + 1)),
                             has_lost_member);
    if (!values) return no_answer;
    const auto members = static_cast<float>(run.schedule.members);
    const float sum = members * (members + 1) / 2;
    if (std::ranges::any_of(*values, [&](float value) { return value != sum; }))
      return Error{"member " + std::to_string(self) + " got a wrong sum from the all-reduce"};
    std::ranges::fill(*values, 0.0F);
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < run.times; ++i) {
      values = member.run(program, slices, *std::move(values), has_lost_member);
      if (!values) return no_answer;
    }
    times.push_back(seconds_since(start) / static_cast<double>(run.times));
  }
  return times;
}

/// One end of a connection between the caller's process and a child.
class Connection {
 public:
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  Connection(Connection&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// True if receive() would not wait.
  [[nodiscard]] bool is_readable() const {
    pollfd item{descriptor_, POLLIN, 0};
    return ::poll(&item, 1, 0) > 0;
  }

  /// Sends a line. Returns false if the other end is closed.
  [[nodiscard]] bool send(const std::string& line) const {
    const std::string text = line + "\n";
    return ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  /// Waits for a line. Returns nullopt if the other end is closed.
  [[nodiscard]] std::optional<std::string> receive() const {
    std::string line;
    for (char next = 0;;) {
      const ssize_t count = ::recv(descriptor_, &next, 1, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::nullopt;
      if (next == '\n') return line;
      line += next;
    }
  }

 private:
  int descriptor_;
};

/// The child processes. The destructor kills them.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const pid_t child : processes_) ::kill(child, SIGKILL);
    for (const pid_t child : processes_) ::waitpid(child, nullptr, 0);
  }

  /// Starts a process that calls `run` with its connection to this one, and exits.
  template <class Run>
  [[nodiscard]] Result<void> start(Run run) {
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
      return Error{"cannot connect a process: " + std::string{std::strerror(errno)}};
    Connection here{sockets[0]};
    Connection there{sockets[1]};
    const pid_t child = ::fork();
    if (child < 0) return Error{"cannot start a process: " + std::string{std::strerror(errno)}};
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::signal(SIGINT, SIG_DFL);
      try {
        run(there);
      } catch (const std::exception& fault) {
        (void)there.send(fault.what());
      }
      std::_Exit(0);  // runs no destructors of objects of the caller's process
    }
    processes_.push_back(child);
    connections_.push_back(std::move(here));
    return {};
  }
  [[nodiscard]] const std::vector<Connection>& connections() const { return connections_; }

 private:
  std::vector<pid_t> processes_;
  std::vector<Connection> connections_;
};

/// Runs in a child: sends its address, receives the addresses of all members, runs the collectives,
/// and sends "done" or the reason of its failure.
void run_child(const Connection& parent, Rank self, std::size_t members,
               const std::vector<CollectiveRun>& runs, std::optional<fabric::Provider> provider) {
  Member member{self};
  if (auto opened = member.open(provider); !opened || !parent.send(member.address())) return;
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < members; ++i) {
    auto address = parent.receive();
    if (!address) return;
    addresses.push_back(*std::move(address));
  }
  member.connect(addresses);
  // The parent sends nothing more, so its connection is readable only once it is closed.
  const auto times =
      run_at(member, self, runs, provider.has_value(), [&] { return parent.is_readable(); });
  (void)parent.send(times ? "done" : times.error().message);
  (void)parent.receive();  // waits, because others may still need the last messages
}

}  // namespace

Result<std::vector<double>> run_collectives(std::size_t members,
                                            const std::vector<CollectiveRun>& runs,
                                            std::optional<fabric::Provider> provider) {
  Children children;
  for (Rank self = 1; self < members; ++self)
    if (auto started = children.start(
            [&](const Connection& parent) { run_child(parent, self, members, runs, provider); });
        !started)
      return std::move(started).error();
  Member member{0};
  if (auto opened = member.open(provider); !opened) return std::move(opened).error();
  std::vector<std::string> addresses{member.address()};
  for (const Connection& child : children.connections()) {
    auto address = child.receive();
    if (!address) return Error{"a process of the collective has ended"};
    addresses.push_back(*std::move(address));
  }
  for (const Connection& child : children.connections())
    for (const std::string& address : addresses)
      if (!child.send(address)) return Error{"a process of the collective has ended"};
  member.connect(addresses);
  // A child sends "done" or the reason of its failure. It may be done before this process is.
  std::optional<Error> failure;
  const auto take_answer = [&](const Connection& child) {
    const auto answer = child.receive();
    if (answer != "done" && !failure)
      failure = Error{answer ? *answer : "a process of the collective has ended"};
  };
  std::vector<const Connection*> running;
  for (const Connection& child : children.connections()) running.push_back(&child);
  auto times = run_at(member, 0, runs, provider.has_value(), [&] {
    std::erase_if(running, [&](const Connection* child) {
      if (!child->is_readable()) return false;
      take_answer(*child);
      return true;
    });
    return failure.has_value();
  });
  if (times) std::ranges::for_each(running, [&](const Connection* child) { take_answer(*child); });
  if (failure) return *failure;
  return times;
}

}  // namespace starling::program
