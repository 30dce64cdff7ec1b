/// Runs the nodes of one cluster, each in a process, on several Hosts or on this machine's
/// loopback, and a job on them. Reads their states by `starling status`. For tests; one thread at a
/// time.
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

/// The status of one node, as `starling status` prints it.
struct StatusReport {
  /// The state of each node that the node knows, itself included, by name: alive, suspect, dead or
  /// left.
  std::map<std::string, std::string> states;
  /// The steps of the job's members on the node, by member.
  std::map<std::uint64_t, std::uint64_t> steps;
  /// How many ranges these members hold in total.
  std::size_t ranges_held = 0;
  /// The number of owners of the range that has the fewest, in the node's latest configuration.
  std::size_t fewest_owners = 0;
  /// The number of replicas on the node that are not complete yet.
  std::size_t incomplete_replicas = 0;
  /// The member that is the coordinator, if the job has one.
  std::optional<std::uint64_t> coordinator;
  /// The configuration epoch; 0 if the node knows no job.
  std::uint64_t epoch = 0;
  /// The whole output of `starling status`.
  std::string text;

  /// Returns the number of nodes that are alive or suspect.
  [[nodiscard]] std::size_t live() const;
};

/// `given`: nodes have key files. `none`: they run with --insecure.
enum class Keys { none, given };

/// Nodes are numbered from 0 in the order of their start().
class Fleet {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::milliseconds;

  /// `program` is the path of `starling`. Without `hosts`, all nodes are on the loopback.
  explicit Fleet(std::string program, std::unique_ptr<Hosts> hosts = nullptr,
                 Keys keys = Keys::none);
  /// Kills all processes.
  ~Fleet();

  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// Starts a node with the name n0, n1, ..., lets it join up to 8 awake() nodes, and waits until
  /// it listens. Returns its number. If `more_flags` do not contain --listen, the node listens at a
  /// free port.
  std::size_t start(std::size_t host, const std::string& more_flags = "");
  /// Returns the awake() nodes that hold ranges.
  [[nodiscard]] std::vector<std::size_t> owners();
  /// Returns true if all awake() nodes report the same configuration, in which each range has at
  /// least `wanted` owners, and no incomplete replica.
  [[nodiscard]] bool has_complete_replicas(std::size_t wanted);
  /// Waits until all awake() nodes report each other as alive, and no other node as alive or
  /// suspect. Returns false if that does not happen within `within`.
  [[nodiscard]] bool wait_until_members_agree(Time within);

  /// Sends SIGKILL, and waits for the end of the process.
  void kill(std::size_t node);
  /// Stops a node by SIGSTOP until thaw().
  void freeze(std::size_t node);
  void thaw(std::size_t node);
  /// Ends the node by SIGTERM, or by SIGKILL after 60 s. Returns its exit code.
  int leave(std::size_t node);

  [[nodiscard]] Hosts& hosts() { return *hosts_; }
  [[nodiscard]] const std::string& address(std::size_t node) const {
    return nodes_.at(node)->address;
  }
  /// Returns the flags by which a client reaches the node.
  [[nodiscard]] std::string client_flags(std::size_t node) const;
  [[nodiscard]] std::size_t host_of(std::size_t node) const { return nodes_.at(node)->host; }
  [[nodiscard]] std::string log(std::size_t node) const { return nodes_.at(node)->process->err(); }
  /// Returns the logs and the status of all nodes, to show why a test failed.
  [[nodiscard]] std::string logs();
  [[nodiscard]] std::size_t rss_kib(std::size_t node) const;
  /// Returns the processor time that the node has used.
  [[nodiscard]] std::chrono::duration<double> cpu_time(std::size_t node) const;
  /// Returns the nodes that run and are not frozen.
  [[nodiscard]] std::vector<std::size_t> awake() const;
  /// Runs `starling status` for the node. Returns nullopt if that fails.
  [[nodiscard]] std::optional<StatusReport> status_of(std::size_t node);

  /// Runs `starling` with the arguments `line` in the router, and waits for its end.
  program::ProgramResult run(const std::string& line);
  /// Starts `starling submit --to NODE line`. Only one job may run at a time.
  void submit(std::size_t node, const std::string& line);
  [[nodiscard]] bool is_training() { return submission_ && submission_->is_running(); }
  /// Waits for the end of the submitted job.
  program::ProgramResult finish() { return submission_->wait(); }
  /// The folder in which submit() runs, and which has the key files.
  [[nodiscard]] const program::Folder& work_folder() const { return work_; }

  /// Reads the steps of all awake() nodes again and again until `holds()` is true or the job has
  /// ended, for up to `within`. Returns true only if `holds()` was true.
  bool watch(Time within, const std::function<bool()>& holds);
  /// Reads the steps for `time`, or until the job has ended.
  void watch(Time time) {
    (void)watch(time, [] { return false; });
  }
  /// Starts a new measurement of longest_pause().
  void reset_longest_pause();
  /// The longest time between two readings of the steps that showed new steps. It includes the time
  /// of the reading.
  [[nodiscard]] Time longest_pause() const { return longest_pause_; }
  /// The last known steps of all members of the job, present and former.
  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& steps() const { return steps_; }
  [[nodiscard]] std::uint64_t highest_step() const;

 private:
  struct Node {
    std::string name;
    std::size_t host = 0;
    std::string address;
    program::Folder folder;
    std::unique_ptr<program::Process> process;
    /// False after kill() or leave().
    bool is_running = true;
    bool is_frozen = false;
  };

  /// Updates steps() and longest_pause() from the status of all awake() nodes.
  void read_steps();
  [[nodiscard]] program::Process::Prepare in_host(std::size_t host) const;
  [[nodiscard]] program::Process::Prepare enter_router() const;
  /// Returns the address that --join and --to take: with keys, NAME@ADDRESS.
  [[nodiscard]] std::string join_address(std::size_t node) const;
  [[nodiscard]] std::string key_path(const std::string& name) const;

  std::string program_;
  std::unique_ptr<Hosts> hosts_;
  Keys keys_;
  std::vector<std::unique_ptr<Node>> nodes_;
  program::Folder work_;
  std::unique_ptr<program::Process> submission_;
  std::map<std::uint64_t, std::uint64_t> steps_;
  Clock::time_point last_growth_at_ = Clock::now();
  Time longest_pause_{0};
};

}  // namespace starling::hosts
