#include "tests/hosts/fleet.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>
#include <sstream>

#include "tests/waiting.hpp"

namespace starling::hosts {
namespace {

using namespace std::chrono_literals;

/// The most seed nodes that a node is given when it starts.
constexpr std::size_t seeds_max = 8;
/// The most nodes of a cluster with keys.
constexpr std::size_t nodes_max = 40;

/// Parses the output of `starling status --here`.
StatusReport parse_status(const std::string& text) {
  StatusReport report;
  report.text = text;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string first;
    std::string second;
    std::string third;
    words >> first >> second >> third;
    const std::string_view coordinator_is = "the coordinator is ";
    if (const auto at = line.find(coordinator_is); at != std::string::npos)
      report.coordinator = std::stoull(line.substr(at + coordinator_is.size()));
    if (first == "configuration") {
      report.epoch = std::stoull(second);
    } else if (first == "job") {
      continue;
    } else if (first == "member") {
      std::uint64_t step = 0;
      words >> step;
      report.steps[std::stoull(second)] = step;
      const std::string_view holds = ", holds ";
      if (const auto at = line.find(holds); at != std::string::npos)
        report.ranges_held += std::stoull(line.substr(at + holds.size()));
    } else if (first == "copies") {
      // For instance: copies 1 of 2 wanted, 3 on their way
      report.fewest_owners = std::stoull(second);
      if (const auto comma = line.find(','); comma != std::string::npos)
        report.incomplete_replicas = std::stoull(line.substr(comma + 1));
    } else if (!line.starts_with(' ')) {
      report.states[first] = third;
    }
  }
  return report;
}

}  // namespace

std::size_t StatusReport::live() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      states, [](const auto& node) { return node.second == "alive" || node.second == "suspect"; }));
}

Fleet::Fleet(std::string program, std::unique_ptr<Hosts> hosts, Keys keys)
    : program_(std::move(program)), hosts_(std::move(hosts)), keys_(keys) {
  if (keys_ == Keys::none) return;
  const auto run_keys = [&](const std::string& line) {
    const program::ProgramResult ran =
        program::Process{work_, program_, program::words("keys " + line)}.wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
  };
  run_keys("init-cluster");
  // All key files are made before any node starts. A key file lists only the certificates that were
  // made before it.
  for (std::size_t i = 0; i < nodes_max; ++i) run_keys("node n" + std::to_string(i));
  run_keys("node laptop --role client");
}

std::string Fleet::key_path(const std::string& name) const {
  return (work_.path() / (name + ".key")).string();
}

std::string Fleet::join_address(std::size_t node) const {
  return keys_ == Keys::none ? address(node) : nodes_.at(node)->name + "@" + address(node);
}

std::string Fleet::client_flags(std::size_t node) const {
  return (keys_ == Keys::none ? " --insecure" : " --keys " + key_path("laptop")) + " --to " +
         join_address(node) + " ";
}

Fleet::~Fleet() {
  if (submission_) submission_->signal(SIGKILL);
  for (const auto& node : nodes_) node->process->signal(SIGKILL);
}

program::Process::Prepare Fleet::in_host(std::size_t host) const {
  if (hosts_) return hosts_->in(host);
  return [] { ::prctl(PR_SET_PDEATHSIG, SIGKILL); };
}

program::Process::Prepare Fleet::enter_router() const {
  return hosts_ ? hosts_->in_router() : in_host(0);
}

std::size_t Fleet::start(std::size_t host, const std::string& more_flags) {
  auto node = std::make_unique<Node>();
  node->name = "n" + std::to_string(nodes_.size());
  node->host = host;
  std::string line = "node --name " + node->name;
  if (keys_ == Keys::given) line += " --keys " + key_path(node->name);
  if (more_flags.find("--listen") != std::string::npos) {
  } else if (hosts_) {
    // Uses the first free port of the host, so that a node that replaces a dead one gets its
    // address.
    int port = 7400;
    const auto address = [&] { return Hosts::address(host) + ":" + std::to_string(port); };
    while (std::ranges::any_of(nodes_, [&](const auto& other) {
      return other->is_running && other->address == "tcp://" + address();
    }))
      ++port;
    line += (keys_ == Keys::none ? " --insecure" : "") + (" --listen " + address());
  } else {
    line += " --listen 127.0.0.1:*";
  }
  for (const std::size_t seed : awake() | std::views::take(seeds_max))
    line += " --join " + join_address(seed);
  node->process = std::make_unique<program::Process>(
      node->folder, program_, program::words(line + " " + more_flags), in_host(host));
  const std::string begin = "node " + node->name + " at ";
  (void)wait_until([&] {
    const bool has_ended = !node->process->is_running();
    const std::string log_text = node->process->err();
    const auto at = log_text.find(begin);
    const auto end = log_text.find('\n', at);
    if (at == std::string::npos || end == std::string::npos) return has_ended;
    node->address = log_text.substr(at + begin.size(), end - at - begin.size());
    return true;
  });
  EXPECT_FALSE(node->address.empty()) << node->process->err();
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

bool Fleet::wait_until_members_agree(Time within) {
  const auto running = awake();
  const auto sees_all = [&](std::size_t node) {
    const auto report = status_of(node);
    return report && report->live() == running.size() &&
           std::ranges::all_of(running, [&](std::size_t other) {
             const auto known = report->states.find(nodes_[other]->name);
             return known != report->states.end() && known->second == "alive";
           });
  };
  return wait_until([&] { return std::ranges::all_of(running, sees_all); }, within);
}

std::vector<std::size_t> Fleet::owners() {
  std::vector<std::size_t> owning;
  for (const std::size_t node : awake())
    if (const auto report = status_of(node); report && report->ranges_held > 0)
      owning.push_back(node);
  return owning;
}

bool Fleet::has_complete_replicas(std::size_t wanted) {
  std::set<std::uint64_t> epochs;
  std::size_t owners = 0;
  const bool complete = std::ranges::all_of(awake(), [&](std::size_t node) {
    const auto report = status_of(node);
    if (!report || report->fewest_owners < wanted || report->incomplete_replicas > 0) return false;
    if (report->ranges_held > 0) ++owners;
    // All nodes must know the same configuration: the owners of an older one may be dead.
    epochs.insert(report->epoch);
    return epochs.size() == 1;
  });
  return complete && owners >= wanted;
}

void Fleet::kill(std::size_t node) {
  nodes_.at(node)->process->signal(SIGKILL);
  (void)nodes_[node]->process->wait();
  nodes_[node]->is_running = false;
}

void Fleet::freeze(std::size_t node) {
  nodes_.at(node)->process->signal(SIGSTOP);
  nodes_[node]->is_frozen = true;
}

void Fleet::thaw(std::size_t node) {
  nodes_.at(node)->process->signal(SIGCONT);
  nodes_[node]->is_frozen = false;
}

int Fleet::leave(std::size_t node) {
  nodes_.at(node)->is_running = false;
  nodes_[node]->process->signal(SIGTERM);
  (void)watch(60s, [&] { return !nodes_[node]->process->is_running(); });
  nodes_[node]->process->signal(SIGKILL);
  return nodes_[node]->process->wait().code;
}

std::string Fleet::logs() {
  std::string all;
  for (const std::size_t node : awake())
    if (const auto report = status_of(node))
      all += "--- status of " + nodes_[node]->name + "\n" + report->text;
  for (const auto& node : nodes_)
    all += "--- " + node->name + " at " + node->address + "\n" + node->process->err();
  if (submission_) all += "--- submit\n" + submission_->err() + submission_->out();
  return all;
}

std::size_t Fleet::rss_kib(std::size_t node) const {
  std::ifstream status{"/proc/" + std::to_string(nodes_.at(node)->process->id()) + "/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6));
  return 0;
}

std::chrono::duration<double> Fleet::cpu_time(std::size_t node) const {
  std::ifstream stat{"/proc/" + std::to_string(nodes_.at(node)->process->id()) + "/stat"};
  std::string text{std::istreambuf_iterator{stat}, {}};
  // The program's name is in parentheses and may have spaces. The third field follows it; the times
  // in user and in system mode are the 14th and 15th (proc(5)).
  std::istringstream fields{text.substr(std::min(text.size(), text.rfind(')') + 1))};
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return std::chrono::duration<double>{(user + system) /
                                       static_cast<double>(::sysconf(_SC_CLK_TCK))};
}

std::vector<std::size_t> Fleet::awake() const {
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i]->is_running && !nodes_[i]->is_frozen) nodes.push_back(i);
  return nodes;
}

program::ProgramResult Fleet::run(const std::string& line) {
  const program::Folder folder;  // for the output of the program
  return program::Process{folder, program_, program::words(line), enter_router()}.wait();
}

std::optional<StatusReport> Fleet::status_of(std::size_t node) {
  const program::ProgramResult ran = run("status --here" + client_flags(node));
  if (ran.code != 0) return std::nullopt;
  return parse_status(ran.out);
}

void Fleet::submit(std::size_t node, const std::string& line) {
  submission_.reset();
  steps_.clear();
  submission_ = std::make_unique<program::Process>(
      work_, program_, program::words("submit" + client_flags(node) + line), enter_router());
  reset_longest_pause();
}

void Fleet::read_steps() {
  bool has_grown = false;
  for (const std::size_t node : awake()) {
    const auto report = status_of(node);
    if (!report) continue;
    for (const auto& [member, step] : report->steps) {
      auto& known = steps_[member];
      has_grown = has_grown || step > known;
      known = std::max(known, step);
    }
  }
  if (!has_grown) return;
  const auto now = Clock::now();
  longest_pause_ =
      std::max(longest_pause_, std::chrono::duration_cast<Time>(now - last_growth_at_));
  last_growth_at_ = now;
}

void Fleet::reset_longest_pause() {
  last_growth_at_ = Clock::now();
  longest_pause_ = Time{0};
}

bool Fleet::watch(Time within, const std::function<bool()>& holds) {
  bool held = false;
  (void)wait_until(
      [&] {
        read_steps();
        held = holds();
        return held || (submission_ && !submission_->is_running());
      },
      within);
  return held;
}

std::uint64_t Fleet::highest_step() const {
  std::uint64_t highest = 0;
  for (const auto& [member, step] : steps_) highest = std::max(highest, step);
  return highest;
}

}  // namespace starling::hosts
