/// Decodes and resizes one PNG or JPEG image. Internal to models/data. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

struct Image {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  /// 1 (grey) or 3 (red, green, blue).
  std::uint32_t channels = 1;
  /// Row by row, the channels of a pixel together.
  std::vector<std::uint8_t> pixels;
};

/// Decodes a file's content. The image has the file's grey or colour channels, 8 bits each; the
/// alpha channel and the EXIF orientation are ignored. Errors name the file by `path`.
Result<Image> decode_image(std::span<const std::byte> file, const std::string& path);

/// Converts the image to `channels`, 1 or 3; grey is the luma of ITU-R BT.601.
Image with_channels(Image image, std::uint32_t channels);

/// Resizes the image by linear interpolation; a pixel of a smaller image is the weighted mean of
/// all pixels that it covers. Requires: `height` and `width` are at least 1.
Image resized(Image image, std::uint32_t height, std::uint32_t width);

}  // namespace starling::models
