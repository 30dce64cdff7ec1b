/// Trained models as files: safetensors whose metadata say which model they are and what they were
/// trained on, so that the file alone is enough to evaluate and to predict. Blocking.
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

/// The prefix of the names of Starling's own tensors, beside a model's.
inline constexpr const char* own_prefix = "starling.";

/// Refuses a model that cannot be laid out, cannot be kept in a file, or that this machine's memory
/// cannot hold.
[[nodiscard]] Result<void> check_parameters(const AnyModel& model);

/// A file's notes on its model.
struct ModelNotes {
  std::string model;
  ElementType element_type = ElementType::float32;
  /// The data that it was trained on.
  DataRequest data;
  /// The shape of that data where it was a table, without rows.
  std::optional<models::Table> shape = std::nullopt;
  /// Says which of its job's models it is, and the workers' mean step when it was read; empty and 0
  /// in a checkpoint.
  std::string kept = {};
  double step = 0;
};

[[nodiscard]] ModelNotes notes_of(const AnyModel& model, const DataRequest& request,
                                  const AnyData& data);

[[nodiscard]] safetensors::Metadata to_metadata(const ModelNotes& notes);

/// One tensor for each parameter, as views into `w`, and how features were scaled, as views into
/// `notes`.
[[nodiscard]] std::vector<safetensors::View> to_tensors(const ModelNotes& notes,
                                                        const AnyModel& model, const Weights& w);

/// Replaces `path` as a whole or leaves it as it was.
[[nodiscard]] Result<void> save_model(const std::string& path, const ModelNotes& notes,
                                      const AnyModel& model, const Weights& w);

/// A file's content, not yet a model.
struct StoredModel {
  std::string path;
  ModelNotes notes;
  safetensors::File file;
};

/// Says whether a file must have a checksum, so that damage cannot pass for content.
enum class Trust { checked, any };

[[nodiscard]] Result<StoredModel> read_model(const std::string& path, Trust trust);

/// Reads every parameter of `model` from the file; refuses tensors that are missing, of another
/// shape or type, or not finite.
[[nodiscard]] Result<Weights> weights_in(const StoredModel& stored, const AnyModel& model);

/// Makes the model of the file, which must accept `data`; errors name the data by `source`.
[[nodiscard]] Result<std::shared_ptr<const AnyModel>> model_in(const Registry& registry,
                                                               const StoredModel& stored,
                                                               const AnyData& data,
                                                               const std::string& source);

}  // namespace starling::program
