/// Nodes of one cluster, each a process, on hosts of their own or on this machine's loopback, and a
/// job that they train, looked at by `starling status` as people would. For tests; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/hosts/hosts.hpp"

namespace starling::hosts {

/// The view of one node, as `starling status` prints it.
struct Seen {
  /// States by node name, the node itself among them: alive, suspect, dead or left.
  std::map<std::string, std::string> states;
  /// Steps of the job's members there, by member.
  std::map<std::uint64_t, std::uint64_t> steps;
  /// Ranges that its members hold, in all.
  std::size_t held = 0;
  /// As the node knows the configuration: the owners of the range that has the fewest, and the
  /// number of replicas here that are not whole yet.
  std::size_t copies = 0;
  std::size_t incomplete = 0;
  /// The member that keeps the steps, where one does.
  std::optional<std::uint64_t> coordinator;
  /// 0 where it knows no job.
  std::uint64_t epoch = 0;
  std::string text;

  [[nodiscard]] std::size_t live() const;
};

/// Whether nodes have key files.
enum class Keys { none, given };

class Fleet {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::milliseconds;

  /// `program`: `starling`. Without `hosts` all are on the loopback.
  explicit Fleet(std::string program, std::unique_ptr<Hosts> hosts = nullptr,
                 Keys keys = Keys::none);
  /// Kills all that runs.
  ~Fleet();

  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// Nodes have the names n0, n1, ... in the order of their starts. `more` are further flags;
  /// without --listen among them it listens at a free port.
  std::size_t start(std::size_t host, const std::string& more = "");
  /// Nodes that hold ranges.
  [[nodiscard]] std::vector<std::size_t> owners();
  /// True where all nodes know of `wanted` owners of each range, on nodes that run, and these hold
  /// what they own.
  [[nodiscard]] bool holds_copies(std::size_t wanted);
  /// Waits until all nodes that run see each other alive, and no other node.
  [[nodiscard]] bool agree(Time within);

  void kill(std::size_t node);
  void freeze(std::size_t node);
  void thaw(std::size_t node);
  /// SIGTERM; its exit code.
  int leave(std::size_t node);

  [[nodiscard]] Hosts& hosts() { return *hosts_; }
  [[nodiscard]] const std::string& address(std::size_t node) const {
    return nodes_.at(node)->address;
  }
  /// Flags by which other programs reach it.
  [[nodiscard]] std::string access(std::size_t node) const;
  [[nodiscard]] std::size_t host_of(std::size_t node) const { return nodes_.at(node)->host; }
  [[nodiscard]] std::string log(std::size_t node) const { return nodes_.at(node)->process->err(); }
  /// The logs and the states of all nodes, to show why a test failed.
  [[nodiscard]] std::string logs();
  [[nodiscard]] std::size_t rss_kib(std::size_t node) const;
  /// Processor time that it has taken.
  [[nodiscard]] std::chrono::duration<double> busy(std::size_t node) const;
  /// Nodes that run and are not frozen.
  [[nodiscard]] std::vector<std::size_t> awake() const;
  [[nodiscard]] std::optional<Seen> ask(std::size_t node);

  /// Another program of the same kind, to its end.
  program::Ran run(const std::string& line);
  /// `starling submit --to NODE line`; one at a time.
  void submit(std::size_t node, const std::string& line);
  [[nodiscard]] bool is_training() { return submission_ && submission_->is_running(); }
  program::Ran finish() { return submission_->wait(); }
  [[nodiscard]] const program::Folder& work() const { return work_; }

  /// Looks at all that are awake again and again, until `holds()` or the job's end; false after
  /// `within`.
  bool watch(Time within, const std::function<bool()>& holds);
  void watch(Time time) {
    (void)watch(time, [] { return false; });
  }
  /// From here on pauses are counted anew.
  void forget_pauses();
  /// The longest time between two looks that showed new updates; `look()` takes its share of it.
  [[nodiscard]] Time longest_pause() const { return longest_pause_; }
  /// The steps of all members that were ever seen, as seen last.
  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& steps() const { return steps_; }
  [[nodiscard]] std::uint64_t highest_step() const;

 private:
  struct Node {
    std::string name;
    std::size_t host = 0;
    std::string address;
    program::Folder folder;
    std::unique_ptr<program::Process> process;
    bool runs = true;
    bool frozen = false;
  };

  void look();
  [[nodiscard]] program::Process::Prepare in(std::size_t host) const;
  [[nodiscard]] program::Process::Prepare aside() const;
  [[nodiscard]] std::string seed(std::size_t node) const;
  [[nodiscard]] std::string key(const std::string& name) const;

  std::string program_;
  std::unique_ptr<Hosts> hosts_;
  Keys keys_;
  std::vector<std::unique_ptr<Node>> nodes_;
  program::Folder work_;
  std::unique_ptr<program::Process> submission_;
  std::map<std::uint64_t, std::uint64_t> steps_;
  Clock::time_point grown_at_ = Clock::now();
  Time longest_pause_{0};
};

}  // namespace starling::hosts
