/// A training job as the user asked for it: the values of flags and of a job file, with types and
/// defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/actor/train/train_options.hpp"
#include "starling/base/result.hpp"
#include "starling/models/device.hpp"
#include "starling/tools/files/weights.hpp"
#include "starling/tools/job/model_selection.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

struct Job {
  DataRequest data;
  /// Empty: suitable_model() chooses one.
  std::string model;
  std::optional<ElementType> element_type = std::nullopt;
  models::Device device = {};
  /// Holds steps, time and target. `epochs` are not yet converted to steps.
  actor::TrainOptions train = {.job = {}, .optimizer = models::Adam{.lr = 0.005}, .batch = 32};
  /// Passes over the training data that end the job.
  std::optional<double> epochs = std::nullopt;
  /// True if no limit was given: the job makes `epochs_default` passes over the data, and at least
  /// as many steps as the model's recipe says.
  bool has_default_length = false;
  /// Steps between evaluations. Absent: one pass over the data, or a hundredth of a job that only
  /// its steps can end, if that is more.
  std::optional<core::Step> evaluate_every = std::nullopt;
  /// Ends the job after so many evaluations in a row without a better test loss; 0: never.
  std::size_t patience = 0;
  /// Absent: the best model if `patience` is set, else the last one.
  std::optional<Keep> keep = std::nullopt;

  /// The job's name on a cluster. Empty: the command that submits the job chooses one.
  std::string name;

  /// Paths of files to write and read; empty if not asked for.
  std::string save;
  std::string checkpoint;
  std::string resume;
  /// A saved model with whose parameters the job begins.
  std::string init;
  /// True if the files `resume` and `init` may lack a checksum.
  bool trusts_file = false;
  std::string metrics;
  std::string report;

  bool json = false;
  bool quiet = false;
};

/// Passes over the training data if no limit is given.
inline constexpr double epochs_default = 10;

/// Reads every setting. The error for the first bad one begins with its location.
[[nodiscard]] Result<Job> make_job(const Settings& settings, const Registry& registry);

/// Refuses a number of shards in a mode that has no servers; 0 means that none was given.
[[nodiscard]] Result<void> check_shards(std::size_t shards, core::Mode mode,
                                        const Settings& settings);

/// Begins an error, such as one of actor::check() about a combination of settings, with the
/// location of the setting that it names.
[[nodiscard]] Error add_location(Error error, const Settings& settings);

}  // namespace starling::program
