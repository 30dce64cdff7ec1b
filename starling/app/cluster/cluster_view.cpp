#include "starling/app/cluster/cluster_view.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "starling/app/commands.hpp"
#include "starling/base/text.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

/// As it may be shown: others wrote it.
core::MemberRecord showable(core::MemberRecord node) {
  node.name = printable(std::move(node.name));
  return node;
}

void add_hindrance(JobView& job, const wire::JobStatus& told) {
  const core::Epoch epoch = told.configuration ? told.configuration->epoch : 0;
  if (epoch < job.told_epoch) return;
  if (epoch > job.told_epoch || job.hindrance.empty()) job.hindrance = printable(told.hindrance);
  if (epoch > job.told_epoch || job.failure.empty()) job.failure = printable(told.failure);
  job.told_epoch = epoch;
}

void add(ClusterView& view, const wire::NodeStatus& status) {
  view.counts[status.self.id] = status.counts;
  for (const wire::JobStatus& told : status.jobs) {
    JobView& job = view.jobs[told.job];
    job.settings = told.settings;
    for (auto& [key, text] : job.settings) {
      key = printable(std::move(key));
      text = printable(std::move(text));
    }
    if (told.configuration &&
        (!job.configuration || told.configuration->epoch > job.configuration->epoch))
      job.configuration = told.configuration;
    job.client = printable(told.client);
    add_hindrance(job, told);
    for (wire::MemberStatus member : told.here) {
      member.why = printable(std::move(member.why));
      const auto known = job.members.find(member.member);
      // Of two lives the later; the former may not know yet that it is over.
      if (known == job.members.end() || known->second.status.life < member.life)
        job.members[member.member] = {member, printable(status.self.name)};
    }
  }
}

/// The job that `settings` mean.
Result<wire::JobId> which_job(const Settings& settings, const ClusterView& view) {
  std::string known;
  for (const auto& [id, job] : view.jobs)
    known +=
        (known.empty() ? "" : ", ") + std::to_string(id) + " (" + summary_of(job.settings) + ")";
  if (known.empty()) return Error{"no job runs on these nodes"};
  for (const Setting& setting : settings) {
    if (setting.key != "job") continue;
    const auto id = parse_count(setting.text);
    if (id && view.jobs.contains(*id)) return *id;
    return Error{"'" + setting.text + "' is no job that runs here; valid: " + known}.within(
        setting.place);
  }
  if (view.jobs.size() == 1) return view.jobs.begin()->first;
  return Error{"--job: is missing: which of " + known};
}

}  // namespace

std::uint64_t JobView::updates() const {
  std::uint64_t sum = 0;
  for (const auto& [id, member] : members)
    sum += std::min<std::uint64_t>(member.status.step, member.status.losses);
  return sum;
}

std::vector<core::Step> JobView::steps() const {
  std::vector<core::Step> steps;
  for (const auto& [id, member] : members) {
    const core::Member* known = configuration ? configuration->find(id) : nullptr;
    if (known != nullptr && known->works && known->life == member.status.life)
      steps.push_back(member.status.step);
  }
  std::ranges::sort(steps);
  return steps;
}

Result<ClusterView> look_at(Access& access, bool here) {
  auto door = access.greet();
  if (!door) return std::move(door).error();
  ClusterView view;
  view.when = std::chrono::steady_clock::now();
  view.nodes.push_back(showable(door->self));
  std::ranges::transform(door->others, std::back_inserter(view.nodes), showable);
  add(view, *door);
  std::vector<std::string> others;
  for (const core::MemberRecord& other : door->others)
    if (!here && core::is_live(other.state)) others.push_back(other.address);
  for (const auto& reply : access.client->ask_all(others, wire::AskStatus{}, 1s))
    if (const auto* status = reply ? std::get_if<wire::NodeStatus>(&*reply) : nullptr)
      add(view, *status);
  return view;
}

std::string summary_of(const wire::JobSettings& settings) {
  std::string text;
  for (const auto& [key, lead] :
       {std::pair{"model", ""}, {"data", " on "}, {"mode", ", "}, {"barrier", ", "}}) {
    const auto told = std::ranges::find(settings, key, &std::pair<std::string, std::string>::first);
    if (told != settings.end()) text += (text.empty() ? "" : lead) + told->second;
  }
  return text;
}

KeyForm job_key(const char* group) {
  return {"job", KeyKind::text, "ID", "as `status` shows it [the only one]", group};
}

Result<std::optional<ChosenJob>> choose_job(const Settings& settings) {
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  auto view = look_at(*access, false);
  if (!view) {
    complain(view.error().message);
    return std::optional<ChosenJob>{};
  }
  const auto job = which_job(settings, *view);
  if (!job) return job.error();
  return std::optional{ChosenJob{*std::move(access), *std::move(view), *job}};
}

}  // namespace starling::app
