#include "starling/tools/cluster/begin_job.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/random.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/cluster/job_naming.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

/// The time that nodes have to send the names of their jobs. It can be short: if a node is late, it
/// still refuses a submitted job whose name is taken.
constexpr std::chrono::milliseconds names_timeout{300};

/// Returns the names of the jobs that nodes hold, in any state, and of those that ended within the
/// last day.
std::set<std::string> names_in_use(Access& access, const ClusterSnapshot& snapshot) {
  std::set<std::string> names;
  for (const auto& [id, job] : snapshot.jobs) names.insert(job.name);
  const EndedJobs ended = ended_jobs(access, snapshot);
  for (const auto& [id, job] : ended.records) names.insert(job.name);
  return names;
}

/// Returns an Error if the setting `name` is the name of a job that nodes hold, in any state.
Result<void> check_name(const Settings& settings, const ClusterSnapshot& snapshot) {
  const std::string name = text_of(settings, "name");
  for (const auto& [id, job] : snapshot.jobs)
    if (!name.empty() && job.name == name)
      return Error{location_of(settings, "name") + ": '" + name +
                   "' is the name of a job that is " + print(job.state()) + " here (" +
                   actor::summary_of(job.settings) + "); valid: another name, or first `" +
                   program_name() + " stop --drop " + name +
                   "`, which drops the job's model or result"};
  return {};
}

}  // namespace

KeyDescription detach_key(const char* group) {
  return {"detach", ValueType::flag, "", "end as soon as the job has begun; `attach` follows it",
          group};
}

Result<std::optional<JobTarget>> find_target(Access& access, const Settings& settings) {
  auto node = access.ask_status();
  auto snapshot = node ? take_snapshot(access, SnapshotScope::all_nodes, names_timeout)
                       : Result<ClusterSnapshot>{node.error()};
  if (!snapshot) {
    print_error(snapshot.error().message);
    return std::optional<JobTarget>{};
  }
  if (auto checked = check_name(settings, *snapshot); !checked) return std::move(checked).error();
  return std::optional{JobTarget{*std::move(node), *std::move(snapshot)}};
}

Result<BegunJob> begin_job(Access& access, const JobTarget& target, wire::JobSettings settings,
                           const BeginOptions& options) {
  std::set<std::string> taken = names_in_use(access, target.snapshot);
  const std::string stem = options.name.empty() ? name_stem(settings) : std::string{};
  // Programs that submit jobs at the same moment choose the same names. After each collision, the
  // next name is drawn from twice as many names.
  Random random{wire::draw_id()};
  std::uint64_t skipped_max = 0;
  const NameGenerator new_name = [&] {
    if (stem.empty()) return std::string{};
    for (auto skipped = random.below(skipped_max + 1); skipped > 0; --skipped)
      taken.insert(next_name(stem, taken));
    skipped_max = 2 * skipped_max + 1;
    return *taken.insert(next_name(stem, taken)).first;
  };
  if (!stem.empty()) settings.emplace_back("name", new_name());
  auto submitted = submit_job(access, target.node, std::move(settings), new_name);
  if (!submitted) {
    print_error(submitted.error().message);
    return BegunJob{std::nullopt, job_failed};
  }
  if (!*submitted) {
    print_error("the job was dropped before it had begun");
    return BegunJob{std::nullopt, interrupted_code};
  }
  SubmittedJob& job = **submitted;
  access.seed = job.seed;
  if (options.must_detach && is_interrupted()) {
    Follower follower{*access.client, access.seed, job.job};
    (void)follower.poll();
    follower.close_job({wire::JobState::stopped, "interrupted"});
    print_error("job " + job.name + " was dropped");
    return BegunJob{std::nullopt, interrupted_code};
  }
  if (options.must_detach) {
    const nlohmann::ordered_json json{{"job", std::to_string(job.job)}, {"name", job.name}};
    const auto code =
        write_stdout(options.is_json ? json.dump() + "\n" : "job " + job.name + " begins\n", done);
    if (!code) return code.error();
    return BegunJob{std::nullopt, *code};
  }
  Display{options.is_quiet}.show("job " + job.name + " begins");
  return BegunJob{std::move(job), done};
}

}  // namespace starling::program
