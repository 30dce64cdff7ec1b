/// A training job as asked for: the values of flags and of a job file, with types and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/actor/train/train_options.hpp"
#include "starling/base/result.hpp"
#include "starling/models/device.hpp"
#include "starling/tools/files/weights.hpp"
#include "starling/tools/job/selection.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

struct Job {
  DataRequest data;
  /// Empty: the one that suits the data.
  std::string model;
  std::optional<ElementType> element_type = std::nullopt;
  models::Device device = {};
  /// Steps, time and target are here; `epochs` are not turned into steps yet.
  actor::TrainOptions train = {.job = {}, .optimizer = models::Adam{.lr = 0.005}, .batch = 32};
  std::optional<double> epochs = std::nullopt;
  /// True where no limit was given: the default epochs apply, and at least the steps of the model's
  /// recipe.
  bool has_default_length = false;
  /// Steps between evaluations; absent: an epoch.
  std::optional<core::Step> evaluate_every = std::nullopt;
  /// The evaluations without a better test loss that end the job; 0: it goes on.
  std::size_t patience = 0;
  /// Absent: the best where patience ends the job, else the last.
  std::optional<Keep> keep = std::nullopt;

  /// Its name on a cluster; empty: the command that submits it chooses one.
  std::string name;

  /// Files; empty where not asked for.
  std::string save;
  std::string checkpoint;
  std::string resume;
  /// A saved model whose parameters are the first ones.
  std::string init;
  /// True where `resume` or `init` may be without a checksum.
  bool trusts_file = false;
  std::string metrics;
  std::string report;

  bool json = false;
  bool quiet = false;
};

/// Passes over the data where no limit is given.
inline constexpr double epochs_default = 10;

/// Reads every setting. Refuses the first bad one with its place.
[[nodiscard]] Result<Job> make_job(const Settings& settings, const Registry& registry);

/// Refuses shards where the mode has no servers; 0 means that none were asked for.
[[nodiscard]] Result<void> check_shards(std::size_t shards, core::Mode mode,
                                        const Settings& settings);

/// Leads an error, such as that of check() about a combination, with the place of a setting that it
/// is about.
[[nodiscard]] Error placed(Error error, const Settings& settings);

}  // namespace starling::program
