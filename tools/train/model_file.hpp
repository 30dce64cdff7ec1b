/// Writes and reads trained models as safetensors files. The metadata describes the model and its
/// training data, so that the file alone is enough to evaluate and to predict. Blocking.
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

/// Refuses a model with invalid parameters, with parameters whose names a file cannot hold, or that
/// is larger than this machine's memory.
[[nodiscard]] Result<void> check_parameters(const AnyModel& model);

/// The description of a model in its file's metadata.
struct ModelNotes {
  std::string model;
  ElementType element_type = ElementType::float32;
  /// The data that it was trained on.
  DataRequest data;
  /// The training data without its rows, if it was a table.
  std::optional<models::Table> shape = std::nullopt;
  /// "best" or "last": which of the job's models this is; empty in a checkpoint.
  std::string kept = {};
  /// The workers' mean step when the model was read from their job; 0 in a checkpoint.
  double step = 0;
};

[[nodiscard]] ModelNotes notes_of(const AnyModel& model, const DataRequest& request,
                                  const AnyData& data);

[[nodiscard]] safetensors::Metadata to_metadata(const ModelNotes& notes);

/// Returns one tensor for each parameter, as views into `w`, and the scaling of the features, as
/// views into `notes`.
[[nodiscard]] std::vector<safetensors::View> to_tensors(const ModelNotes& notes,
                                                        const AnyModel& model, const Weights& w);

/// Replaces `path` as a whole or leaves it as it was.
[[nodiscard]] Result<void> save_model(const std::string& path, const ModelNotes& notes,
                                      const AnyModel& model, const Weights& w);

/// The content of a model file, from which no model was made yet.
struct StoredModel {
  std::string path;
  ModelNotes notes;
  safetensors::File file;
};

/// Whether a file must have a checksum, so that damage is noticed.
enum class Trust { checked, any };

[[nodiscard]] Result<StoredModel> read_model(const std::string& path, Trust trust);

/// Reads every parameter of `model` from the file. Refuses a tensor that is missing, of another
/// shape or type, or not finite.
[[nodiscard]] Result<Weights> weights_in(const StoredModel& stored, const AnyModel& model);

/// Makes the file's model. Refuses data that the model does not accept; errors call the data
/// `source`.
[[nodiscard]] Result<std::shared_ptr<const AnyModel>> model_in(const Registry& registry,
                                                               const StoredModel& stored,
                                                               const AnyData& data,
                                                               const std::string& source);

}  // namespace starling::program
