/// Prepares a job from its settings: loads the data, makes the model and runs all checks.
#pragma once

#include <cstdint>
#include <string>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Prepares a job. `job_file` is the job file from which settings were read; empty if there was
/// none. Unless the job is quiet, prints on stderr that it loads data, and which settings have no
/// effect. The error for the first wrong setting begins with its location.
[[nodiscard]] Result<PreparedRun> prepare(const Registry& registry, const Settings& settings,
                                          const std::string& job_file);

/// Refuses an output that cannot be written, or that would overwrite an input or another output.
/// The job's checkpoint may overwrite the one from which the job resumes.
[[nodiscard]] Result<void> check_files(const Registry& registry, const Job& job,
                                       const Settings& settings, const std::string& job_file);

/// Prints on stderr which settings of the barrier have no effect, unless the job is quiet.
void print_barrier_notes(const Job& job, const Settings& settings);

/// Prints on stderr that batches are smaller than the settings say because there are fewer samples,
/// unless the job is quiet.
void print_batch_note(const Job& job, const ResolvedJob& resolved, const Settings& settings);

/// The size of a job's data.
struct DataSize {
  std::uint64_t train_samples = 0;
  /// 0 without test data.
  std::uint64_t test_samples = 0;
  /// The training data as describe() prints them.
  std::string description = {};
};

/// Replaces all defaults that depend on the data or on the model by values.
[[nodiscard]] ResolvedJob resolve_job(const Job& job, const Settings& settings,
                                      const ModelDescription& model, const DataSize& data);

/// Refuses `patience` and `keep best` unless evaluations have a test loss: `has_loss` is true if
/// there are test data and the model computes a loss over them.
[[nodiscard]] Result<void> check_test_loss(const Job& job, const std::string& model,
                                           bool has_test_data, bool has_loss);

/// Refuses a barrier under which workers hand in early, if batches are dynamic or if the model's
/// batches cannot be divided (core::check_hand_ins()). If the model does not learn by gradients,
/// refuses every such barrier, and every barrier that needs the descent of the loss.
[[nodiscard]] Result<void> check_hand_ins(const AnyModel& model, const barrier::Barrier& barrier,
                                          bool dynamic_batches);

/// Refuses a compression rule that does not suit the model or the other options.
[[nodiscard]] Result<void> check_compression(const AnyModel& model,
                                             const actor::TrainOptions& options);

/// Refuses options of learning by gradients for an algorithm that does not learn by gradients.
[[nodiscard]] Result<void> check_gradient_options(const AnyModel& model, const Settings& settings);

/// Sets the optimiser, the weight decay and the schedule as the model's recipe says, each unless
/// the settings give it. If they give an optimiser other than the recipe's, does not change the
/// schedule either. Returns true if the recipe decides the schedule: a cosine over the whole job,
/// or a constant rate if the job has no limit of steps. `samples` is the number of training
/// samples. Requires: `options` has its final steps and batch.
[[nodiscard]] bool apply_recipe(const models::Recipe& recipe, actor::TrainOptions& options,
                                const Settings& settings, std::size_t samples);

}  // namespace starling::program
