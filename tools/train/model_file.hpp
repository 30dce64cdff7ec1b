/// Writes and reads trained models as safetensors files. The metadata describes the model and its
/// training data, so that nothing but the file is needed to evaluate it and to predict. Blocking.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/table.hpp"
#include "starling/tools/files/safetensors.hpp"
#include "starling/tools/files/weights.hpp"
#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// The prefix of the names of tensors that are not parameters of the model.
inline constexpr const char* own_prefix = "starling.";

/// Refuses a model with invalid parameters, a model with parameters whose names a file cannot hold,
/// and a model that is larger than this machine's memory.
[[nodiscard]] Result<void> check_parameters(const AnyModel& model);

/// The description of a model in its file's metadata.
struct ModelNotes {
  std::string model;
  ElementType element_type = ElementType::float32;
  /// The data on which the model was trained and tested.
  DataRequest data;
  /// The training data without its rows; absent if it was not a table.
  std::optional<models::Table> shape = std::nullopt;
  /// fingerprint() of the training data; absent if it was not a table, and in files of versions
  /// that did not save it.
  std::optional<std::uint64_t> train_hash = std::nullopt;
  /// Which of the job's models this is: "best" or "last"; empty in a checkpoint.
  std::string kept = {};
  /// The workers' mean step when the model was read from their job; 0 in a checkpoint.
  double step = 0;
};

/// Returns the notes of a model trained on `data`, which `request` asked for.
[[nodiscard]] ModelNotes notes_of(const AnyModel& model, const DataRequest& request,
                                  const AnyData& data);

[[nodiscard]] safetensors::Metadata to_metadata(const ModelNotes& notes);

/// Returns the file's tensors: one for each parameter, as views into `w`, and those of the
/// features' scaling, as views into `notes`.
[[nodiscard]] std::vector<safetensors::View> to_tensors(const ModelNotes& notes,
                                                        const ModelDescription& model,
                                                        const Weights& w);

/// Replaces `path` as a whole or leaves it as it was.
[[nodiscard]] Result<void> save_model(const std::string& path, const ModelNotes& notes,
                                      const ModelDescription& model, const Weights& w);

/// The content of a model file. model_in() makes the model.
struct StoredModel {
  std::string path;
  ModelNotes notes;
  safetensors::File file;
};

/// Which files read_model() accepts: only those with a checksum, so that damage is noticed, or any.
enum class Trust { checked, any };

/// Returns the notes in the metadata and the scaling tensors of `file`, without `kept` and `step`.
/// Errors call the file `path`. Refuses metadata that to_metadata() does not write.
[[nodiscard]] Result<ModelNotes> notes_in(const std::string& path, const safetensors::File& file);

/// Returns the tensors of the features' scaling, as views into `notes`; no tensors if the features
/// are not scaled.
[[nodiscard]] std::vector<safetensors::View> scaling_tensors(const ModelNotes& notes);

/// Reads a model file. Refuses a damaged file, and metadata that save_model() would not write.
[[nodiscard]] Result<StoredModel> read_model(const std::string& path, Trust trust);

/// Reads every parameter of `model` from the file. Refuses a tensor that is missing, of another
/// shape or type, or not finite.
[[nodiscard]] Result<Weights> weights_in(const StoredModel& stored, const AnyModel& model);

/// Makes the model that the file describes, without its parameters. Refuses data that the model
/// does not accept; the errors call this data `source`.
[[nodiscard]] Result<std::shared_ptr<const AnyModel>> model_in(const Registry& registry,
                                                               const StoredModel& stored,
                                                               const AnyData& data,
                                                               const std::string& source);

}  // namespace starling::program
