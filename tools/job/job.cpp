#include "starling/tools/job/job.hpp"

#include <algorithm>
#include <set>

#include "starling/base/check.hpp"
#include "starling/tools/job/keys.hpp"

namespace starling::program {
namespace {

/// Begins the error with the setting's location instead of the key's name, which the location
/// contains.
Error add_location_of(const Setting& setting, Error error) {
  const std::string own = setting.key + ": ";
  if (error.message.starts_with(own)) error.message.erase(0, own.size());
  return std::move(error).within(setting.location);
}

Result<void> refuse_repeats(const Settings& settings) {
  std::set<std::string> seen;
  for (const Setting& setting : settings) {
    const Key* key = find_key(setting.key);
    STARLING_CHECK(key != nullptr);
    if (key->kind != ValueType::texts && !seen.insert(setting.key).second)
      return Error{setting.location + ": is given twice"};
  }
  return {};
}

Result<void> refuse_clashes(const Job& job, const Settings& settings) {
  const auto location = [&](const char* key) { return location_of(settings, key); };
  const auto& options = job.train.job;
  if (options.checkpoint_every > 0 && job.checkpoint.empty())
    return Error{location("checkpoint-every") + ": needs the name of a file: --checkpoint FILE"};
  if (job.trusts_file && job.resume.empty() && job.init.empty())
    return Error{location("trust-file") +
                 ": needs the name of a file: --resume FILE or --init FILE"};
  if (!job.init.empty() && !job.resume.empty())
    return Error{location("init") + " and " + location("resume") +
                 " exclude each other, because a checkpoint has its own parameters; valid: one of "
                 "them"};
  if (job.evaluate_every == core::Step{0}) {
    const std::string never = ": is never looked at with eval-every 0; valid: eval-every of 1 or ";
    if (job.patience > 0) return Error{location("patience") + never + "more, or patience 0"};
    if (job.keep == Keep::best) return Error{location("keep") + never + "more, or keep last"};
  }
  return check_shards(options.shards, options.mode, settings);
}

/// Limits the sample size of the default barrier to the number of other workers.
void limit_sample_size(actor::JobOptions& options) {
  auto& sample = options.barrier.sample;
  if (sample && options.workers > 0) sample = std::min(*sample, options.workers - 1);
}

/// Adds the barriers of the user's program to the valid ones in an error, if the error is about a
/// barrier that needs every worker's step in a mode that does not know it.
Error add_user_barriers(Error error, const actor::JobOptions& options, const Registry& registry) {
  if (core::keeps_steps_centrally(options.mode) || !barrier::needs_every_step(options.barrier))
    return error;
  for (const auto& rule : registry.rules())
    error.message += "; also valid: " + barrier::print(barrier::sampled(
                                            rule, std::min<std::size_t>(2, options.workers - 1)));
  return error;
}

}  // namespace

Result<Job> make_job(const Settings& settings, const Registry& registry) {
  if (auto once = refuse_repeats(settings); !once) return std::move(once).error();
  Job job;
  for (const Setting& setting : settings)
    if (auto done = find_key(setting.key)->set({job, registry, setting.text}); !done)
      return add_location_of(setting, std::move(done).error());
  if (auto fits = refuse_clashes(job, settings); !fits) return std::move(fits).error();
  auto& options = job.train.job;
  if (location_of(settings, "barrier").empty()) limit_sample_size(options);
  if (!job.epochs && options.steps == barrier::finished && !options.time && !options.until)
    job.epochs = epochs_default, job.has_default_length = true;
  if (auto valid = actor::check([&] {
        auto limited = options;
        if (job.epochs) limited.steps = 1;
        return limited;
      }());
      !valid)
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
