#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "starling/base/input.hpp"
#include "starling/models/data/formats/input_file.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

constexpr std::size_t pixels = 1024;
constexpr std::size_t channels = 3;
constexpr std::size_t record_bytes = 1 + channels * pixels;
constexpr unsigned classes = 10;
/// Before reading, memory is reserved for the records of at most this number of bytes of files.
constexpr std::uint64_t reserved_bytes_max = std::uint64_t{1} << 30U;

using Record = std::array<std::byte, record_bytes>;

Error error_at(const InputFile& file, std::size_t record, const std::string& what) {
  return Error{file.path() + ": record " + std::to_string(record) + " " + what};
}

/// Appends the record's image. In the file each colour is a separate plane of pixels; in the table
/// the three colours of a pixel follow each other.
void append_image(const Record& record, std::vector<float>& values) {
  for (std::size_t pixel = 0; pixel < pixels; ++pixel)
    for (std::size_t c = 0; c < channels; ++c) {
      const auto byte = std::to_integer<unsigned>(record[1 + c * pixels + pixel]);
      values.push_back(static_cast<float>(byte) / 255);
    }
}

/// Appends the images of a file to `values` and its labels to `labels`.
Result<void> append_file(const std::string& path, ReadBudget& budget, std::vector<float>& values,
                         std::vector<float>& labels) {
  auto file = InputFile::open(path);
  if (!file) return std::move(file).error();
  Record record{};
  for (std::size_t number = 1;; ++number) {
    const auto got = file->read(record);
    if (!got) return got.error();
    if (*got == 0 && number == 1) return Error{path + ": is empty"};
    if (*got == 0) return {};
    if (*got < record_bytes)
      return error_at(*file, number,
                      "ends too early, after " + std::to_string(*got) + " of " +
                          std::to_string(record_bytes) + " bytes");
    const auto label = std::to_integer<unsigned>(record[0]);
    if (label >= classes)
      return error_at(*file, number, "has the label " + std::to_string(label) + "; valid: 0 to 9");
    const std::uint64_t held = (values.size() + labels.size()) * sizeof(float);
    if (auto fits = budget.check_growth(held); !fits) return fits;
    append_image(record, values);
    labels.push_back(static_cast<float>(label));
  }
}

/// Estimates the number of records from the sizes of the files. The true number may be larger if
/// there are gzip files or pipes, or if the files have more than 1 GiB together.
std::size_t estimate_records(const std::vector<std::string>& files) {
  std::uint64_t bytes = 0;
  for (const std::string& path : files) {
    std::error_code fault;
    const std::uint64_t size = std::filesystem::file_size(path, fault);
    if (!fault) bytes += std::min(size, reserved_bytes_max);
  }
  return std::min(bytes, reserved_bytes_max) / record_bytes;
}

}  // namespace

Result<RawTable> read_cifar10(const Cifar10Source& source) {
  RawTable raw{.source = source.files.front(), .features = channels * pixels};
  std::vector<float> values;
  ReadBudget budget{source.files.front()};
  const std::size_t estimate = estimate_records(source.files) * raw.features;
  if (auto fits = budget.check_total(estimate * sizeof(float)); !fits)
    return std::move(fits).error();
  values.reserve(estimate);
  for (const std::string& path : source.files)
    if (auto read = append_file(path, budget, values, raw.labels); !read)
      return std::move(read).error();
  values.shrink_to_fit();
  raw.x = Table::Dense{std::move(values)};
  raw.labelling = Labelling{.classes = classes, .first_label = 0, .is_signed = false};
  return raw;
}

}  // namespace starling::models
