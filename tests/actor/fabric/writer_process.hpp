/// A child process that writes into a region of this process. For tests. Requires that this process
/// has one thread, because it forks.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "starling/actor/wire/archive.hpp"
#include "tests/actor/fabric/test_link.hpp"
#include "tests/sanitized.hpp"

namespace starling::fabric {

/// Passes values from one process to another, through memory that both share.
template <class T>
struct Mailbox {
  static constexpr std::uint64_t size = 128;
  std::array<T, size> values{};
  std::atomic<std::uint64_t> put_count = 0;
  std::atomic<std::uint64_t> get_count = 0;

  void put(const T& value) {
    while (put_count - get_count >= size) ::usleep(20);
    values[put_count % size] = value;
    ++put_count;
  }
  std::optional<T> get() {
    if (get_count == put_count) return std::nullopt;
    const T value = values[get_count % size];
    ++get_count;
    return value;
  }
};

struct Mail {
  /// From the writer: which slots it has written.
  Mailbox<Ticket> tickets;
  /// From the reader: which slots are free again.
  Mailbox<Release> releases;
  /// 1 when the writer has begun to connect, 2 when it may go on.
  std::atomic<int> stage = 0;
};

/// Forks a process that runs `write(writer, mail)`, and opens the reader that it writes to.
class WriterProcess {
 public:
  using Write = std::function<void(RegionWriter&, Mail&)>;

  WriterProcess(SlotLayout layout, const Write& write) {
    void* const memory =
        ::mmap(nullptr, sizeof(Mail), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mail = new (memory) Mail;
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) std::abort();
    // The claim of the child differs from this process's in the pid only, because fork() copies the
    // secret to the same address.
    ProcessClaim writer = own_claim();
    pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      run(sockets[0], write);
      ::_exit(0);
    }
    writer.pid = pid;
    reader = RegionReader::open({.layout = layout, .writer = writer}).value();
    wire::Bytes bytes;
    wire::Encoder encoder{bytes};
    encoder(reader->offer());
    EXPECT_EQ(::write(sockets[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    while (mail->stage == 0) ::usleep(20);
    reader->connect();
    mail->stage = 2;
    ::close(sockets[0]);
    ::close(sockets[1]);
  }
  ~WriterProcess() {
    kill();
    ::munmap(mail, sizeof(Mail));
  }
  WriterProcess(const WriterProcess&) = delete;
  WriterProcess& operator=(const WriterProcess&) = delete;

  void kill() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
  }

  Mail* mail = nullptr;
  pid_t pid = 0;
  std::unique_ptr<RegionReader> reader;

 private:
  void run(int socket, const Write& write) const {
    std::array<std::byte, 4096> bytes{};
    const auto size = ::read(socket, bytes.data(), bytes.size());
    if (size <= 0) return;
    Offer offer;
    wire::Decoder decoder{std::span{bytes}.first(static_cast<std::size_t>(size))};
    decoder(offer);
    auto writer = RegionWriter::open(Endpoint::open(Provider::shm).value(), Provider::shm,
                                     test_link_id, offer, /*may_leave_host=*/false)
                      .value();
    writer->begin();
    mail->stage = 1;
    while (mail->stage == 1) ::usleep(20);
    if (!writer->connect()) return;
    write(*writer, *mail);
  }
};

}  // namespace starling::fabric
