/// Loads the data that a job asks for by `--data`, `--test`, `--split` and `--holdout`. Blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/scaling.hpp"
#include "starling/models/optimizer/recipe.hpp"
#include "starling/models/table.hpp"
#include "starling/tools/registry/any_data.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

struct DataRequest {
  std::string data = "digits:n=30000";
  /// At most one of these three; with none, a fifth is held out where the data can be divided.
  std::optional<std::string> test = std::nullopt;
  std::optional<std::uint64_t> split = std::nullopt;
  std::optional<double> holdout = std::nullopt;
  std::uint64_t seed = 1;
  /// Absent: what suits data and model.
  std::optional<models::Scale> scale = std::nullopt;
};

struct TrainAndTest {
  AnyData train;
  /// Absent where data of a user's own cannot be divided and no test was named.
  std::optional<AnyData> test;
};

/// Refuses text that names no source, before anything is read.
[[nodiscard]] Result<void> check_data(const Registry& registry, const std::string& text);

/// Returns the files that a source is read from; for a user's own source, every option that names a
/// regular file.
[[nodiscard]] std::vector<std::string> files_in(const Registry& registry, const std::string& text);

/// Loads the data to train on and to test on. Errors are led by `data:` or `test:`, or by the flag
/// that they are about.
[[nodiscard]] Result<TrainAndTest> load_data(const Registry& registry, const DataRequest& request);

/// How tables of this source are scaled for a model of this recipe, where the request does not say:
/// those of text, and NumPy's arrays unless all of `train` lies between 0 and 1, as images do.
/// Other images and generated data have one scale already.
[[nodiscard]] models::Scale scale_of(const DataRequest& request, const models::Recipe& recipe,
                                     const AnyData& train);

/// Returns the data scaled by the statistics of the training part. Refuses data that are no tables,
/// where the scale is another than none.
[[nodiscard]] Result<TrainAndTest> scaled(models::Scale how, TrainAndTest data);

/// Returns `data` scaled as the training data of that shape were. Refuses data of other features.
[[nodiscard]] Result<AnyData> scaled_as(const models::Table& shape, const AnyData& data);

/// Loads all of one source, as training sees it.
[[nodiscard]] Result<AnyData> load_whole(const Registry& registry, const std::string& text,
                                         std::uint64_t seed);

/// All of one source, for a model that was trained with `seed`: generators give samples that no
/// training has seen; tables have their labels read as those of `shape`, the training data, where
/// it is given. A file with as many columns as that has features is taken to have no labels.
[[nodiscard]] Result<AnyData> load_unseen(const Registry& registry, const std::string& text,
                                          std::uint64_t seed,
                                          const std::optional<models::Table>& shape);

/// Refuses tables without labels, which can only be predicted.
[[nodiscard]] Result<void> check_labels(const AnyData& data, const std::string& text);

/// The model that suits the data where none is named.
[[nodiscard]] std::string suitable_model(const std::string& text, const AnyData& data);

/// The same file with its labels read the other way, as real targets or as classes.
struct OtherTask {
  std::string source;
  /// A table of that shape, without rows.
  AnyData shape;
};

/// Returns the other task's source; nothing where the source has no such choice.
[[nodiscard]] std::optional<OtherTask> other_task(const std::string& text, const AnyData& data);

/// "20000 rows, 784 features, 10 classes".
[[nodiscard]] std::string describe(const AnyData& data);

/// Returns a hash that changes with any value or label of a table; for other data, with its size.
[[nodiscard]] std::uint64_t fingerprint(const AnyData& data);

}  // namespace starling::program
