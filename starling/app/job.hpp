/// A training job as asked for: what flags and a job file say, with types and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/app/data.hpp"
#include "starling/app/registry.hpp"
#include "starling/app/selection.hpp"
#include "starling/app/settings.hpp"
#include "starling/app/weights.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/live/train_options.hpp"
#include "starling/models/device.hpp"

namespace starling::app {

struct Job {
  DataRequest data;
  /// Empty: the one that suits the data.
  std::string model;
  std::optional<ElementType> element_type = std::nullopt;
  models::Device device = {};
  /// Steps, time and target are here; steps are still without those of `epochs`.
  live::TrainOptions train = {.job = {}, .optimizer = models::Adam{.lr = 0.005}, .batch = 32};
  std::optional<double> epochs = std::nullopt;
  /// No limit was given: the epochs are the default, and the model's recipe says what else.
  bool has_default_length = false;
  /// Steps between evaluations; absent: an epoch.
  std::optional<core::Step> evaluate_every = std::nullopt;
  /// Evaluations without a better test loss that end the job; 0: it goes on.
  std::size_t patience = 0;
  /// Absent: the best where patience ends the job, else the last.
  std::optional<Keep> keep = std::nullopt;

  /// Its name on a cluster; empty: the cluster chooses.
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

/// Reads every setting. The first bad one is refused with its place.
[[nodiscard]] Result<Job> make_job(const Settings& settings, const Registry& registry);

/// Refuses shards where the mode has no servers; 0 is none asked for.
[[nodiscard]] Result<void> check_shards(std::size_t shards, core::Mode mode,
                                        const Settings& settings);

/// What check() and the like say about a combination, led by the places of the settings that it
/// speaks of.
[[nodiscard]] Error placed(Error error, const Settings& settings);

}  // namespace starling::app
