#include "starling/models/tabular/batches.hpp"

namespace starling::models {

std::vector<std::uint32_t> sort_unique(std::vector<std::uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string describe_labels(std::size_t classes) {
  if (classes == 0) return "real targets";
  return std::to_string(classes) + (classes == 1 ? " class" : " classes");
}

Result<void> check_data_shape(std::string_view name, const DataShape& built, const Table& data) {
  const std::string model{name};
  if (data.is_sparse() != built.is_sparse)
    return Error{model + " was built for " + (built.is_sparse ? "sparse" : "dense") +
                 " rows, but the data has " + (built.is_sparse ? "dense" : "sparse") + " ones"};
  const bool features_fit =
      built.is_sparse ? data.features() <= built.features : data.features() == built.features;
  if (!features_fit)
    return Error{model + " was built for " + std::to_string(built.features) +
                 " features, but the data has " + std::to_string(data.features()) +
                 (built.is_sparse ? "; train with features=" + std::to_string(data.features()) +
                                        " or more, as in libsvm:FILE,features=N"
                                  : "")};
  if ((data.classes() == 0) != (built.classes == 0) || data.classes() > built.classes)
    return Error{model + " was built for " + describe_labels(built.classes) +
                 ", but the data has " + describe_labels(data.classes())};
  if (auto valid = check_classes(data); !valid) return std::move(valid).error().within(name);
  return {};
}

}  // namespace starling::models
