#include "starling/tools/cluster/follow/cluster_snapshot.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/actor/types.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/follow/job_choice.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;
using MemberState = actor::MemberReport::State;

/// About 35 years. No job is older.
constexpr std::uint64_t age_max_ms = std::uint64_t{1} << 40U;

/// Replaces characters that cannot be printed, because another process wrote the texts.
core::NodeRecord with_printable_texts(core::NodeRecord node) {
  node.name = printable(node.name);
  return node;
}

/// Adds the losses that a node reports. A node without updates in the last seconds repeats its last
/// losses, which count only if no other node has newer ones.
void add_loss(JobSnapshot& job, const wire::JobStatus& report) {
  const bool is_recent = report.updates_per_s > 0;
  if (is_recent && !std::exchange(job.has_recent_loss, true)) {
    job.loss_sum = 0;
    job.loss_count = 0;
  }
  if (is_recent != job.has_recent_loss) return;
  job.loss_sum += report.loss * static_cast<double>(report.loss_count);
  job.loss_count += report.loss_count;
}

void add_figures(JobSnapshot& job, const wire::JobStatus& report) {
  job.reported_state = std::max(job.reported_state, report.state);
  // The start is computed from the age, by the clock of this program: the nodes' clocks may differ.
  const auto age_ms = static_cast<std::int64_t>(std::min(report.age_ms, age_max_ms));
  const std::int64_t started_ms = utc_now_us() / 1000 - age_ms;
  job.started_ms = job.started_ms == 0 ? started_ms : std::min(job.started_ms, started_ms);
  job.last_step_ms = std::max(job.last_step_ms, report.last_step_ms);
  job.steps_total = std::max(job.steps_total, report.steps_total);
  job.steps_per_data_epoch = std::max(job.steps_per_data_epoch, report.steps_per_data_epoch);
  job.time_limit_ms = std::max(job.time_limit_ms, report.time_limit_ms);
  job.updates_before = std::max(job.updates_before, report.counts.updates_before);
  job.ranges = std::max(job.ranges, report.counts.ranges);
  job.updates_per_s += report.updates_per_s;
  add_loss(job, report);
}

/// Merges what the node called `node` reports about a job.
void add(JobSnapshot& job, const wire::JobStatus& report, const std::string& node) {
  job.settings = report.settings;
  for (auto& [key, text] : job.settings) {
    key = printable(key);
    text = printable(text);
  }
  job.name = actor::name_of(job.settings, report.job);
  job.client = printable(report.client);
  job.receive(report, node);
  add_figures(job, report);
}

/// Merges the status of a node.
void add(ClusterSnapshot& snapshot, const wire::NodeStatus& status) {
  snapshot.counts[status.self.id] = status.counts;
  snapshot.revoked.insert(status.revoked.begin(), status.revoked.end());
  for (const wire::JobStatus& report : status.jobs)
    add(snapshot.jobs[report.job], report, printable(status.self.name));
}

wire::JobRecord with_printable_texts(wire::JobRecord record) {
  for (std::string* text : {&record.name, &record.description, &record.client, &record.summary.why})
    *text = printable(*text);
  for (auto& [name, value] : record.summary.figures) name = printable(name);
  return record;
}

/// Merges the records that two nodes keep of one job. The summary of a client that followed the job
/// wins over one that a node made.
void merge(wire::JobRecord& into, const wire::JobRecord& other) {
  into.updates_before = std::max(into.updates_before, other.updates_before);
  std::map<core::MemberIncarnation, std::uint64_t> updates;
  for (const auto* record : {&std::as_const(into), &other})
    for (const auto& worker : record->workers)
      updates[worker.worker] = std::max(updates[worker.worker], worker.updates);
  into.workers.clear();
  for (const auto& [worker, count] : updates) into.workers.push_back({worker, count});
  // Only times of one node are subtracted: the clocks of two may differ by more than the job took.
  const std::int64_t took_ms =
      std::max(into.ended_at_ms - into.began_at_ms, other.ended_at_ms - other.began_at_ms);
  into.began_at_ms = std::min(into.began_at_ms, other.began_at_ms);
  into.ended_at_ms = into.began_at_ms + took_ms;
  into.step_max = std::max(into.step_max, other.step_max);
  into.steps_total = std::max(into.steps_total, other.steps_total);
  const bool is_better = other.is_reported_by_client || other.summary.state > into.summary.state;
  if (!into.is_reported_by_client && is_better) {
    into.summary = other.summary;
    into.is_reported_by_client = other.is_reported_by_client;
  }
}

/// Returns the record of the job that has ended last among those whose name or number is `text`. If
/// `text` is empty, chooses among all records if `may_be_any`. Returns null if there is no choice.
const wire::JobRecord* find_ended(const std::map<wire::JobId, wire::JobRecord>& records,
                                  const std::string& text, bool may_be_any) {
  const wire::JobRecord* last = nullptr;
  for (const auto& [id, record] : records) {
    const bool is_named = record.name == text || std::to_string(id) == text;
    if ((text.empty() ? may_be_any : is_named) &&
        (last == nullptr || record.ended_at_ms > last->ended_at_ms))
      last = &record;
  }
  return last;
}

/// Returns a text like "'x' has ended: done, and a program has fetched its result; `starling jobs
/// x` shows its summary".
std::string how_it_ended(const wire::JobRecord& record) {
  const bool is_done = record.summary.state == wire::JobState::done;
  std::string text = quote(record.name) + " has ended: " + print(record.summary.state);
  if (!record.summary.why.empty()) text += " (" + record.summary.why + ")";
  if (is_done && record.is_reported_by_client && record.summary.why.empty())
    text += record.description.starts_with("flow ")
                ? ", and a program has fetched its result"
                : ", and a program has saved its model or needed none";
  return text + "; `" + program_name() + " jobs " + record.name + "` shows its summary";
}

}  // namespace

bool JobSnapshot::is_flow() const { return !actor::setting_of(settings, "flow").empty(); }

wire::JobState JobSnapshot::state() const {
  if (!failure_reason().empty()) return wire::JobState::failed;
  if (reported_state == wire::JobState::preparing || !configuration) return reported_state;
  std::size_t workers = 0;
  for (const core::Member& member : configuration->members) {
    if (!member.works) continue;
    ++workers;
    const auto known = members.find(member.id);
    if (known == members.end() || known->second.status.incarnation != member.incarnation ||
        !is_in(known->second.status, MemberState::done))
      return wire::JobState::running;
  }
  if (workers == 0) return wire::JobState::running;
  return reported_state == wire::JobState::running ? wire::JobState::done : reported_state;
}

std::string JobSnapshot::failure_reason() const {
  const std::string failure = member_failure();
  return failure.empty() ? give_up_reason : failure;
}

std::vector<core::Step> JobSnapshot::steps() const {
  std::vector<core::Step> steps;
  // A worker that joined when all others had ended or were stopped ends at once, at the job's last
  // step, and has made no update.
  for (const wire::MemberStatus* worker : workers())
    if (worker->incarnation == 1 || worker->updates > 0) steps.push_back(worker->step);
  std::ranges::sort(steps);
  return steps;
}

core::Step JobSnapshot::last_step() const {
  core::Step last = 0;
  for (const wire::MemberStatus* worker : workers())
    last = std::max(last, worker->deal.last_step.value_or(0));
  return last > 0 && last < barrier::unlimited ? last : steps_total;
}

std::optional<double> JobSnapshot::data_epoch() const {
  if (steps_per_data_epoch == 0) return std::nullopt;
  std::vector<double> epochs;
  for (const wire::MemberStatus* worker : workers())
    epochs.push_back(worker->deal.data_epoch.value_or(static_cast<double>(worker->step) /
                                                      static_cast<double>(steps_per_data_epoch)));
  std::ranges::sort(epochs);
  return epochs.empty() ? 0 : epochs[epochs.size() / 2];
}

std::optional<double> JobSnapshot::loss() const {
  if (loss_count == 0) return std::nullopt;
  return loss_sum / static_cast<double>(loss_count);
}

std::vector<std::string> ClusterSnapshot::live_addresses() const {
  std::vector<std::string> addresses;
  for (const core::NodeRecord& node : nodes)
    if (core::is_live(node.state) && !revoked.contains(node.id)) addresses.push_back(node.address);
  return addresses;
}

void erase_replaced_nodes(std::vector<core::NodeRecord>& nodes) {
  std::set<std::string> live_names;
  for (const core::NodeRecord& node : nodes)
    if (core::is_live(node.state)) live_names.insert(node.name);
  std::map<std::string, core::NodeId> last;
  for (const core::NodeRecord& node : nodes) last[node.name] = node.id;
  std::erase_if(nodes, [&](const core::NodeRecord& node) {
    if (core::is_live(node.state) || node.name.empty()) return false;
    return live_names.contains(node.name) || last.at(node.name) != node.id;
  });
}

std::string print(wire::JobState state) {
  constexpr std::array<const char*, 5> names{"preparing", "running", "done", "stopped", "failed"};
  return names.at(static_cast<std::size_t>(state));
}

std::vector<std::string> ClusterSnapshot::answering_addresses() const {
  std::vector<std::string> addresses;
  for (const core::NodeRecord& node : nodes)
    if (counts.contains(node.id)) addresses.push_back(node.address);
  return addresses;
}

std::string ClusterSnapshot::live_names_except(const std::set<core::NodeId>& excluded) const {
  std::string names;
  for (const core::NodeRecord& node : nodes)
    if (core::is_live(node.state) && !revoked.contains(node.id) && !excluded.contains(node.id))
      names += (names.empty() ? "" : ", ") + node.name;
  return names;
}

std::set<wire::NodeId> JobSnapshot::nodes() const {
  std::set<wire::NodeId> nodes;
  if (configuration)
    for (const core::Member& member : configuration->members) nodes.insert(member.node);
  return nodes;
}

KeyDescription job_key(const char* group) {
  return {"job", ValueType::text, "JOB", "the same, as a flag", group};
}

Result<ClusterSnapshot> take_snapshot(Access& access, SnapshotScope scope,
                                      std::chrono::milliseconds timeout) {
  auto seed = access.ask_status();
  if (!seed) return std::move(seed).error();
  ClusterSnapshot snapshot;
  snapshot.taken_at = std::chrono::steady_clock::now();
  snapshot.nodes.push_back(with_printable_texts(seed->self));
  for (const core::NodeRecord& other : seed->others)
    snapshot.nodes.push_back(with_printable_texts(other));
  erase_replaced_nodes(snapshot.nodes);
  add(snapshot, *seed);
  std::vector<std::string> others = snapshot.live_addresses();
  std::erase(others, seed->self.address);
  if (scope == SnapshotScope::seed_node) others.clear();
  const wire::GetStatus request{.job = {}, .with_nodes = false};
  for (const auto& reply : access.client->ask_all(others, request, timeout))
    if (const auto* status = reply ? std::get_if<wire::NodeStatus>(&*reply) : nullptr)
      add(snapshot, *status);
  return snapshot;
}

void ask_for_stages(Access& access, ClusterSnapshot& snapshot, SnapshotScope scope,
                    std::chrono::milliseconds timeout) {
  std::vector<std::string> addresses{access.seed};
  if (scope == SnapshotScope::all_nodes) addresses = snapshot.answering_addresses();
  for (auto& [id, job] : snapshot.jobs) {
    if (!job.is_flow()) continue;
    for (auto& reply : access.client->ask_all(addresses, wire::GetFlowReport{id}, timeout))
      if (auto* report = reply ? std::get_if<wire::FlowReport>(&*reply) : nullptr)
        job.stages.receive(std::move(*report));
  }
}

Result<wire::JobId> find_requested_job(const Settings& settings, const ClusterSnapshot& snapshot) {
  std::vector<JobCandidate> candidates;
  for (const auto& [id, job] : snapshot.jobs)
    candidates.push_back({id, job.name, actor::summary_of(job.settings)});
  const std::string location = location_of(settings, "job");
  const auto chosen = choose(text_of(settings, "job"), candidates, "no job runs on these nodes");
  if (chosen) return candidates[*chosen].job;
  Error error = chosen.error();
  const bool names_none = candidates.empty() && location.empty();
  return names_none ? error : std::move(error).within(location.empty() ? "JOB" : location);
}

EndedJobs ended_jobs(Access& access, const ClusterSnapshot& snapshot) {
  EndedJobs ended;
  std::set<core::NodeId> answering;
  std::vector<core::NodeId> asked;
  for (const core::NodeRecord& node : snapshot.nodes)
    if (snapshot.counts.contains(node.id)) asked.push_back(node.id);
  const auto replies =
      access.client->ask_all(snapshot.answering_addresses(), wire::GetJobRecords{}, 1s);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto* records = replies[i] ? std::get_if<wire::JobRecords>(&*replies[i]) : nullptr;
    if (records == nullptr) continue;
    answering.insert(asked[i]);
    for (const wire::JobRecord& sent : records->jobs) {
      const wire::JobRecord record = with_printable_texts(sent);
      if (const auto [known, is_new] = ended.records.try_emplace(record.job, record); !is_new)
        merge(known->second, record);
    }
  }
  ended.silent_nodes = snapshot.live_names_except(answering);
  return ended;
}

Result<std::optional<ChosenJob>> choose_job(const Settings& settings) {
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  auto snapshot = take_snapshot(*access, SnapshotScope::all_nodes);
  if (!snapshot) {
    print_error(snapshot.error().message);
    return std::optional<ChosenJob>{};
  }
  const auto job = find_requested_job(settings, *snapshot);
  if (!job) {
    const auto all_ended = ended_jobs(*access, *snapshot);
    const auto ended =
        find_ended(all_ended.records, text_of(settings, "job"), snapshot->jobs.empty());
    if (ended == nullptr) return job.error();
    const std::string location = location_of(settings, "job");
    Error error{how_it_ended(*ended)};
    return location.empty() ? Error{"no job runs on these nodes; the last job: " + error.message}
                            : std::move(error).within(location);
  }
  return std::optional{ChosenJob{*std::move(access), *std::move(snapshot), *job}};
}

}  // namespace starling::program
