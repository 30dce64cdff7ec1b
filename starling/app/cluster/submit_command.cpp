#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "starling/app/cluster/address.hpp"
#include "starling/app/cluster/cluster_commands.hpp"
#include "starling/app/cluster/follower.hpp"
#include "starling/app/cluster/plan.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/app/prepare.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 200ms;

struct FreeAddresses {
  void operator()(addrinfo* all) const { ::freeaddrinfo(all); }
};

/// This machine's address as the way to `door` has it, with a free port.
Result<std::string> own_address(const std::string& door) {
  const auto colon = door.rfind(':');
  std::string host = door.substr(6, colon - 6);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), door.substr(colon + 1).c_str(), &hints, &found) != 0)
    return Error{"'" + host + "' is no host that is known here"};
  const std::unique_ptr<addrinfo, FreeAddresses> addresses{found};
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const int probe = ::socket(to->ai_family, SOCK_DGRAM, 0);
    if (probe < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    const bool known = ::connect(probe, to->ai_addr, to->ai_addrlen) == 0 &&
                       ::getsockname(probe, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    ::close(probe);
    std::array<char, NI_MAXHOST> name{};
    if (known && ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, name.data(), name.size(),
                               nullptr, 0, NI_NUMERICHOST) == 0)
      return to->ai_family == AF_INET6 ? "tcp://[" + std::string{name.data()} + "]:*"
                                       : "tcp://" + std::string{name.data()} + ":*";
  }
  return Error{"'" + host + "' cannot be reached from here"};
}

/// A node of the cluster, and how to ask it.
struct Access {
  std::string door;
  std::unique_ptr<live::ClusterClient> client;
};

Result<Access> open_access(const Settings& settings) {
  const std::string place = place_of(settings, "to");
  if (place.empty())
    return Error{"--to: is missing: the address of any node of the cluster, like 10.0.0.1:7400"};
  const auto text = std::ranges::find(settings, "to", &Setting::key)->text;
  auto door = parse_address(text, false);
  if (!door) return std::move(door).error().within(place);
  const auto listen = own_address(*door);
  if (!listen) return Error{listen.error()}.within(place);
  auto client = live::ClusterClient::open(*listen);
  if (!client) return std::move(client).error();
  return Access{*std::move(door), *std::move(client)};
}

wire::JobId draw_job() {
  std::random_device device;
  return ((std::uint64_t{device()} << 32U) | device()) | 1U;
}

/// The job runs: follows it to its end.
live::Outcome follow(Follower& follower, Recorder& recorder, const Prepared& ready) {
  live::Outcome outcome;
  const auto& job = ready.running.options.job;
  bool stopping = false;
  while (true) {
    auto news = follower.look();
    if (!news || !news->failure.empty()) {
      outcome.end = live::Outcome::End::failed;
      outcome.error = news ? news->failure : news.error().message;
      return outcome;
    }
    outcome.last = news->progress;
    const bool wanted = recorder.on_progress(news->progress);
    const bool time_is_up = job.time && news->progress.elapsed >= *job.time;
    if (!stopping && (!wanted || time_is_up)) {
      stopping = true;
      outcome.end = wanted ? live::Outcome::End::reached : live::Outcome::End::stopped;
      follower.stop();
    }
    if (news->done) return outcome;
    std::this_thread::sleep_for(look_every);
  }
}

/// The model at the job's end, and its figures.
void fetch(Follower& follower, live::Outcome& outcome, const Prepared& ready) {
  auto model = follower.fetch(ready.model->layout(ready.running.options.job).ranges.size());
  if (!model) {
    outcome.end = live::Outcome::End::failed;
    if (outcome.error.empty()) outcome.error = model.error().message;
    return;
  }
  outcome.model = *std::move(model);
  const Weights weights = ready.model->collect(ready.running.options.job, outcome.model);
  outcome.last.train = ready.model->evaluate(weights, ready.data.train);
  if (ready.test() != nullptr) outcome.last.test = ready.model->evaluate(weights, *ready.test());
  outcome.last.evaluations = 1;
}

}  // namespace

const std::vector<KeyForm>& submit_keys() {
  static const std::vector<KeyForm> all = [] {
    std::vector<KeyForm> keys{{"to", KeyKind::text, "HOST:PORT",
                               "any node of the cluster; its nodes read the data themselves",
                               "Where"}};
    for (const Key& key : job_keys())
      if (check_submission({{key.name, "", ""}})) keys.push_back(key);
    return keys;
  }();
  return all;
}

const std::vector<KeyForm>& status_keys() {
  static const std::vector<KeyForm> keys{
      {"to", KeyKind::text, "HOST:PORT", "any node of the cluster", "Options"}};
  return keys;
}

Result<int> submit_command(const Contents& contents, const Settings& settings,
                           const std::string& job_file) {
  Settings job = settings;
  std::erase_if(job, [](const Setting& setting) { return setting.key == "to"; });
  if (auto valid = check_submission(job); !valid) return std::move(valid).error();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  auto ready = prepare(contents, job, job_file);
  if (!ready) return std::move(ready).error();
  auto metrics = MetricsFile::open(ready->job.metrics, false);
  if (!metrics) return std::move(metrics).error().within(place_of(settings, "metrics"));
  const OrderlyStop orderly{ready->job.quiet ? nullptr : stops_without_saving};
  const wire::JobId id = draw_job();
  const auto started =
      access->client->ask_for<wire::Done>(access->door, wire::SubmitJob{id, to_wire(job)}, 5min);
  if (!started) {
    complain(started.error().message);
    return job_failed;
  }
  Recorder recorder{*ready, *std::move(metrics)};
  Follower follower{*access->client, access->door, id};
  live::Outcome outcome = follow(follower, recorder, *ready);
  fetch(follower, outcome, *ready);
  follower.close();
  return report(recorder.end(outcome), ready->job);
}

Result<int> status_command(const Settings& settings) {
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto status =
      access->client->ask_for<wire::NodeStatus>(access->door, wire::AskStatus{}, 5s);
  if (!status) {
    complain(status.error().message);
    return job_failed;
  }
  const auto line = [](const core::MemberRecord& node) {
    constexpr std::array<const char*, 4> states{"alive", "suspect", "dead", "left"};
    return node.name + "  " + node.address + "  " +
           states.at(static_cast<std::size_t>(node.state)) + "\n";
  };
  std::string text = line(status->self);
  for (const auto& other : status->others) text += line(other);
  for (const auto& job : status->jobs) {
    text += "job " + std::to_string(job.job) + ", epoch " +
            std::to_string(job.configuration ? job.configuration->epoch : 0) + "\n";
    constexpr std::array<const char*, 5> standing{"joining", "running", "done", "shut out",
                                                  "failed"};
    for (const auto& member : job.here)
      text += "  member " + std::to_string(member.member) + ": step " +
              std::to_string(member.step) + ", " +
              (member.state < standing.size() ? standing.at(member.state) : "unknown") +
              (member.why.empty() ? "" : ": " + member.why) + "\n";
  }
  return put_out(text, done);
}

}  // namespace starling::app
