/// A model of any type over data of any type: what the program does with it, and no more. Built-in
/// models and a user's own have this one interface. Immutable; any thread may call it.
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

/// The outputs of a model for each sample, before it decides.
struct Scores {
  std::size_t columns = 0;
  models::Link link = models::Link::none;
  /// Samples x columns.
  std::vector<float> values;
};

/// Where a model is computed; see PlacedNet.
struct PlacedModel {
  /// Null where the model itself does.
  std::shared_ptr<const AnyModel> model;
  std::string device;
  std::string note = {};
};

class AnyModel {
 public:
  virtual ~AnyModel() = default;

  /// Returns the text that names this very model in a job file.
  [[nodiscard]] virtual std::string print() const = 0;
  [[nodiscard]] virtual ElementType element_type() const = 0;
  [[nodiscard]] virtual std::vector<models::Parameter> parameters() const = 0;
  [[nodiscard]] virtual models::Recipe recipe() const = 0;
  [[nodiscard]] virtual core::Layout layout(const actor::JobOptions& job) const = 0;

  /// Refuses data of another type or shape, with the reason. The functions below require data that
  /// were accepted.
  [[nodiscard]] virtual Result<void> accepts(const AnyData& data) const = 0;
  /// Refuses steps of so many samples, with the reason.
  [[nodiscard]] virtual Result<void> accepts_batch(std::size_t samples) const = 0;
  /// The same model on that device, for batches of `rows`. Errors as place()'s, and a model that is
  /// no net in float32.
  [[nodiscard]] virtual Result<PlacedModel> on(const models::Device& device,
                                               std::size_t rows) const = 0;
  [[nodiscard]] virtual Result<actor::Outcome> train(const AnyData& data, const AnyData* test,
                                                     const actor::TrainOptions& options) const = 0;
  /// The same on the caller's thread alone, without an engine: each call is one step and returns
  /// the mean loss over its batch. `data` outlives it, one thread at a time calls it.
  [[nodiscard]] virtual std::function<double()> make_loop(
      const AnyData& data, const models::LoopOptions& options) const = 0;
  /// The ranges of such a job before its first step. May take long: values are drawn.
  [[nodiscard]] virtual Result<std::vector<core::RangeState>> initial_state(
      const AnyData& data, const actor::TrainOptions& options) const = 0;
  /// Makes this node's part of the same job on several nodes.
  [[nodiscard]] virtual Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      const AnyData& data, const actor::TrainOptions& options,
      actor::LocalJobOptions local_options) const = 0;
  /// Simulates the job in virtual time. The curve's figures are those of evaluate() over `test`, or
  /// over `data` where it is null, and `error`, the normalised one, where it is known.
  [[nodiscard]] virtual Result<sim::ProtocolResult> simulate(
      const AnyData& data, const AnyData* test, const sim::LearnOptions& options) const = 0;
  /// The figures that evaluate() returns, as far as an untrained model and one sample tell.
  [[nodiscard]] virtual models::Metrics try_metrics(const AnyData& data) const = 0;
  [[nodiscard]] virtual models::Metrics evaluate(const Weights& w, const AnyData& data) const = 0;
  /// One value a sample; nothing where the model cannot predict.
  [[nodiscard]] virtual std::optional<std::vector<float>> predict(const Weights& w,
                                                                  const AnyData& data) const = 0;
  /// The outputs that it decides by; nothing where the model does not tell.
  [[nodiscard]] virtual std::optional<Scores> scores(const Weights& w,
                                                     const AnyData& data) const = 0;
  /// ||w - w*|| / ||w0 - w*|| where the data knows the parameters w* that it was made from; w0 is
  /// the fresh model of `seed`.
  [[nodiscard]] virtual std::optional<double> normalised_error(const Weights& w,
                                                               const AnyData& data,
                                                               std::uint64_t seed) const = 0;
  /// The parameter vector that a job's ranges hold.
  [[nodiscard]] virtual Weights collect(const actor::JobOptions& job,
                                        std::span<const core::RangeState> states) const = 0;
};

}  // namespace starling::program
