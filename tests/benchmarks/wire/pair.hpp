/// Runs an owner and a worker in two processes, between which the worker measures transfers.
/// Requires: the calling process has no other threads, because it forks.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace starling::benchmarks {

using Clock = std::chrono::steady_clock;

/// One end of a socket pair, by which the two processes tell each other their addresses. An error
/// ends the process.
class Pipe {
 public:
  explicit Pipe(int descriptor) : descriptor_(descriptor) {}

  void send(const std::string& text) const {
    const std::uint64_t size = text.size();
    write_all(&size, sizeof size);
    write_all(text.data(), text.size());
  }
  /// Waits for the text that the other process sends.
  [[nodiscard]] std::string receive() const {
    std::uint64_t size = 0;
    read_all(&size, sizeof size);
    std::string text(size, '\0');
    read_all(text.data(), size);
    return text;
  }

 private:
  void write_all(const void* from, std::size_t size) const {
    if (::write(descriptor_, from, size) != static_cast<ssize_t>(size)) std::_Exit(1);
  }
  void read_all(void* to, std::size_t size) const {
    for (std::size_t done = 0; done < size;) {
      const ssize_t got = ::read(descriptor_, static_cast<char*>(to) + done, size - done);
      if (got <= 0) std::_Exit(1);
      done += static_cast<std::size_t>(got);
    }
  }

  int descriptor_;
};

/// Runs `owner` in one process and `worker` in another. Returns the worker's result; an empty
/// vector if the worker fails. Kills the owner after the worker has ended.
inline std::vector<double> measure(const std::function<void(const Pipe&)>& owner,
                                   const std::function<std::vector<double>(const Pipe&)>& worker) {
  std::array<int, 2> sockets{};
  std::array<int, 2> results{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0 || ::pipe(results.data()) != 0)
    std::abort();
  const auto close_all = [](std::initializer_list<int> descriptors) {
    for (const int descriptor : descriptors) ::close(descriptor);
  };
  const pid_t owner_pid = ::fork();
  if (owner_pid < 0) std::abort();
  if (owner_pid == 0) {
    close_all({sockets[1], results[0], results[1]});
    owner(Pipe{sockets[0]});
    std::_Exit(0);
  }
  const pid_t worker_pid = ::fork();
  if (worker_pid == 0) {
    close_all({sockets[0], results[0]});
    const auto figures = worker(Pipe{sockets[1]});
    const std::size_t size = figures.size() * sizeof(double);
    std::_Exit(::write(results[1], figures.data(), size) == static_cast<ssize_t>(size) ? 0 : 1);
  }
  // A process that waits for text then notices the end of the other one.
  close_all({sockets[0], sockets[1], results[1]});
  std::vector<double> figures;
  double figure = 0;
  while (::read(results[0], &figure, sizeof figure) == sizeof figure) figures.push_back(figure);
  if (worker_pid > 0) ::waitpid(worker_pid, nullptr, 0);
  ::kill(owner_pid, SIGKILL);
  ::waitpid(owner_pid, nullptr, 0);
  ::close(results[0]);
  return figures;
}

/// The tensors that one round pushes or pulls. Each is divided into chunks; a chunk is one message.
struct Load {
  const char* name;
  std::size_t tensors;
  std::size_t chunks;
  std::size_t chunk_bytes;
  /// The number of measured rounds, after warm_up() rounds that are not measured.
  std::size_t rounds;

  [[nodiscard]] std::size_t messages() const { return tensors * chunks; }
  [[nodiscard]] std::size_t bytes() const { return messages() * chunk_bytes; }
};

/// The most chunks that are in flight at once.
inline constexpr std::size_t in_flight = 32;

/// Returns the number of rounds before the measurement.
inline std::size_t warm_up(const Load& load) { return load.rounds / 5 + 2; }

}  // namespace starling::benchmarks
