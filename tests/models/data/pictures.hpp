/// Makes PNG and JPEG files of given pixels. For tests.
#pragma once

#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace starling::models {

using Pixels = std::vector<std::uint8_t>;

/// Returns a PNG file. `format` is libpng's: PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB or
/// PNG_FORMAT_RGBA.
inline std::string png_of(std::uint32_t height, std::uint32_t width, const Pixels& pixels,
                          std::uint32_t format = PNG_FORMAT_GRAY) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = height;
  image.width = width;
  image.format = format;
  png_alloc_size_t size = 0;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr) == 0)
    std::abort();
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr) == 0)
    std::abort();
  bytes.resize(size);
  return bytes;
}

/// Returns a JPEG file, in red, green and blue if `is_colour`, else grey.
inline std::string jpeg_of(int height, int width, const Pixels& pixels, bool is_colour = false) {
  const tjhandle writer = tjInitCompress();
  unsigned char* compressed = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): TurboJPEG's type
  if (tjCompress2(writer, pixels.data(), width, 0, height, is_colour ? TJPF_RGB : TJPF_GRAY,
                  &compressed, &size, is_colour ? TJSAMP_444 : TJSAMP_GRAY, 100,
                  TJFLAG_ACCURATEDCT) != 0)
    std::abort();
  std::string bytes{reinterpret_cast<const char*>(compressed), size};
  tjFree(compressed);
  tjDestroy(writer);
  return bytes;
}

}  // namespace starling::models
