#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/image.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = std::size_t{64} << 20U;

/// The names in one folder, sorted; names that begin with a dot are left out.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};

/// Names of files and folders take memory too.
class NamesBudget {
 public:
  explicit NamesBudget(const std::string& place) : budget_(place) {}
  Result<void> add(const std::string& name) {
    bytes_ += sizeof(std::string) + name.size();
    return budget_.hold(bytes_);
  }

 private:
  ReadBudget budget_;
  std::uint64_t bytes_ = 0;
};

Result<Listing> list(const std::string& path, NamesBudget& budget) {
  std::error_code fault;
  fs::directory_iterator at{path, fault};
  Listing found;
  for (; !fault && at != fs::directory_iterator{}; at.increment(fault)) {
    if (auto go_on = check_reading(path); !go_on) return std::move(go_on).error();
    std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    if (auto fits = budget.add(name); !fits) return std::move(fits).error();
    std::error_code ignored;
    (at->is_directory(ignored) ? found.folders : found.files).push_back(std::move(name));
  }
  if (fault) return Error{"cannot list '" + path + "': " + fault.message()};
  std::ranges::sort(found.folders);
  std::ranges::sort(found.files);
  return found;
}

/// One image of the folder, by its path below it.
struct Entry {
  std::string name;
  std::size_t label = 0;
};

struct Found {
  std::vector<Entry> entries;
  std::vector<std::string> classes;
};

bool is_named_image(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  static constexpr std::array<std::string_view, 3> endings{".png", ".jpg", ".jpeg"};
  return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
}

/// Images in the folder itself have no labels; those in its subfolders have.
Result<Found> find_images(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return Error{folder + ": no such folder"};
  if (!fs::is_directory(folder, ignored))
    return Error{folder + ": is a file; valid: a folder that holds one folder of images a class"};
  NamesBudget budget{folder};
  const auto top = list(folder, budget);
  if (!top) return top.error();
  Found found{.entries = {}, .classes = top->folders};
  if (top->folders.empty())
    for (const std::string& file : top->files) found.entries.push_back({file, 0});
  for (const std::string& file : top->files)
    if (!top->folders.empty() && is_named_image(file))
      return Error{folder + "/" + file + ": is an image beside the folders of classes; valid: " +
                   "images inside them, or no folder where images have no labels"};
  for (std::size_t label = 0; label < found.classes.size(); ++label) {
    const std::string path = folder + "/" + found.classes[label];
    if (printable(path) != path)
      return Error{printable(path) +
                   ": the folder's name is no text in UTF-8; valid: another name"};
    auto inside = list(path, budget);
    if (!inside) return std::move(inside).error();
    if (!inside->folders.empty())
      return Error{
          path + "/" + inside->folders[0] + ": is a folder inside one of a class; valid: " +
          "one folder a class, as in images:" + path + " where its folders are the classes"};
    for (const std::string& file : inside->files)
      found.entries.push_back({found.classes[label] + "/" + file, label});
  }
  if (found.entries.empty())
    return Error{folder + ": holds no images; valid: PNG and JPEG images in one folder a class"};
  return found;
}

/// The order of rows: by how far an image stands within its class, so that any first rows hold
/// all classes in about their proportion.
std::vector<std::size_t> mixed_order(const Found& found) {
  std::vector<std::size_t> counts(std::max<std::size_t>(1, found.classes.size()), 0);
  std::vector<std::size_t> ranks;
  for (const Entry& entry : found.entries) ranks.push_back(counts[entry.label]++);
  const auto share = [&](std::size_t i) {
    return (static_cast<double>(ranks[i]) + 0.5) /
           static_cast<double>(counts[found.entries[i].label]);
  };
  std::vector<std::size_t> order(found.entries.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, share);
  return order;
}

class FolderReader {
 public:
  FolderReader(const ImagesSource& source, Found found)
      : source_(source), found_(std::move(found)), budget_(source.folder) {}

  Result<RawTable> read() {
    for (const Entry& entry : found_.entries)
      if (auto taken = take(entry); !taken) return std::move(taken).error();
    const std::uint32_t channels = channels_of_all();
    const std::uint64_t row = std::uint64_t{images_[0].height} * images_[0].width * channels;
    if (auto fits = budget_.expect(images_.size() * row * sizeof(float)); !fits)
      return std::move(fits).error();
    return table(channels, row);
  }

 private:
  /// Decodes one image and checks that it is like the others.
  Result<void> take(const Entry& entry);
  [[nodiscard]] Result<void> check_like_first(const Image& image, const std::string& path) const;
  [[nodiscard]] std::uint32_t channels_of_all() const;
  RawTable table(std::uint32_t channels, std::uint64_t row);

  const ImagesSource& source_;
  Found found_;
  ReadBudget budget_;
  std::vector<Image> images_;
  std::uint64_t bytes_ = 0;
};

Result<void> FolderReader::take(const Entry& entry) {
  const std::string path = source_.folder + "/" + entry.name;
  const auto content = read_text(path, file_bytes_max, "smaller images");
  if (!content) return content.error();
  auto image = decode_image(std::as_bytes(std::span{*content}), path);
  if (!image) return std::move(image).error();
  if (source_.channels != 0) *image = with_channels(std::move(*image), source_.channels);
  if (source_.height != 0) *image = resized(std::move(*image), source_.height, source_.width);
  if (auto alike = check_like_first(*image, path); !alike) return alike;
  bytes_ += sizeof(Image) + image->pixels.size();
  images_.push_back(std::move(*image));
  return budget_.hold(bytes_);
}

Result<void> FolderReader::check_like_first(const Image& image, const std::string& path) const {
  const auto size = [](const Image& of) {
    return std::to_string(of.height) + "x" + std::to_string(of.width);
  };
  if (images_.empty()) {
    const std::uint64_t values = std::uint64_t{image.height} * image.width * image.channels;
    return budget_.expect(found_.entries.size() * values * sizeof(float));
  }
  const Image& first = images_[0];
  if (image.height == first.height && image.width == first.width) return {};
  return Error{path + ": is of " + size(image) + " pixels (height x width), but " + source_.folder +
               "/" + found_.entries[0].name + " is of " + size(first) +
               "; valid: images:" + source_.folder + ",size=" + size(first) + " resizes all"};
}

std::uint32_t FolderReader::channels_of_all() const {
  if (source_.channels != 0) return source_.channels;
  const std::uint64_t pixels = std::uint64_t{images_[0].height} * images_[0].width;
  if (source_.training_features == pixels) return 1;
  if (source_.training_features == 3 * pixels) return 3;
  const auto grey =
      static_cast<std::size_t>(std::ranges::count(images_, std::uint32_t{1}, &Image::channels));
  return grey > images_.size() / 2 ? 1 : 3;
}

RawTable FolderReader::table(std::uint32_t channels, std::uint64_t row) {
  RawTable raw{.place = source_.folder, .features = row};
  raw.has_labels = !found_.classes.empty();
  std::vector<float> values;
  values.reserve(images_.size() * row);
  for (const std::size_t i : mixed_order(found_)) {
    const Image image = with_channels(std::move(images_[i]), channels);
    for (const std::uint8_t pixel : image.pixels) values.push_back(static_cast<float>(pixel) / 255);
    raw.labels.push_back(static_cast<float>(found_.entries[i].label));
    raw.ids.push_back(std::move(found_.entries[i].name));
  }
  raw.x = Table::Dense{std::move(values)};
  if (raw.has_labels)
    raw.labelling = Labelling{.classes = found_.classes.size(), .names = found_.classes};
  return raw;
}

}  // namespace

Result<RawTable> read_images(const ImagesSource& source) {
  auto found = find_images(source.folder);
  if (!found) return std::move(found).error();
  return FolderReader{source, std::move(*found)}.read();
}

}  // namespace starling::models
