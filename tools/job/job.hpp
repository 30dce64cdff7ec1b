/// A training job as the user asked for it: the values of flags and of a job file, with types and
/// defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "starling/actor/train/train_options.hpp"
#include "starling/base/result.hpp"
#include "starling/models/device.hpp"
#include "starling/tools/files/weights.hpp"
#include "starling/tools/job/model_selection.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// The setting `batch`.
struct Batch {
  /// The number of samples of one step: of one worker or, if the batches are dynamic, of all.
  std::size_t count = 0;
  bool is_dynamic = false;
};

/// Reads "N" or "dynamic:total=N", where N is from 1 to 2^32 - 1.
[[nodiscard]] Result<Batch> parse_batch(std::string_view text);

struct Job {
  DataRequest data;
  /// Empty: default_model() chooses one.
  std::string model;
  std::optional<ElementType> element_type = std::nullopt;
  models::Device device = {};
  /// The options of training, among them what ends the job: the limits of steps and of time, and
  /// `until`, the target of an evaluation. The step limit does not include `epochs`, which can be
  /// converted to steps only once the data is loaded.
  actor::TrainOptions train = {.job = {}, .optimizer = models::Adam{.lr = 0.005}, .batch = 32};
  /// Passes over the training data after which the job ends.
  std::optional<double> epochs = std::nullopt;
  /// True if no limit was given: the job makes `epochs_default` passes over the data, and at least
  /// as many steps as the model's recipe says.
  bool has_default_length = false;
  /// Steps between two evaluations; 0: only at the end. Absent: the steps of one pass over the
  /// training data, but in a job that only steps or epochs limit, at least a hundredth of its
  /// steps.
  std::optional<core::Step> evaluate_every = std::nullopt;
  /// Ends the job after this number of evaluations in a row without a better test loss; 0: never.
  std::size_t patience = 0;
  /// The model to save and report. Absent: the best one if `patience` is set, else the last one.
  std::optional<Keep> keep = std::nullopt;

  /// The job's name on a cluster. Empty: the command that submits the job chooses one.
  std::string name;

  /// Paths of files to write and read; each is empty if the user did not name the file.
  std::string save;
  std::string checkpoint;
  std::string resume;
  /// A saved model; its parameters are the job's initial parameters.
  std::string init;
  /// True if the files `resume` and `init` may lack a checksum.
  bool accepts_missing_checksum = false;
  std::string metrics;
  std::string report;
  std::string trace;

  /// True if the summary is printed as JSON.
  bool json = false;
  /// True if neither progress nor notes on settings without effect are shown.
  bool quiet = false;
};

/// The passes over the training data of a job for which no limit is given.
inline constexpr double epochs_default = 10;

/// Makes a job from its settings. The error for the first bad setting begins with its location.
[[nodiscard]] Result<Job> make_job(const Settings& settings, const Registry& registry);

/// Refuses a number of shards in a mode that has no servers. `shards` is 0 if the user gave no
/// number.
[[nodiscard]] Result<void> check_shards(std::size_t shards, core::Mode mode,
                                        const Settings& settings);

/// Puts the location of a setting before an error about it, for example before an error of
/// actor::check() about a combination of settings. The first word of the error names the setting.
/// If that setting is `barrier` or `recheck` and the user did not set it, then its default does not
/// fit `workers` or `mode`; the location is that of the first of these two that the user set.
/// Returns the error unchanged if the user set none of the settings named here.
[[nodiscard]] Error add_location(Error error, const Settings& settings);

}  // namespace starling::program
