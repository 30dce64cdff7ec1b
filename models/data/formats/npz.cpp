#include <zip.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/npy_array.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

/// The most bytes that one deflated byte can expand to.
constexpr std::uint64_t deflate_ratio_max = 1032;
constexpr std::string_view array_ending = ".npy";
constexpr std::size_t names_shown_max = 20;

using Names = std::vector<std::string>;

struct ZipDeleter {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

/// Reads the arrays of one zip archive.
class Archive {
 public:
  static Result<Archive> open(const std::string& path);

  /// The names of all arrays without `.npy`, in the order of the file.
  [[nodiscard]] const Names& names() const { return names_; }
  /// Reads the array called `name`. Requires: names() contains `name`.
  [[nodiscard]] Result<NpyArray> read(const std::string& name) const;
  /// Returns a list of the first 20 names, for messages.
  [[nodiscard]] std::string print_names() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Archive(std::string path, zip_t* archive) : path_(std::move(path)), archive_(archive) {}

  std::string path_;
  std::unique_ptr<zip_t, ZipDeleter> archive_;
  Names names_;
  /// The index in the archive of the array names_[i].
  std::vector<zip_uint64_t> indices_;
};

Result<Archive> Archive::open(const std::string& path) {
  // Refuses pipes and devices here, because libzip would wait for pipes and read devices.
  const auto input = InputDescriptor::open(path);
  if (!input) return input.error();
  if (!input->size()) return Error{path + ": is a pipe; valid for archives: a regular file"};
  int code = 0;
  zip_t* const opened = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (opened == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    return Error{path + ": is not an archive of numpy.savez: " + why};
  }
  Archive archive{path, opened};
  const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(opened, 0));
  for (zip_uint64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(opened, i, ZIP_FL_ENC_GUESS);
    if (name == nullptr || !std::string_view{name}.ends_with(array_ending)) continue;
    archive.names_.emplace_back(name, std::string_view{name}.size() - array_ending.size());
    archive.indices_.push_back(i);
  }
  return archive;
}

std::string Archive::print_names() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(names_.size(), names_shown_max); ++i)
    text += (i == 0 ? "" : ", ") + quote(names_[i]);
  if (names_.size() > names_shown_max) text += ", ... " + print_count(names_.size(), "array");
  return names_.empty() ? "no array" : text;
}

/// Returns an upper bound on the bytes of content in an entry of the archive.
std::uint64_t content_max(const zip_stat_t& entry) {
  const std::uint64_t ratio = entry.comp_method == ZIP_CM_STORE ? 1 : deflate_ratio_max;
  if (entry.comp_size > UINT64_MAX / ratio) return entry.size;
  return std::min<std::uint64_t>(entry.size, entry.comp_size * ratio);
}

/// Refuses an entry that is encrypted or compressed by an unknown method.
Result<void> check_entry(const std::string& array_name, const zip_stat_t& entry) {
  constexpr zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((entry.valid & needed) != needed) return Error{array_name + ": its entry is damaged"};
  if ((entry.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && entry.encryption_method != ZIP_EM_NONE)
    return Error{array_name + ": is encrypted; valid: what numpy.savez writes"};
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    return Error{array_name + ": is compressed by method " + std::to_string(entry.comp_method) +
                 "; valid: stored or deflated, as numpy.savez and numpy.savez_compressed write"};
  return {};
}

Result<NpyArray> Archive::read(const std::string& name) const {
  const std::string array_name = path_ + ": array " + quote(name);
  const auto at = std::ranges::find(names_, name);
  const zip_uint64_t index = indices_[static_cast<std::size_t>(at - names_.begin())];
  zip_stat_t entry;
  if (zip_stat_index(archive_.get(), index, 0, &entry) != 0)
    return Error{array_name + ": its entry is damaged"};
  if (auto valid = check_entry(array_name, entry); !valid) return std::move(valid).error();
  const std::unique_ptr<zip_file_t, ZipDeleter> file{zip_fopen_index(archive_.get(), index, 0)};
  if (file == nullptr)
    return Error{array_name + ": cannot be read: " + zip_strerror(archive_.get())};
  const auto read = [&](std::span<std::byte> out) -> Result<std::size_t> {
    std::size_t got = 0;
    while (got < out.size()) {
      if (auto go_on = check_reading(path_); !go_on) return std::move(go_on).error();
      const auto rest = out.subspan(got);
      const zip_int64_t count = zip_fread(file.get(), rest.data(), rest.size());
      if (count < 0)
        return Error{array_name + ": its data is damaged: " + zip_file_strerror(file.get())};
      if (count == 0) break;
      got += static_cast<std::size_t>(count);
    }
    return got;
  };
  return read_npy_array({.read = read, .content_max = content_max(entry), .name = array_name});
}

/// The names of an array of features and an array of labels that are often used together.
struct NamePair {
  const char* features;
  const char* labels;
};
constexpr std::array train_names{NamePair{"x_train", "y_train"}, NamePair{"X_train", "y_train"},
                                 NamePair{"train_images", "train_labels"}};
constexpr std::array test_names{NamePair{"x_test", "y_test"}, NamePair{"X_test", "y_test"},
                                NamePair{"test_images", "test_labels"}};
constexpr std::array unsplit_names{NamePair{"x", "y"},           NamePair{"X", "y"},
                                   NamePair{"X", "Y"},           NamePair{"data", "target"},
                                   NamePair{"data", "labels"},   NamePair{"features", "labels"},
                                   NamePair{"images", "labels"}, NamePair{"arr_0", "arr_1"}};

bool has_array(const Archive& archive, const std::string& name) {
  return std::ranges::find(archive.names(), name) != archive.names().end();
}

/// Fills in the names that the user left out, from the first pair that fits. A pair fits if
/// - the user named its features, or named none and the file contains its features, and
/// - the user named its labels, or named none and the file contains its labels.
/// Tries the pairs for the wanted data, training or test, first. If no pair fits, searches again
/// for features alone: the data have the labels that the user named, or none.
NpzSource fill_in_names(const NpzSource& source, const Archive& archive, bool is_test) {
  std::vector<NamePair> pairs;
  const auto& part = is_test ? test_names : train_names;
  pairs.insert(pairs.end(), part.begin(), part.end());
  pairs.insert(pairs.end(), unsplit_names.begin(), unsplit_names.end());
  // If the user named an array of the other part, such as x_test for training, the second array is
  // the one of the same pair.
  const auto& other = is_test ? train_names : test_names;
  const bool names_labels = !source.labels.empty() && source.labels != "none";
  if (!source.features.empty() || names_labels)
    pairs.insert(pairs.end(), other.begin(), other.end());
  NpzSource named = source;
  const auto is_other = [&](const NamePair& pair) {
    const std::string_view features = pair.features;
    return std::ranges::any_of(other,
                               [&](const NamePair& one) { return one.features == features; });
  };
  const auto fits = [&](const NamePair& pair, bool with_labels) {
    // Features of the other part suit only labels of that part.
    if (!with_labels && source.features.empty() && is_other(pair)) return false;
    const bool has_features = source.features.empty() ? has_array(archive, pair.features)
                                                      : source.features == pair.features;
    if (!with_labels || source.labels == "none") return has_features;
    return has_features &&
           (names_labels ? source.labels == pair.labels : has_array(archive, pair.labels));
  };
  for (const bool with_labels : {true, false})
    for (const NamePair& pair : pairs) {
      if (!fits(pair, with_labels)) continue;
      if (named.features.empty()) named.features = pair.features;
      if (named.labels.empty()) named.labels = with_labels ? pair.labels : "none";
      return named;
    }
  return named;
}

/// Refuses a name that no array of the archive has. `name` is empty if no usual name fits. `option`
/// is `features` or `labels`.
Result<void> check_name(const Archive& archive, const char* option, const std::string& name) {
  if (has_array(archive, name)) return {};
  if (name.empty())
    return Error{archive.path() +
                 ": no array has a usual name (X or data; x_train for training; x_test for "
                 "testing); it holds " +
                 archive.print_names() + "; valid: npz:" + archive.path() + "," + option + "=NAME"};
  return Error{archive.path() + ": holds no array " + quote(name) + " (" + option + "); " +
               suggest(name, archive.names())};
}

}  // namespace

Result<RawTable> read_npz(const NpzSource& source, bool is_test) {
  const auto archive = Archive::open(source.file);
  if (!archive) return archive.error();
  const NpzSource named = fill_in_names(source, *archive, is_test);
  if (auto known = check_name(*archive, "features", named.features); !known)
    return std::move(known).error();
  const bool has_labels = !named.labels.empty() && named.labels != "none";
  if (has_labels)
    if (auto known = check_name(*archive, "labels", named.labels); !known)
      return std::move(known).error();
  auto x = archive->read(named.features);
  if (!x) return std::move(x).error();
  std::optional<NpyArray> y;
  if (has_labels) {
    auto read = archive->read(named.labels);
    if (!read) return std::move(read).error();
    y = std::move(*read);
  }
  auto raw = make_raw_table(std::move(*x), y ? &*y : nullptr);
  if (!raw) return raw;
  raw->source = source.file;
  raw->task = source.task;
  return raw;
}

}  // namespace starling::models
