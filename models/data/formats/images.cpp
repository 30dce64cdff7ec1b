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

/// The largest file that is decoded.
constexpr std::size_t file_bytes_max = std::size_t{64} << 20U;

/// The names in one folder, sorted. Names that begin with a dot are left out.
struct FolderListing {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};

/// Limits the memory for the names of files and folders.
class NamesBudget {
 public:
  explicit NamesBudget(const std::string& folder) : budget_(folder) {}
  /// Counts the memory of `name`; an error if all names together take too much.
  Result<void> add(const std::string& name) {
    bytes_ += sizeof(std::string) + name.size();
    return budget_.check_growth(bytes_);
  }

 private:
  ReadBudget budget_;
  std::uint64_t bytes_ = 0;
};

Result<FolderListing> list_folder(const std::string& path, NamesBudget& budget) {
  std::error_code fault;
  fs::directory_iterator at{path, fault};
  FolderListing found;
  for (; !fault && at != fs::directory_iterator{}; at.increment(fault)) {
    if (auto go_on = check_reading(path); !go_on) return std::move(go_on).error();
    std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    if (auto fits = budget.add(name); !fits) return std::move(fits).error();
    std::error_code unknown;
    const bool is_folder = at->is_directory(unknown);
    if (unknown)
      return Error{path + "/" + printable(name) + ": is a link that cannot be followed: " +
                   unknown.message() + "; valid: images, and folders of images"};
    (is_folder ? found.folders : found.files).push_back(std::move(name));
  }
  if (fault) return Error{"cannot list '" + path + "': " + fault.message()};
  std::ranges::sort(found.folders);
  std::ranges::sort(found.files);
  return found;
}

/// An image file.
struct ImageFile {
  /// The path relative to the source's folder.
  std::string name;
  std::size_t label = 0;
};

struct FoundImages {
  std::vector<ImageFile> files;
  /// The names of the classes, which are the subfolders; a label is an index into them.
  std::vector<std::string> classes;
};

bool has_image_extension(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  static constexpr std::array<std::string_view, 3> endings{".png", ".jpg", ".jpeg"};
  return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
}

/// Lists the images of a folder. If it has subfolders, these are the classes of the images in them;
/// else the images have no labels.
Result<FoundImages> find_images(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return Error{folder + ": no such folder"};
  if (!fs::is_directory(folder, ignored))
    return Error{folder +
                 ": is a file; valid: a folder that holds one folder of images for each class"};
  NamesBudget budget{folder};
  const auto top = list_folder(folder, budget);
  if (!top) return top.error();
  FoundImages found{.files = {}, .classes = top->folders};
  if (top->folders.empty())
    for (const std::string& file : top->files) found.files.push_back({file, 0});
  for (const std::string& file : top->files)
    if (!top->folders.empty() && has_image_extension(file))
      return Error{folder + "/" + file +
                   ": is an image beside the folders of the classes; valid: " +
                   "an image in one of them, or no folders if images have no labels"};
  for (std::size_t label = 0; label < found.classes.size(); ++label) {
    const std::string path = folder + "/" + found.classes[label];
    if (printable(found.classes[label]) != found.classes[label])
      return Error{printable(path) +
                   ": the folder's name holds control characters, or bytes that "
                   "are not UTF-8; valid: a name that can be printed"};
    auto inside = list_folder(path, budget);
    if (!inside) return std::move(inside).error();
    if (!inside->folders.empty())
      return Error{path + "/" + inside->folders[0] +
                   ": is a folder inside the folder of a class; valid: " +
                   "images only; if the folders in " + path + " are the classes, images:" + path};
    for (const std::string& file : inside->files)
      found.files.push_back({found.classes[label] + "/" + file, label});
  }
  if (found.files.empty())
    return Error{folder +
                 ": holds no images; valid: PNG and JPEG images in one folder for each class"};
  return found;
}

/// Returns the indices of the files in the order of the table's rows. Image k of the n images of
/// its class has the position (k + 0.5) / n, and the rows ascend by position. Thus for any m the
/// first m rows contain the classes in about the same proportions as all rows.
std::vector<std::size_t> interleaved_order(const FoundImages& found) {
  std::vector<std::size_t> counts(std::max<std::size_t>(1, found.classes.size()), 0);
  std::vector<std::size_t> ranks;
  for (const ImageFile& file : found.files) ranks.push_back(counts[file.label]++);
  const auto share_of_class = [&](std::size_t i) {
    return (static_cast<double>(ranks[i]) + 0.5) /
           static_cast<double>(counts[found.files[i].label]);
  };
  std::vector<std::size_t> order(found.files.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, share_of_class);
  return order;
}

/// Decodes the images of a folder into a RawTable.
class FolderReader {
 public:
  FolderReader(const ImagesSource& source, FoundImages found)
      : source_(source), found_(std::move(found)), budget_(source.folder) {}

  Result<RawTable> read() {
    for (const ImageFile& file : found_.files)
      if (auto added = add(file); !added) return std::move(added).error();
    const std::uint32_t channels = choose_channels();
    const std::uint64_t row_size = std::uint64_t{images_[0].height} * images_[0].width * channels;
    if (auto fits = budget_.check_total(images_.size() * row_size * sizeof(float)); !fits)
      return std::move(fits).error();
    return make_raw_table(channels, row_size);
  }

 private:
  /// Decodes one image and converts it to the source's size and channels, if the source has them.
  Result<void> add(const ImageFile& file);
  /// Refuses an image whose size is not that of the first one, and images that together take too
  /// much memory.
  [[nodiscard]] Result<void> check_size(const Image& image, const std::string& path) const;
  /// Returns the number of channels of the table's images: as the source says; else as in the
  /// training data; else as in most images.
  [[nodiscard]] std::uint32_t choose_channels() const;
  RawTable make_raw_table(std::uint32_t channels, std::uint64_t row_size);

  const ImagesSource& source_;
  FoundImages found_;
  ReadBudget budget_;
  std::vector<Image> images_;
  /// The bytes of images_.
  std::uint64_t bytes_ = 0;
};

Result<void> FolderReader::add(const ImageFile& file) {
  const std::string path = source_.folder + "/" + file.name;
  const auto content = read_text(path, file_bytes_max, "smaller images");
  if (!content) return content.error();
  auto image = decode_image(std::as_bytes(std::span{*content}), path);
  if (!image) return std::move(image).error();
  if (source_.channels != 0) *image = with_channels(std::move(*image), source_.channels);
  if (source_.height != 0) *image = resized(std::move(*image), source_.height, source_.width);
  if (auto fits = check_size(*image, path); !fits) return fits;
  bytes_ += sizeof(Image) + image->pixels.size();
  images_.push_back(std::move(*image));
  return budget_.check_growth(bytes_);
}

Result<void> FolderReader::check_size(const Image& image, const std::string& path) const {
  const auto print_size = [](const Image& sized) {
    return std::to_string(sized.height) + "x" + std::to_string(sized.width);
  };
  if (images_.empty()) {
    // The channels are chosen when all images are known; there is 1 at least.
    const std::uint64_t channels = std::max(source_.channels, std::uint32_t{1});
    const std::uint64_t values = std::uint64_t{image.height} * image.width * channels;
    return budget_.check_total(found_.files.size() * values * sizeof(float));
  }
  const Image& first = images_[0];
  if (image.height == first.height && image.width == first.width) return {};
  return Error{path + ": is of " + print_size(image) + " pixels (height x width), but " +
               source_.folder + "/" + found_.files[0].name + " is of " + print_size(first) +
               "; valid: images:" + source_.folder + ",size=" + print_size(first) + " resizes all"};
}

std::uint32_t FolderReader::choose_channels() const {
  if (source_.channels != 0) return source_.channels;
  const std::uint64_t pixels = std::uint64_t{images_[0].height} * images_[0].width;
  if (source_.training_features == pixels) return 1;
  if (source_.training_features == 3 * pixels) return 3;
  const auto grey =
      static_cast<std::size_t>(std::ranges::count(images_, std::uint32_t{1}, &Image::channels));
  return grey > images_.size() / 2 ? 1 : 3;
}

RawTable FolderReader::make_raw_table(std::uint32_t channels, std::uint64_t row_size) {
  RawTable raw{.source = source_.folder, .features = row_size};
  raw.has_labels = !found_.classes.empty();
  raw.image = {images_[0].height, images_[0].width, channels};
  std::vector<float> values;
  values.reserve(images_.size() * row_size);
  for (const std::size_t i : interleaved_order(found_)) {
    const Image image = with_channels(std::move(images_[i]), channels);
    for (const std::uint8_t pixel : image.pixels) values.push_back(static_cast<float>(pixel) / 255);
    raw.labels.push_back(static_cast<float>(found_.files[i].label));
    raw.ids.push_back(std::move(found_.files[i].name));
  }
  raw.x = Table::Dense{std::move(values)};
  if (raw.has_labels)
    raw.labelling = Labelling{.classes = found_.classes.size(), .names = found_.classes};
  return raw;
}

}  // namespace

Result<RawTable> read_images(const ImagesSource& source) {
  ReadLimits limits = ReadScope::limits();
  limits.refuses_pipes = true;
  const ReadScope scope{std::move(limits)};
  auto found = find_images(source.folder);
  if (!found) return std::move(found).error();
  return FolderReader{source, std::move(*found)}.read();
}

}  // namespace starling::models
