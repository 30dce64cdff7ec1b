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
  /// The source of the training data, as `--data` has it.
  std::string data = "digits:n=30000";
  /// The test data: another source (`test`), all samples but the first `split`, or the share
  /// `holdout` of random samples. At most one of the three is set. If none is set, 20 % of the data
  /// is held out, unless the data cannot be divided.
  std::optional<std::string> test = std::nullopt;
  std::optional<std::uint64_t> split = std::nullopt;
  std::optional<double> holdout = std::nullopt;
  std::uint64_t seed = 1;
  /// If absent, scale_of() chooses a scale.
  std::optional<models::Scale> scale = std::nullopt;
};

struct TrainAndTest {
  AnyData train;
  /// Absent if the user named no test data and the data cannot be divided.
  std::optional<AnyData> test;
};

/// Returns an Error if `text` does not describe a source. Reads no data.
[[nodiscard]] Result<void> check_data(const Registry& registry, const std::string& text);

/// Returns the files that a source reads; of a source in `registry`, the options that name an
/// existing regular file.
[[nodiscard]] std::vector<std::string> files_in(const Registry& registry, const std::string& text);

/// Loads the training data and the test data, and fills missing numbers. An error begins with
/// `data:`, `test:` or the wrong flag.
[[nodiscard]] Result<TrainAndTest> load_data(const Registry& registry, const DataRequest& request);

/// Returns the scale of the request, if it has one. Else returns `standard` if the recipe wants
/// standardised features and `train` is from a text file, or is from NumPy arrays or a flow, is not
/// mapped, and has a feature outside of 0 to 1. Else returns `none`, because images and generated
/// data have a common scale already.
[[nodiscard]] models::Scale scale_of(const Registry& registry, const DataRequest& request,
                                     const models::Recipe& recipe, const AnyData& train);

/// Scales training and test data by the statistics of the training data. Returns an Error if the
/// data are not tables, or are mapped, unless the scale is `none`.
[[nodiscard]] Result<TrainAndTest> scale_data(models::Scale scale, TrainAndTest data);

/// Scales `data` as the training data was scaled; `shape` is the training data without its rows.
/// Returns an Error if the number of features differs, or if `data` is mapped and must be scaled.
[[nodiscard]] Result<AnyData> scale_like(const models::Table& shape, const AnyData& data);

/// Loads all samples of one source, as training with `seed` does.
[[nodiscard]] Result<AnyData> load_source(const Registry& registry, const std::string& text,
                                          std::uint64_t seed);

/// Loads all samples of one source to test a model that was trained with `seed`. A generator
/// returns other samples than load_source() with the same `seed`. If `shape`, the training data
/// without its rows, is given, labels are read in the same way as there, and a file with only as
/// many columns as `shape` has features counts as a file without labels. `training_text`, the
/// source of the training data, has the options that `text` leaves out (models::inherit_options()).
[[nodiscard]] Result<AnyData> load_test_data(const Registry& registry, const std::string& text,
                                             std::uint64_t seed,
                                             const std::optional<models::Table>& shape,
                                             const std::string& training_text);

/// Returns an Error for a table without labels: a model can predict such data, but cannot be
/// trained or tested on it. `text` is the source.
[[nodiscard]] Result<void> check_labels(const AnyData& data, const std::string& text);

/// Returns true if the source `text` is one of the registry, which hides a built-in one of the same
/// name.
[[nodiscard]] bool is_registered_source(const Registry& registry, const std::string& text);

/// A source that reads the same file, but its labels as the other kind: classes as real targets
/// (task=value), or whole numbers as classes (task=class).
struct OtherTask {
  std::string source;
  /// A table without rows that has the features and classes of that source.
  AnyData shape;
};

/// Returns the source `text`, which has loaded `data`, with the other value of its option `task`.
/// Returns nothing if the source has no such option, if `data` is not a table, if its classes have
/// names, or if its real targets are not whole numbers.
[[nodiscard]] std::optional<OtherTask> other_task(const std::string& text, const AnyData& data);

/// Returns a text such as "20000 rows, 784 features, 10 classes".
[[nodiscard]] std::string describe(const AnyData& data);

/// Returns a hash of all values and labels of a table, and of its scaling and encoding; of a mapped
/// table, a hash of all labels and of the values of at most 2,047 rows or 32 MiB. For data of
/// another type, returns a hash of its size and, if it has labels, of these.
[[nodiscard]] std::uint64_t fingerprint(const AnyData& data);

}  // namespace starling::program
