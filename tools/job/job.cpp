#include "starling/tools/job/job.hpp"

#include <algorithm>
#include <set>

#include "starling/base/check.hpp"
#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/tools/job/keys.hpp"

namespace starling::program {
namespace {

/// Puts the setting's location before the error. If the error begins with the key's name, removes
/// the name, because the location contains it.
Error add_location_of(const Setting& setting, Error error) {
  const std::string key_name = setting.key + ": ";
  if (error.message.starts_with(key_name)) error.message.erase(0, key_name.size());
  return std::move(error).within(setting.location);
}

Result<void> refuse_repeats(const Settings& settings) {
  std::set<std::string> seen;
  for (const Setting& setting : settings) {
    const Key* key = find_key(setting.key);
    STARLING_CHECK(key != nullptr);
    if (key->type != ValueType::texts && !seen.insert(setting.key).second)
      return Error{setting.location + ": is given twice; valid: once"};
  }
  return {};
}

Result<void> refuse_conflicts(const Job& job, const Settings& settings) {
  const auto location = [&](const char* key) { return location_of(settings, key); };
  const auto& options = job.train.job;
  if (options.checkpoint_every > 0 && job.checkpoint.empty())
    return Error{location("checkpoint-every") + ": needs the name of a file: --checkpoint FILE"};
  if (job.accepts_missing_checksum && job.resume.empty() && job.init.empty())
    return Error{location("trust-file") +
                 ": needs the name of a file: --resume FILE or --init FILE"};
  if (!job.init.empty() && !job.resume.empty())
    return Error{location("init") + " and " + location("resume") +
                 " exclude each other, because a checkpoint has its own parameters; valid: one of "
                 "them"};
  if (job.evaluate_every == core::Step{0}) {
    const std::string unused =
        ": has no effect with eval-every 0; valid: eval-every of 1 or more, or ";
    if (job.patience > 0) return Error{location("patience") + unused + "patience 0"};
    if (job.keep == Keep::best) return Error{location("keep") + unused + "keep last"};
  }
  return check_shards(options.shards, options.mode, settings);
}

/// Sets the barrier of a job that names none: bsp if the exchange is itself the barrier, else the
/// default one, with a sample size of at most the number of other workers.
void set_default_barrier(actor::JobOptions& options) {
  if (core::exchange_type(options.exchange).is_barrier) options.barrier = {barrier::Bsp{}};
  auto& sample = options.barrier.sample;
  if (sample && options.workers > 0) sample = std::min(*sample, options.workers - 1);
}

/// Adds the barriers of the user's program to those that the error lists as valid, if the job's
/// barrier needs every worker's step and no member knows all steps in the job's mode.
Error add_user_barriers(Error error, const actor::JobOptions& options, const Registry& registry) {
  if (core::keeps_steps_centrally(options.mode) || !barrier::needs_every_step(options.barrier))
    return error;
  for (const auto& rule : registry.rules())
    error.message += "; also valid: " + barrier::print(barrier::sampled(
                                            rule, std::min<std::size_t>(2, options.workers - 1)));
  return error;
}

}  // namespace

Result<Batch> parse_batch(std::string_view text) {
  constexpr std::uint64_t most = UINT32_MAX;
  if (!text.starts_with("dynamic")) {
    auto count = parse_count(text, 1, most);
    if (!count) return Error{count.error().message + ", or dynamic:total=N"};
    return Batch{*count, false};
  }
  const auto spec = Spec::parse(text);
  if (!spec) return spec.error();
  SpecReader reader{*spec};
  const std::uint64_t total = reader.count("total", 0, 1, most);
  if (auto done = reader.finish(); !done) return std::move(done).error();
  if (spec->name != "dynamic" || total == 0)
    return Error{"'" + std::string{text} +
                 "' is not a batch; valid: a whole number >= 1, or dynamic:total=N with N >= 1"};
  return Batch{total, true};
}

Result<Job> make_job(const Settings& settings, const Registry& registry) {
  if (auto once = refuse_repeats(settings); !once) return std::move(once).error();
  Job job;
  for (const Setting& setting : settings)
    if (auto done = find_key(setting.key)->set({job, registry, setting.text}); !done)
      return add_location_of(setting, std::move(done).error());
  if (auto fits = refuse_conflicts(job, settings); !fits) return std::move(fits).error();
  auto& options = job.train.job;
  if (location_of(settings, "barrier").empty()) set_default_barrier(options);
  if (!job.epochs && options.steps == barrier::unlimited && !options.time && !options.until)
    job.epochs = epochs_default, job.has_default_length = true;
  // A job must have a limit. `epochs` is one too, but it is not yet converted to steps: here one
  // step stands for it.
  auto limited = options;
  if (job.epochs) limited.steps = 1;
  if (auto valid = actor::check(limited); !valid)
    return add_location(add_user_barriers(std::move(valid).error(), options, registry), settings);
  return job;
}

Result<void> check_shards(std::size_t shards, core::Mode mode, const Settings& settings) {
  if (shards == 0 || core::has_servers(mode)) return {};
  return Error{location_of(settings, "shards") +
               ": peer mode has no servers, every worker owns a part of the model; valid there: "
               "no shards, or mode central or hybrid"};
}

Error add_location(Error error, const Settings& settings) {
  std::string& message = error.message;
  const bool dashed = message.starts_with("--");
  const std::string word = message.substr(0, message.find_first_of(" =:")).substr(dashed ? 2 : 0);
  if (const std::string location = location_of(settings, word); !location.empty()) {
    if (message.starts_with(location)) return error;
    if (message.starts_with(word + ": ")) message.erase(0, word.size() + 2);
    return std::move(error).within(location);
  }
  if (word == "barrier" || word == "recheck")
    for (const char* key : {"workers", "mode"})
      if (const std::string other = location_of(settings, key); !other.empty())
        return std::move(error).within(other);
  return error;
}

}  // namespace starling::program
