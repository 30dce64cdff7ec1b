#include <algorithm>
#include <optional>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/cell.hpp"
#include "starling/models/data/formats/file.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

constexpr std::uint64_t index_max = std::uint64_t{1} << 31U;
/// Indices up to this bound need no features=N, and neither do those of files that hold a value for
/// each 4 of them.
constexpr std::uint64_t width_max = std::uint64_t{1} << 20U;
constexpr std::uint64_t entries_apart = 4;
/// SVMlight's field of ranking data.
constexpr std::string_view query = "qid:";

/// Takes the next word off the front of `rest`; empty at its end.
std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const auto word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

class LibsvmReader {
 public:
  LibsvmReader(const LibsvmSource& source, InputFile file)
      : source_(source), lines_(std::move(file)), budget_(source.file) {}

  Result<RawTable> read();

 private:
  /// Decides whether indices count from 0 or from 1, and makes columns of them. Returns the number
  /// of features.
  Result<std::uint64_t> settle_base();
  /// Refuses too many features: models hold a parameter for each feature, even if no sample has it.
  [[nodiscard]] Result<void> check_width(std::uint64_t features) const;
  Result<void> take_row(std::string_view line);
  /// Checks `qid:N` and drops it: learning ignores which query a row belongs to.
  Result<void> skip_query(std::string_view& line) const;
  Result<void> take_entry(std::string_view word);
  Result<std::uint64_t> read_index(std::string_view word, std::string_view index) const;
  /// Says why indices count from 0 or from 1, where the user or other data decided it.
  [[nodiscard]] std::string why_base() const {
    if (!source_.base) return {};
    const std::string from = std::to_string(*source_.base);
    if (source_.base_decided_by.empty()) return " (base=" + from + ")";
    return ", for " + source_.base_decided_by + " counts features from " + from +
           " (base=0 or base=1 says otherwise)";
  }
  [[nodiscard]] Error error(const std::string& what) const {
    return Error{lines_.place() + ": " + what};
  }

  const LibsvmSource& source_;
  LineReader lines_;
  ReadBudget budget_;
  Table::Sparse x_;
  std::vector<float> labels_;
  /// The last index of the row, and the largest of all.
  std::optional<std::uint64_t> last_;
  std::uint64_t most_ = 0;
  /// "FILE:LINE" of the largest.
  std::string most_at_;
  bool has_zero_ = false;
};

Result<RawTable> LibsvmReader::read() {
  while (true) {
    const auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) break;
    const auto content = trimmed((*line)->substr(0, (*line)->find('#')));
    if (content.empty()) continue;
    if (auto taken = take_row(content); !taken) return std::move(taken).error();
  }
  if (labels_.empty()) return Error{lines_.path() + ": holds no rows"};
  const auto features = settle_base();
  if (!features) return features.error();
  x_.starts.shrink_to_fit();
  x_.columns.shrink_to_fit();
  x_.values.shrink_to_fit();
  labels_.shrink_to_fit();
  RawTable raw{.place = lines_.path(), .features = *features};
  raw.first_index = source_.base.value_or(has_zero_ ? 0 : 1);
  raw.task = source_.task;
  raw.x = std::move(x_);
  raw.labels = std::move(labels_);
  return raw;
}

Result<std::uint64_t> LibsvmReader::settle_base() {
  const std::uint64_t base = source_.base.value_or(has_zero_ ? 0 : 1);
  if (source_.features == 0 && x_.columns.empty())
    return Error{lines_.path() + ": holds labels, but not one feature"};
  const std::uint64_t found = most_ + 1 - base;
  const std::uint64_t allowed = source_.features != 0 ? source_.features : index_max;
  if (found > allowed)
    return Error{most_at_ + ": the index " + std::to_string(most_) + " is not valid in a file " +
                 "that counts from 0; valid: whole numbers 0 to " + std::to_string(allowed - 1) +
                 (source_.features != 0 ? " (features=N)" : "")};
  if (source_.features == 0)
    if (auto meant = check_width(found); !meant) return std::move(meant).error();
  if (base == 1)
    for (std::uint32_t& column : x_.columns) --column;
  return source_.features != 0 ? source_.features : found;
}

Result<void> LibsvmReader::check_width(std::uint64_t features) const {
  const std::uint64_t entries = x_.columns.size();
  if (features <= width_max || features / entries_apart <= entries) return {};
  return Error{most_at_ + ": the index " + std::to_string(most_) + " makes " +
               counted(features, "feature") + ", but all rows together hold " +
               counted(entries, "value") + "; valid: libsvm:" + lines_.path() +
               ",features=" + std::to_string(features) + " where that is meant"};
}

Result<void> LibsvmReader::skip_query(std::string_view& line) const {
  std::string_view rest = line;
  const auto word = take_word(rest);
  if (!word.starts_with(query)) return {};
  if (!parse_count(word.substr(query.size())))
    return error(in_quotes(word) + " names no query; valid: qid:N, N a whole number");
  line = rest;
  return {};
}

Result<void> LibsvmReader::take_row(std::string_view line) {
  const auto word = take_word(line);
  float label = 0;
  if (read_cell(word, label) != Cell::number)
    return error(in_quotes(word) + " is not a label; valid: a finite number, then index:value ...");
  if (auto skipped = skip_query(line); !skipped) return skipped;
  last_.reset();
  while (true) {
    const auto entry = take_word(line);
    if (entry.empty()) break;
    if (auto taken = take_entry(entry); !taken) return taken;
  }
  labels_.push_back(label);
  x_.starts.push_back(x_.columns.size());
  constexpr std::uint64_t entry_bytes = sizeof(std::uint32_t) + sizeof(float);
  constexpr std::uint64_t row_bytes = sizeof(std::uint64_t) + sizeof(float);
  return budget_.hold(entry_bytes * x_.columns.size() + row_bytes * labels_.size());
}

Result<void> LibsvmReader::take_entry(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == std::string_view::npos)
    return error(in_quotes(word) + " has no colon; valid: index:value");
  const auto index = read_index(word, word.substr(0, colon));
  if (!index) return index.error();
  float value = 0;
  if (read_cell(word.substr(colon + 1), value) != Cell::number)
    return error("the value of " + in_quotes(word) + " is not a finite number that a float holds");
  x_.columns.push_back(static_cast<std::uint32_t>(*index));
  x_.values.push_back(value);
  last_ = *index;
  has_zero_ |= *index == 0;
  if (*index > most_) {
    most_ = *index;
    most_at_ = lines_.place();
  }
  return {};
}

Result<std::uint64_t> LibsvmReader::read_index(std::string_view word,
                                               std::string_view index) const {
  if (word.starts_with(query))
    return error(in_quotes(word) + " stands behind a field; valid: one qid:N behind the label");
  const auto number = parse_count(index);
  const std::uint64_t least = source_.base.value_or(0);
  const std::uint64_t features = source_.features != 0 ? source_.features : index_max;
  const std::uint64_t most = source_.base == std::uint64_t{0} ? features - 1 : features;
  const bool depends = number && (*number == 0 || *number == features);
  if (!number || *number < least || *number > most)
    return error("the index of " + in_quotes(word) + " is not valid" + (depends ? why_base() : "") +
                 "; valid: whole numbers " + std::to_string(least) + " to " + std::to_string(most) +
                 (source_.features != 0 ? " (features=N)" : ""));
  if (*number == last_)
    return error("index " + std::to_string(*number) + " stands twice in its row");
  if (last_ && *number < *last_)
    return error("index " + std::to_string(*number) + " stands behind " + std::to_string(*last_) +
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
