/// The interface through which the program uses a model of any type over data of any type; each
/// type is built in or a user's own. Immutable. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/models/device.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/model.hpp"
#include "starling/models/optimizer/recipe.hpp"
#include "starling/models/training_loop.hpp"
#include "starling/tools/files/weights.hpp"
#include "starling/tools/registry/any_data.hpp"

namespace starling::core {
struct Layout;
struct RangeState;
}  // namespace starling::core
namespace starling::actor {
class LocalJob;
struct JobOptions;
struct Outcome;
struct LocalJobOptions;
struct TrainOptions;
}  // namespace starling::actor
namespace starling::sim {
struct LearnOptions;
struct ProtocolResult;
}  // namespace starling::sim

namespace starling::program {

class AnyModel;

/// The outputs from which a model derives its predictions, one row for each sample.
struct Scores {
  std::size_t columns = 0;
  models::Link link = models::Link::none;
  /// Shape: samples x columns, in row-major order.
  std::vector<float> values;
};

/// The result of AnyModel::put_on_device(); `device` and `note` are as in NetOnDevice.
struct ModelOnDevice {
  /// Null if the caller keeps using its own model, which computes on the CPU.
  std::shared_ptr<const AnyModel> model;
  std::string device;
  std::string note = {};
};

/// The part of a model that its files, and programs that follow its job, need to know.
class ModelDescription {
 public:
  virtual ~ModelDescription() = default;

  /// Returns the text of `--model` that makes an equal model for the same data.
  [[nodiscard]] virtual std::string print() const = 0;
  [[nodiscard]] virtual ElementType element_type() const = 0;
  [[nodiscard]] virtual std::vector<models::Parameter> parameters() const = 0;
  /// Returns the defaults with which this model is trained.
  [[nodiscard]] virtual models::Recipe recipe() const = 0;
  /// False for an algorithm whose own hooks apply its updates: it has no use for an optimiser, a
  /// schedule, weight decay, clipping, compression, batches and epochs.
  [[nodiscard]] virtual bool learns_by_gradients() const { return true; }
  /// Returns how a job divides the parameters into ranges.
  [[nodiscard]] virtual core::Layout layout(const actor::JobOptions& job) const = 0;
  /// Joins the values of a job's ranges to the parameter vector.
  [[nodiscard]] virtual Weights collect(const actor::JobOptions& job,
                                        std::span<const core::RangeState> states) const = 0;
};

class AnyModel : public ModelDescription {
 public:
  /// Returns an Error with the reason if the model cannot learn from data of this type or shape.
  /// The functions below require data for which there is no Error.
  [[nodiscard]] virtual Result<void> accepts(const AnyData& data) const = 0;
  /// Returns an Error with the reason if the model cannot compute a batch of `samples` samples.
  [[nodiscard]] virtual Result<void> accepts_batch(std::size_t samples) const = 0;
  /// Returns the same model on `device`, for batches of up to `rows` samples. Returns an Error if
  /// the device cannot be used (see put_on_device() in device.hpp), or if it is a CUDA device and
  /// the model is not a net of float32.
  [[nodiscard]] virtual Result<ModelOnDevice> put_on_device(const models::Device& device,
                                                            std::size_t rows) const = 0;
  /// Runs a training job in this process to its end. `test` may be null.
  [[nodiscard]] virtual Result<actor::Outcome> train(const AnyData& data, const AnyData* test,
                                                     const actor::TrainOptions& options) const = 0;
  /// Returns a function that trains on the caller's thread alone, without actors: each call makes
  /// one step and returns the mean loss over its batch. `data` must outlive the function. Not
  /// thread-safe.
  [[nodiscard]] virtual std::function<double()> make_stepper(
      const AnyData& data, const models::LoopOptions& options) const = 0;
  /// Returns the states of all ranges before a job's first step. May take long, because it draws
  /// the initial values of all parameters.
  [[nodiscard]] virtual Result<std::vector<core::RangeState>> initial_state(
      const AnyData& data, const actor::TrainOptions& options) const = 0;
  /// Makes this node's part of a job that runs on several nodes.
  [[nodiscard]] virtual Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      const AnyData& data, const actor::TrainOptions& options,
      actor::LocalJobOptions local_options) const = 0;
  /// Simulates the job in virtual time. Each point of the result's curve holds the metrics that
  /// evaluate() returns over `test` (over `data` if `test` is null). Its metric `error` is
  /// normalised_error(), and is absent if that returns nothing.
  [[nodiscard]] virtual Result<sim::ProtocolResult> simulate(
      const AnyData& data, const AnyData* test, const sim::LearnOptions& options) const = 0;
  /// Evaluates the untrained model on the first sample, or an algorithm on all of `data`, which it
  /// cannot divide. The result shows which metrics evaluate() returns.
  [[nodiscard]] virtual models::Metrics metrics_of_one_sample(const AnyData& data) const = 0;
  /// Returns the metrics of the parameters `w` over all of `data`.
  [[nodiscard]] virtual models::Metrics evaluate(const Weights& w, const AnyData& data) const = 0;
  /// Returns one prediction for each sample; nothing if the model cannot predict.
  [[nodiscard]] virtual std::optional<std::vector<float>> predict(const Weights& w,
                                                                  const AnyData& data) const = 0;
  /// Returns the scores from which the predictions derive; nothing if the model has no scores().
  [[nodiscard]] virtual std::optional<Scores> scores(const Weights& w,
                                                     const AnyData& data) const = 0;
  /// Returns ||w - w*|| / ||w0 - w*||, where w* are the parameters from which the data was
  /// generated and w0 are the initial parameters of `seed`. Returns nothing if the data was not
  /// generated from parameters of this model.
  [[nodiscard]] virtual std::optional<double> normalised_error(const Weights& w,
                                                               const AnyData& data,
                                                               std::uint64_t seed) const = 0;
};

}  // namespace starling::program
