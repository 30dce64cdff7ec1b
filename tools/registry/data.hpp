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
  /// At most one of `test`, `split` and `holdout` is set. With none, a fifth of the data is held
  /// out if the data can be divided.
  std::optional<std::string> test = std::nullopt;
  std::optional<std::uint64_t> split = std::nullopt;
  std::optional<double> holdout = std::nullopt;
  std::uint64_t seed = 1;
  /// Absent: scale_of() chooses one.
  std::optional<models::Scale> scale = std::nullopt;
};

struct TrainAndTest {
  AnyData train;
  /// Absent if no test data was named and a user's own data cannot be divided.
  std::optional<AnyData> test;
};

/// Refuses a text that does not describe a source. Reads no data.
[[nodiscard]] Result<void> check_data(const Registry& registry, const std::string& text);

/// Returns the files that a source reads. For a user's own source: the options that name a regular
/// file.
[[nodiscard]] std::vector<std::string> files_in(const Registry& registry, const std::string& text);

/// Loads the data to train on and to test on. An error begins with `data:`, `test:` or the flag
/// that it is about.
[[nodiscard]] Result<TrainAndTest> load_data(const Registry& registry, const DataRequest& request);

/// Returns the scale that the request asks for. Without one, and if the recipe wants standardised
/// features: `standard` for text files, and for NumPy arrays unless all of `train` is between 0 and
/// 1, as in images; else none, because images and generated data have a common scale already.
[[nodiscard]] models::Scale scale_of(const DataRequest& request, const models::Recipe& recipe,
                                     const AnyData& train);

/// Scales the data by the statistics of the training part. Refuses data that are not tables, unless
/// the scale is none.
[[nodiscard]] Result<TrainAndTest> scale_data(models::Scale how, TrainAndTest data);

/// Scales `data` by the scaling that `shape`, the training data without rows, holds. Refuses data
/// with another number of features.
[[nodiscard]] Result<AnyData> scale_like(const models::Table& shape, const AnyData& data);

/// Loads all samples of one source, as for training.
[[nodiscard]] Result<AnyData> load_whole(const Registry& registry, const std::string& text,
                                         std::uint64_t seed);

/// Loads all samples of one source to test a model that was trained with `seed`. Generators give
/// samples that training with `seed` does not use. Labels are read as those of `shape`, the
/// training data without rows, if it is given; a file that has only as many columns as `shape` has
/// features is taken to have no labels.
[[nodiscard]] Result<AnyData> load_unseen(const Registry& registry, const std::string& text,
                                          std::uint64_t seed,
                                          const std::optional<models::Table>& shape);

/// Refuses a table without labels. A model can predict such data, but cannot be trained or tested
/// on it.
[[nodiscard]] Result<void> check_labels(const AnyData& data, const std::string& text);

/// Returns the default model for the data; empty if the data is of a user's own type.
[[nodiscard]] std::string suitable_model(const std::string& text, const AnyData& data);

/// The same file with its labels read otherwise: classes as real targets, or whole numbers as
/// classes.
struct OtherTask {
  std::string source;
  /// A table of that shape, without rows.
  AnyData shape;
};

/// Returns the other task's source; nothing if the source has no such choice.
[[nodiscard]] std::optional<OtherTask> other_task(const std::string& text, const AnyData& data);

/// Returns a text such as "20000 rows, 784 features, 10 classes".
[[nodiscard]] std::string describe(const AnyData& data);

/// Returns a hash of all values and labels of a table; of other data, a hash of its size.
[[nodiscard]] std::uint64_t fingerprint(const AnyData& data);

}  // namespace starling::program
