#include "starling/models/data/formats/image.hpp"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string_view>
#include <type_traits>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// The most pixels of an image: 16,384 x 16,384.
constexpr std::uint64_t pixels_max = std::uint64_t{1} << 28U;

/// An image format and the bytes with which its files begin.
struct Format {
  std::string_view name;
  std::string_view magic;
};
constexpr Format png{"PNG", "\x89PNG\r\n\x1a\n"};
constexpr Format jpeg{"JPEG", "\xff\xd8\xff"};
/// Formats that are recognised but cannot be read.
constexpr std::array unreadable_formats{Format{"GIF", "GIF8"}, Format{"BMP", "BM"},
                                        Format{"WebP", "RIFF"}, Format{"TIFF", "II*"},
                                        Format{"TIFF", "MM"}};

Error error_of(const std::string& path, const Format& format, const std::string& what) {
  return Error{path + ": its " + std::string{format.name} + " data is damaged: " + what};
}

/// Refuses an image that is too large for memory, before it is decoded.
Result<void> check_size(const std::string& path, std::uint64_t height, std::uint64_t width,
                        std::uint64_t channels) {
  if (height == 0 || width == 0 || height > pixels_max / width)
    return Error{path + ": is of " + std::to_string(height) + "x" + std::to_string(width) +
                 " pixels; valid: 1 to " + std::to_string(pixels_max)};
  return ReadBudget{path}.check_total(height * width * channels);
}

struct PngDeleter {
  void operator()(png_image* image) const { png_image_free(image); }
};

/// Removes channels: each pixel has `channels` bytes, of which the first `kept` stay.
void keep_channels(std::vector<std::uint8_t>& pixels, std::size_t channels, std::size_t kept) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < pixels.size(); from += channels)
    for (std::size_t c = 0; c < kept; ++c) pixels[to++] = pixels[from + c];
  pixels.resize(to);
}

Result<Image> decode_png(std::span<const std::byte> file, const std::string& path) {
  png_image reader{};
  reader.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, PngDeleter> reader_guard{&reader};
  if (png_image_begin_read_from_memory(&reader, file.data(), file.size()) == 0)
    return error_of(path, png, reader.message);
  const bool is_colour = (reader.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const bool has_alpha = (reader.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  // Reads the alpha channel too, because without it libpng would blend the image with a background.
  reader.format =
      (is_colour ? PNG_FORMAT_FLAG_COLOR : 0U) | (has_alpha ? PNG_FORMAT_FLAG_ALPHA : 0U);
  // If the file states no gamma, reads 16-bit samples as sRGB, like 8-bit samples.
  reader.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  Image image{reader.height, reader.width, is_colour ? 3U : 1U, {}};
  const std::size_t file_channels = image.channels + (has_alpha ? 1 : 0);
  if (auto fits = check_size(path, image.height, image.width, file_channels); !fits)
    return std::move(fits).error();
  image.pixels.resize(PNG_IMAGE_SIZE(reader));
  if (png_image_finish_read(&reader, nullptr, image.pixels.data(), 0, nullptr) == 0)
    return error_of(path, png, reader.message);
  if (has_alpha) keep_channels(image.pixels, file_channels, image.channels);
  return image;
}

struct JpegDeleter {
  void operator()(void* reader) const { tjDestroy(reader); }
};

Result<Image> decode_jpeg(std::span<const std::byte> file, const std::string& path) {
  const std::unique_ptr<std::remove_pointer_t<tjhandle>, JpegDeleter> reader{tjInitDecompress()};
  if (!reader) return Error{path + ": no memory to decode it"};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0;
  int height = 0;
  int sampling = 0;
  int space = 0;
  if (tjDecompressHeader3(reader.get(), bytes, file.size(), &width, &height, &sampling, &space) !=
      0)
    return error_of(path, jpeg, tjGetErrorStr2(reader.get()));
  if (space == TJCS_CMYK || space == TJCS_YCCK)
    return Error{path + ": is a JPEG image of 4 inks (CMYK); valid: grey or red, green and blue"};
  if (width < 1 || height < 1) return error_of(path, jpeg, "it ends within its header");
  Image image{static_cast<std::uint32_t>(height),
              static_cast<std::uint32_t>(width),
              space == TJCS_GRAY ? 1U : 3U,
              {}};
  if (auto fits = check_size(path, image.height, image.width, image.channels); !fits)
    return std::move(fits).error();
  image.pixels.resize(std::size_t{image.height} * image.width * image.channels);
  constexpr int flags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (tjDecompress2(reader.get(), bytes, file.size(), image.pixels.data(), width, 0, height,
                    image.channels == 1 ? TJPF_GRAY : TJPF_RGB, flags) != 0)
    return error_of(path, jpeg, tjGetErrorStr2(reader.get()));
  return image;
}

/// The old pixels of a line whose weighted mean is one new pixel.
struct Window {
  /// The index of the first old pixel.
  std::size_t first = 0;
  /// The weights of the old pixels from `first` on; their sum is 1.
  std::vector<double> weights{};
};

/// Returns the window of each new pixel of a line that is resized from `old_size` pixels to
/// `new_size`.
std::vector<Window> make_windows(std::size_t old_size, std::size_t new_size) {
  const double scale = static_cast<double>(old_size) / static_cast<double>(new_size);
  const double reach = std::max(scale, 1.0);
  std::vector<Window> windows(new_size);
  for (std::size_t i = 0; i < new_size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = static_cast<std::size_t>(std::max(0.0, std::floor(centre - reach + 0.5)));
    const auto end = std::min(old_size, static_cast<std::size_t>(std::floor(centre + reach + 0.5)));
    Window& window = windows[i];
    window.first = first;
    double sum = 0;
    for (std::size_t x = first; x < end; ++x) {
      const double distance = std::abs(static_cast<double>(x) + 0.5 - centre) / reach;
      window.weights.push_back(std::max(0.0, 1 - distance));
      sum += window.weights.back();
    }
    for (double& weight : window.weights) weight /= sum;
  }
  return windows;
}

/// Resizes the middle axis of an array of outer x `old_size` x `inner` bytes to `new_size`.
std::vector<std::uint8_t> resize_axis(const std::vector<std::uint8_t>& pixels, std::size_t old_size,
                                      std::size_t inner, std::size_t new_size) {
  const auto windows = make_windows(old_size, new_size);
  const std::size_t outer = pixels.size() / (old_size * inner);
  std::vector<std::uint8_t> resized_pixels(outer * new_size * inner);
  std::size_t next = 0;
  for (std::size_t o = 0; o < outer; ++o)
    for (const Window& window : windows)
      for (std::size_t i = 0; i < inner; ++i) {
        // 0.5 makes the conversion to a whole number round to the nearest.
        double sum = 0.5;
        for (std::size_t x = 0; x < window.weights.size(); ++x)
          sum += window.weights[x] * pixels[(o * old_size + window.first + x) * inner + i];
        resized_pixels[next++] = static_cast<std::uint8_t>(std::min(sum, 255.0));
      }
  return resized_pixels;
}

}  // namespace

Result<Image> decode_image(std::span<const std::byte> file, const std::string& path) {
  const std::string_view text{reinterpret_cast<const char*>(file.data()), file.size()};
  if (text.starts_with(png.magic)) return decode_png(file, path);
  if (text.starts_with(jpeg.magic)) return decode_jpeg(file, path);
  for (const Format& known : unreadable_formats)
    if (text.starts_with(known.magic))
      return Error{path + ": is an image of the format " + std::string{known.name} +
                   "; valid: PNG and JPEG; this converts it to PNG: python3 -c \"from PIL import " +
                   "Image; Image.open('" + path + "').convert('RGB').save('" +
                   std::filesystem::path{path}.replace_extension(".png").string() + "')\""};
  return Error{path + ": is not a PNG or JPEG image; " +
               (text.empty() ? "it is empty" : "it starts with " + quote(text.substr(0, 8)))};
}

Image with_channels(Image image, std::uint32_t channels) {
  if (image.channels == channels) return image;
  const std::size_t count = std::size_t{image.height} * image.width;
  std::vector<std::uint8_t> pixels;
  pixels.reserve(count * channels);
  for (std::size_t i = 0; i < count; ++i) {
    if (channels == 3) {
      pixels.insert(pixels.end(), 3, image.pixels[i]);
      continue;
    }
    const std::uint8_t* const rgb = &image.pixels[3 * i];
    // The weights of BT.601 in units of 2^-16; 32768 makes the shift round to the nearest.
    pixels.push_back(static_cast<std::uint8_t>(
        (19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16U));
  }
  return {image.height, image.width, channels, std::move(pixels)};
}

/// Resizes one axis, then the other. Begins with the axis whose resizing leaves fewer pixels,
/// because in the other order an image of 1 x 1,000,000 pixels could grow to many times its size.
Image resized(Image image, std::uint32_t height, std::uint32_t width) {
  const auto resize_width = [&] {
    if (image.width == width) return;
    image.pixels = resize_axis(image.pixels, image.width, image.channels, width);
    image.width = width;
  };
  const bool is_width_first =
      std::uint64_t{image.height} * width <= std::uint64_t{height} * image.width;
  if (is_width_first) resize_width();
  if (image.height != height) {
    image.pixels =
        resize_axis(image.pixels, image.height, std::size_t{image.width} * image.channels, height);
    image.height = height;
  }
  resize_width();
  return image;
}

}  // namespace starling::models
