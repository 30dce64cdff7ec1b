#include "starling/engine/exchange/leader/leader.hpp"

#include <algorithm>
#include <string>

#include "starling/base/check.hpp"
#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling::core {

static_assert(Exchange<LeaderExchange>);

Result<LeaderSettings> parse_leader(std::string_view name) {
  constexpr Step steps_max = 1'000'000;
  constexpr std::size_t group_max = 1'000'000;
  const auto spec = Spec::parse(name);
  if (!spec) return Error{"exchange: " + spec.error().message};
  SpecReader reader(*spec);
  LeaderSettings settings;
  settings.every = reader.count("every", settings.every, 1, steps_max);
  settings.group = reader.count("group", settings.group, 1, group_max);
  settings.pull = reader.number("pull", settings.pull, 0, 1);
  settings.global_every = reader.count("global_every", 4 * settings.every, 1, 4 * steps_max);
  settings.global_pull = reader.number("global_pull", settings.pull, 0, 1);
  if (settings.pull == 0) reader.refuse("pull: 0 moves nothing; valid: above 0, up to 1");
  if (settings.global_pull == 0)
    reader.refuse("global_pull: 0 moves nothing; valid: above 0, up to 1");
  if (settings.every > 0 && settings.global_every % settings.every > 0)
    reader.refuse("global_every: " + std::to_string(settings.global_every) +
                  " is not a multiple of every=" + std::to_string(settings.every) +
                  "; valid: " + std::to_string(settings.every) + ", " +
                  std::to_string(2 * settings.every) + " and so on");
  if (auto done = reader.finish(); !done) return Error{"exchange: " + done.error().message};
  return settings;
}

LeaderExchange::LeaderExchange(const ExchangeOptions& options)
    : WorkerModel(options), settings_(parse_leader(options.name).value()) {}

Result<void> LeaderExchange::check_argument(std::string_view argument) {
  if (auto settings = parse_leader(std::string{name} + ":" + std::string{argument}); !settings)
    return settings.error();
  return {};
}

// --- this worker's writes -----------------------------------------------------------------------

void LeaderExchange::write(const Context& context, const Write& write) {
  if (!apply(context, write)) return;
  writing_ = write.step;
  if (write.step % settings_.every == 0) {
    const bool is_global = write.step % settings_.global_every == 0;
    const auto receivers = is_global ? others() : others_of_group();
    report(context, receivers);
    if (const auto leader = leader_among(receivers)) {
      move_ = {.leader = *leader, .part = is_global ? settings_.global_pull : settings_.pull};
      ask_for_values(context);
    }
  }
  finish_write(context);
}

/// Applies the mean gradient of the step at the full rate, whatever its number of samples. Returns
/// false if the job has failed.
bool LeaderExchange::apply(const Context& context, const Write& write) {
  const Update& update = write.update;
  if (write.step <= known_steps(self()).step) return true;  // a checkpoint contains it
  if (update.samples > 0 && !update.loss) {
    context.out.push_back(
        Fail{"exchange leader: worker " + std::to_string(self().id) + " has no loss in step " +
             std::to_string(write.step) +
             ", and workers follow the one with the lowest loss; valid: report the loss of each "
             "step, or another exchange"});
    return false;
  }
  record_progress(self(), {write.step, write.samples_total});
  since_report_.sum += update.loss.value_or(0) * update.samples;
  since_report_.samples += update.samples;
  const std::uint64_t samples = expected_samples();
  const double weight = update.samples > 0 ? 1 : 0;
  for (const Update::Part& part : update.parts) {
    if (part.values.empty() || initial_state_contains(part.range, write.step)) continue;
    values(part.range).samples = samples;
    options().applier->apply(*options().layout, part.range, values(part.range), part.values,
                             weight);
  }
  ++versions_;
  return true;
}

/// Returns an estimate of the number of samples of all workers' steps: assumes that each other
/// worker has computed as many samples since its last report as this worker has since then.
/// Learning-rate schedules depend on the estimate.
std::uint64_t LeaderExchange::expected_samples() const {
  const std::uint64_t own = known_steps(self()).samples;
  std::uint64_t samples = samples_of_all();
  for (const MemberIncarnation& other : others()) {
    const auto reported = reported_.find(other);
    if (reported == reported_.end())
      samples += own - first_samples_;
    else if (!reported->second.has_ended)
      samples += own - reported->second.own_samples;
  }
  return samples;
}

/// Sends other workers the current step and the loss since the last report.
void LeaderExchange::report(const Context& context, const std::vector<MemberIncarnation>& to) {
  const LossSum since = std::exchange(since_report_, {});
  const WorkerSteps own = known_steps(self());
  report_ = {.step = own.step, .samples = own.samples, .loss = std::nullopt};
  if (since.samples > 0) report_.loss = since.sum / static_cast<double>(since.samples);
  if (report_.loss) loss_ = report_.loss;
  for (const MemberIncarnation& other : to) {
    context.send(other.id, report_);
    awaited_.insert(other);
  }
}

std::vector<MemberIncarnation> LeaderExchange::others_of_group() const {
  std::vector<MemberIncarnation> workers = others();
  const auto own =
      static_cast<std::size_t>(std::ranges::upper_bound(workers, self()) - workers.begin());
  // `workers` lacks this worker, so the workers behind it are one place earlier than among all
  // workers.
  const std::size_t begin = own / settings_.group * settings_.group;
  const std::size_t end = std::min(begin + settings_.group - 1, workers.size());
  return {workers.begin() + static_cast<std::ptrdiff_t>(begin),
          workers.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// Returns which of `others` has the lowest loss; nullopt if this worker has it, or if no loss is
/// known. If several workers have the lowest loss, the one with the lowest id leads.
std::optional<MemberIncarnation> LeaderExchange::leader_among(
    const std::vector<MemberIncarnation>& others) const {
  std::optional<std::pair<double, MemberIncarnation>> best;
  if (loss_) best = {*loss_, self()};
  for (const MemberIncarnation& other : others) {
    const auto reported = reported_.find(other);
    if (reported == reported_.end() || !reported->second.loss) continue;
    const std::pair candidate{*reported->second.loss, other};
    if (!best || candidate < *best) best = candidate;
  }
  if (!best || best->second == self()) return std::nullopt;
  return best->second;
}

/// Asks for the next ranges while fewer than `window` are in flight.
void LeaderExchange::ask_for_values(const Context& context) {
  for (; move_->next < ranges() && move_->in_flight < options().window; ++move_->next) {
    context.send(move_->leader.id, LeaderRequest{move_->next, report_.step});
    ++move_->in_flight;
  }
  if (move_->in_flight == 0) move_.reset();
}

/// Answers the write, so that its step counts, once the workers to which its report went have
/// answered and the move is complete.
void LeaderExchange::finish_write(const Context& context) {
  if (!writing_ || move_ || !awaited_.empty()) return;
  const Step step = *std::exchange(writing_, std::nullopt);
  if (step % settings_.global_every == 0) reported_to_all_ = step;
  context.out.push_back(Written{step});
}

/// Sends all others the worker's last step. From now on no one moves toward its copy, which does
/// not change any more.
void LeaderExchange::end(const Context& context, const EndWrites& end) {
  has_ended_ = true;
  since_report_ = {};
  report(context, others());
  for (const MemberIncarnation& other : others())
    context.send(other.id, Ended{self().id, end.step});
}

void LeaderExchange::on(const Context&, const Ended& ended) {
  const Member* member = configuration().find(ended.worker);
  if (member != nullptr)
    reported_by({member->id, member->incarnation}) = {.loss = std::nullopt, .has_ended = true};
}

bool LeaderExchange::may_leave() const {
  return ranges() == 0 || !has_configuration() || (has_ended_ && awaited_.empty());
}

// --- what others send ---------------------------------------------------------------------------

bool LeaderExchange::on(const Context& context, MemberId from, const LossReport& report) {
  const Member* member = configuration().find(from);
  if (member == nullptr) return true;
  const MemberIncarnation worker{member->id, member->incarnation};
  if (report.step > 0) record_progress(worker, {report.step, report.samples});
  Reported& reported = reported_by(worker);
  if (report.loss) reported.loss = report.loss;
  reported.own_samples = known_steps(self()).samples;
  context.send(from, LossReceived{report.step});
  return true;
}

/// Returns the last report of a worker; adds one without a loss if the worker has reported nothing.
LeaderExchange::Reported& LeaderExchange::reported_by(const MemberIncarnation& worker) {
  const Reported nothing{.loss = std::nullopt, .own_samples = first_samples_};
  return reported_.try_emplace(worker, nothing).first->second;
}

bool LeaderExchange::on(const Context& context, MemberId from, const LossReceived& received) {
  if (received.step != report_.step) return true;
  std::erase_if(awaited_, [&](const MemberIncarnation& other) { return other.id == from; });
  finish_write(context);
  return true;
}

bool LeaderExchange::on(const Context& context, MemberId from, const LeaderRequest& request) const {
  LeaderReply reply{.range = request.range, .step = request.step, .values = {}};
  if (has_copy(request.range))
    reply.values =
        slice_of(options().layout->ranges[request.range], values(request.range), nullptr);
  context.send(from, std::move(reply));
  return true;
}

bool LeaderExchange::on(const Context& context, MemberId from, const LeaderReply& reply) {
  if (!move_ || move_->leader.id != from || reply.step != report_.step || move_->in_flight == 0)
    return true;
  if (!reply.values.empty()) {
    options().applier->mix(values(reply.range), reply.values, move_->part);
    ++versions_;
  }
  --move_->in_flight;
  ask_for_values(context);
  finish_write(context);
  return true;
}

bool LeaderExchange::on(const Context& context, MemberId from, const ModelReply& reply) {
  if (!install(context, from, reply)) return true;
  ++versions_;
  request_copy(context);
  return true;
}

// --- members ------------------------------------------------------------------------------------

void LeaderExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                      Epoch former) {
  const ConfigurationPtr before = set_configuration(next);
  if (ranges() == 0) return;
  if (former == 0 && next->epoch == 1) {
    take_initial_states();
    first_samples_ = known_steps(self()).samples;
    return;
  }
  std::erase_if(reported_, [&](const auto& known) { return !is_present(known.first); });
  std::erase_if(awaited_, [&](const MemberIncarnation& other) { return !is_present(other); });
  // A worker that joins has no samples yet (expected_samples()).
  if (before)
    for (const MemberIncarnation& other : others())
      if (!before->contains(other.id, other.incarnation))
        reported_by(other).own_samples = known_steps(self()).samples;
  // A worker that joins may have got its copy from a worker that lacks the report, so the joining
  // worker gets the report, too.
  const bool is_awaiting = !awaited_.empty();
  for (const MemberIncarnation& other : others()) {
    if ((!has_ended_ && !is_awaiting) || before->contains(other.id, other.incarnation)) continue;
    context.send(other.id, report_);
    awaited_.insert(other);
    if (has_ended_) context.send(other.id, Ended{self().id, report_.step});
  }
  if (move_ && !is_present(move_->leader)) move_.reset();
  finish_write(context);
  request_missing_copies(context);
}

}  // namespace starling::core
