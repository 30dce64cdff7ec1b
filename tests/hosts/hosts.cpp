#include "tests/hosts/hosts.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace starling::hosts {
namespace {

/// Returns the path of `ip` or `tc`, both of iproute2, or "" if it is not installed.
std::string find_program(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"})
    if (::access((folder + name).c_str(), X_OK) == 0) return folder + name;
  return {};
}

/// Makes a network namespace, in a thread of its own because it becomes that thread's namespace.
/// Returns it as an open file.
Result<int> make_namespace() {
  int network_namespace = -1;
  int error = 0;
  std::thread{[&] {
    if (::unshare(CLONE_NEWNET) == 0)
      network_namespace = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    error = errno;
  }}.join();
  if (network_namespace < 0)
    return Error{std::string{"network namespaces cannot be made here ("} + std::strerror(error) +
                 "): needs root"};
  return network_namespace;
}

/// Lets a namespace forward packets that are not for it.
bool enable_forwarding(int network_namespace) {
  bool written = false;
  std::thread{[&] {
    if (::setns(network_namespace, CLONE_NEWNET) != 0) return;
    const int file = ::open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);
    written = file >= 0 && ::write(file, "1", 1) == 1;
    ::close(file);
  }}.join();
  return written;
}

/// Returns a function that moves the calling process to a namespace, and lets it die with the test.
program::Process::Prepare enter(int network_namespace) {
  return [network_namespace] {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no program outlives the test
    if (::setns(network_namespace, CLONE_NEWNET) != 0) ::_exit(125);
  };
}

std::string subnet_of(std::size_t host) { return "10.77." + std::to_string(host + 1) + "."; }

}  // namespace

Result<std::unique_ptr<Hosts>> Hosts::make(std::size_t count) {
  if (find_program("ip").empty()) return Error{"there is no `ip` here: needs iproute2"};
  std::unique_ptr<Hosts> hosts{new Hosts};
  for (std::size_t i = 0; i <= count; ++i) {
    const auto network_namespace = make_namespace();
    if (!network_namespace) return network_namespace.error();
    if (i == 0)
      hosts->router_ = *network_namespace;
    else
      hosts->namespaces_.push_back(*network_namespace);
  }
  if (auto joined = hosts->connect_to_router(); !joined) return joined.error();
  return hosts;
}

Hosts::~Hosts() {
  for (const int network_namespace : namespaces_) ::close(network_namespace);
  if (router_ >= 0) ::close(router_);
}

Result<void> Hosts::connect_to_router() {
  if (!enable_forwarding(router_)) return Error{"/proc/sys/net cannot be written here: needs root"};
  std::string lines = "link set lo up\n";
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string port = "port" + std::to_string(i);
    lines += "link add " + port + " type veth peer name net0 netns /proc/";
    lines += std::to_string(::getpid()) + "/fd/" + std::to_string(namespaces_[i]);
    lines += "\naddress add " + subnet_of(i) + "1/24 dev " + port;
    lines += "\nlink set " + port + " up\n";
  }
  if (auto done = run_ip(router_, lines); !done) return done;
  for (std::size_t i = 0; i < size(); ++i) {
    auto done =
        run_ip(namespaces_[i], "link set lo up\naddress add " + address(i) +
                                   "/24 dev net0\nlink set net0 up\nroute add default via " +
                                   subnet_of(i) + "1\n");
    if (!done) return done;
  }
  return {};
}

std::string Hosts::address(std::size_t host) { return subnet_of(host) + "2"; }

program::Process::Prepare Hosts::in(std::size_t host) const { return enter(namespaces_.at(host)); }
program::Process::Prepare Hosts::in_router() const { return enter(router_); }

void Hosts::partition_one_way(std::size_t from, std::size_t to) {
  if (!partitions_.emplace(from, to).second) return;
  configure(router_, "rule add from " + address(from) + " to " + address(to) + " blackhole\n");
}

void Hosts::cut(std::size_t a, std::size_t b) {
  partition_one_way(a, b);
  partition_one_way(b, a);
}

void Hosts::heal() {
  std::string lines;
  for (const auto& [from, to] : partitions_)
    lines += "rule del from " + address(from) + " to " + address(to) + " blackhole\n";
  partitions_.clear();
  configure(router_, lines);
}

Result<void> Hosts::limit_bandwidth(std::size_t megabits_per_s) {
  // 40 ms of data may wait in a host's queue.
  const std::string rate = std::to_string(megabits_per_s);
  const std::string queue = std::to_string(megabits_per_s * 1'000'000 / 8 * 40 / 1000);
  const std::string line =
      "qdisc add dev net0 root tbf rate " + rate + "mbit burst 32kb limit " + queue + "\n";
  for (const int network_namespace : namespaces_)
    if (auto done = run_batch("tc", network_namespace, line); !done) return done;
  return {};
}

void Hosts::configure(int network_namespace, const std::string& lines) {
  if (const auto done = run_ip(network_namespace, lines); !done) {
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    std::abort();
  }
}

Result<void> Hosts::run_ip(int network_namespace, const std::string& lines) {
  return run_batch("ip", network_namespace, lines);
}

Result<void> Hosts::run_batch(const std::string& name, int network_namespace,
                              const std::string& lines) {
  const std::string path = find_program(name);
  if (path.empty()) return Error{"there is no `" + name + "` here: needs iproute2"};
  folder_.write("lines", lines);
  const program::ProgramResult ran =
      program::Process{folder_, path, {"-batch", "lines"}, enter(network_namespace)}.wait();
  if (ran.code == 0) return {};
  return Error{"`" + name + "` failed with exit code " + std::to_string(ran.code) + ": " + ran.err};
}

}  // namespace starling::hosts
