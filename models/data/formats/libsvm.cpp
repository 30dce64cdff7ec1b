#include <algorithm>
#include <optional>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/cell.hpp"
#include "starling/models/data/formats/input_file.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

/// The largest index of a feature.
constexpr std::uint64_t index_max = std::uint64_t{1} << 31U;
/// A file with more features than this needs the option features=N, unless it holds at least one
/// value for every features_per_value features.
constexpr std::uint64_t unconfirmed_features_max = std::uint64_t{1} << 20U;
constexpr std::uint64_t features_per_value = 4;
/// The prefix of SVMlight's query id, which data for ranking have.
constexpr std::string_view query_prefix = "qid:";

/// Removes the next word from the front of `rest` and returns it; empty if there is none.
std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const auto word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

/// Reads one file into a RawTable.
class LibsvmReader {
 public:
  LibsvmReader(const LibsvmSource& source, InputFile file)
      : source_(source), lines_(std::move(file)), budget_(source.file) {}

  Result<RawTable> read();

 private:
  /// Decides whether indices count from 0 or from 1, and turns them into columns, which count from
  /// 0. Returns the number of features.
  Result<std::uint64_t> apply_base();
  /// Refuses improbably many features, because a model has a parameter for each feature, even for a
  /// feature that occurs in no row. Accepts as many as the training data have.
  [[nodiscard]] Result<void> check_features(std::uint64_t features) const;
  Result<void> add_row(std::string_view line);
  /// Skips `qid:N` if it comes next: training does not use the query to which a row belongs.
  /// Refuses an N that is not a whole number.
  Result<void> skip_query(std::string_view& line) const;
  /// Adds `word`, which must be index:value, to the row.
  Result<void> add_entry(std::string_view word);
  /// Returns the number in `index`, the part of `word` before the colon. Refuses an index that is
  /// out of range, or not above the previous index of the row.
  Result<std::uint64_t> read_index(std::string_view word, std::string_view index) const;
  /// Returns, for messages, why indices count from 0 or from 1; empty if this file decides it.
  [[nodiscard]] std::string explain_base() const {
    if (!source_.base) return {};
    const std::string from = std::to_string(*source_.base);
    if (source_.base_decided_by.empty()) return " (base=" + from + ")";
    return ", because " + source_.base_decided_by + " counts features from " + from +
           "; set base=0 or base=1 if this file counts otherwise";
  }
  [[nodiscard]] Error error(const std::string& what) const {
    return Error{lines_.location() + ": " + what};
  }

  const LibsvmSource& source_;
  LineReader lines_;
  ReadBudget budget_;
  Table::Sparse x_;
  std::vector<float> labels_;
  /// The last index that was read in the current row; absent before the row's first index.
  std::optional<std::uint64_t> last_index_;
  /// The largest index so far, and the "FILE:LINE" at which it occurred.
  std::uint64_t largest_index_ = 0;
  std::string largest_location_;
  /// True if the index 0 has occurred.
  bool has_index_zero_ = false;
};

Result<RawTable> LibsvmReader::read() {
  while (true) {
    const auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) break;
    const auto content = trim((*line)->substr(0, (*line)->find('#')));
    if (content.empty()) continue;
    if (auto added = add_row(content); !added) return std::move(added).error();
  }
  if (labels_.empty()) return Error{lines_.path() + ": holds no rows"};
  const auto features = apply_base();
  if (!features) return features.error();
  x_.starts.shrink_to_fit();
  x_.columns.shrink_to_fit();
  x_.values.shrink_to_fit();
  labels_.shrink_to_fit();
  RawTable raw{.source = lines_.path(), .features = *features};
  raw.first_index = source_.base.value_or(has_index_zero_ ? 0 : 1);
  raw.task = source_.task;
  raw.x = std::move(x_);
  raw.labels = std::move(labels_);
  return raw;
}

Result<std::uint64_t> LibsvmReader::apply_base() {
  const std::uint64_t base = source_.base.value_or(has_index_zero_ ? 0 : 1);
  if (source_.features == 0 && x_.columns.empty())
    return Error{lines_.path() + ": has labels, but no features"};
  const std::uint64_t found = largest_index_ + 1 - base;
  const std::uint64_t allowed = source_.features != 0 ? source_.features : index_max;
  if (found > allowed)
    return Error{largest_location_ + ": the index " + std::to_string(largest_index_) +
                 " is not valid in a file " + "that counts from 0; valid: whole numbers 0 to " +
                 std::to_string(allowed - 1) + (source_.features != 0 ? " (features=N)" : "")};
  if (source_.features == 0)
    if (auto valid = check_features(found); !valid) return std::move(valid).error();
  if (base == 1)
    for (std::uint32_t& column : x_.columns) --column;
  return source_.features != 0 ? source_.features : found;
}

Result<void> LibsvmReader::check_features(std::uint64_t features) const {
  const std::uint64_t entries = x_.columns.size();
  if (features <= source_.training_features) return {};
  if (features <= unconfirmed_features_max || features / features_per_value <= entries) return {};
  return Error{largest_location_ + ": the index " + std::to_string(largest_index_) + " makes " +
               print_count(features, "feature") + ", but all rows together hold " +
               print_count(entries, "value") + "; valid: libsvm:" + lines_.path() +
               ",features=" + std::to_string(features) + " if that is meant"};
}

Result<void> LibsvmReader::skip_query(std::string_view& line) const {
  std::string_view rest = line;
  const auto word = take_word(rest);
  if (!word.starts_with(query_prefix)) return {};
  if (!parse_count(word.substr(query_prefix.size())))
    return error(in_quotes(word) + " is not a query id; valid: qid:N, N a whole number");
  line = rest;
  return {};
}

Result<void> LibsvmReader::add_row(std::string_view line) {
  const auto word = take_word(line);
  float label = 0;
  if (read_cell(word, label) != CellKind::number)
    return error(in_quotes(word) + " is not a label; valid: a finite number, then index:value ...");
  if (auto skipped = skip_query(line); !skipped) return skipped;
  last_index_.reset();
  while (true) {
    const auto entry = take_word(line);
    if (entry.empty()) break;
    if (auto added = add_entry(entry); !added) return added;
  }
  labels_.push_back(label);
  x_.starts.push_back(x_.columns.size());
  constexpr std::uint64_t entry_bytes = sizeof(std::uint32_t) + sizeof(float);
  constexpr std::uint64_t row_bytes = sizeof(std::uint64_t) + sizeof(float);
  return budget_.check_growth(entry_bytes * x_.columns.size() + row_bytes * labels_.size());
}

Result<void> LibsvmReader::add_entry(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == std::string_view::npos)
    return error(in_quotes(word) + " has no colon; valid: index:value");
  const auto index = read_index(word, word.substr(0, colon));
  if (!index) return index.error();
  float value = 0;
  if (read_cell(word.substr(colon + 1), value) != CellKind::number)
    return error("the value of " + in_quotes(word) + " is not a finite number that a float holds");
  x_.columns.push_back(static_cast<std::uint32_t>(*index));
  x_.values.push_back(value);
  last_index_ = *index;
  has_index_zero_ |= *index == 0;
  if (*index > largest_index_) {
    largest_index_ = *index;
    largest_location_ = lines_.location();
  }
  return {};
}

Result<std::uint64_t> LibsvmReader::read_index(std::string_view word,
                                               std::string_view index) const {
  if (word.starts_with(query_prefix))
    return error(in_quotes(word) + " follows a field; valid: one qid:N after the label");
  const auto number = parse_count(index);
  const std::uint64_t index_min = source_.base.value_or(0);
  const std::uint64_t features = source_.features != 0 ? source_.features : index_max;
  const std::uint64_t index_limit = source_.base == std::uint64_t{0} ? features - 1 : features;
  const bool depends_on_base = number && (*number == 0 || *number == features);
  if (!number || *number < index_min || *number > index_limit)
    return error("the index of " + in_quotes(word) + " is not valid" +
                 (depends_on_base ? explain_base() : "") + "; valid: whole numbers " +
                 std::to_string(index_min) + " to " + std::to_string(index_limit) +
                 (source_.features != 0 ? " (features=N)" : ""));
  if (*number == last_index_)
    return error("index " + std::to_string(*number) + " occurs twice in its row");
  if (last_index_ && *number < *last_index_)
    return error("index " + std::to_string(*number) + " follows " + std::to_string(*last_index_) +
                 "; indices must ascend");
  return *number;
}

}  // namespace

Result<RawTable> read_libsvm(const LibsvmSource& source) {
  auto file = InputFile::open(source.file);
  if (!file) return std::move(file).error();
  return LibsvmReader{source, std::move(*file)}.read();
}

}  // namespace starling::models
