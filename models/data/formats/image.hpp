/// Decodes and resizes one PNG or JPEG image. Internal to models/data. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

/// A decoded image.
struct Image {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  /// 1 (grey) or 3 (red, green, blue).
  std::uint32_t channels = 1;
  /// [height x width x channels], row by row.
  std::vector<std::uint8_t> pixels;
};

/// Decodes `file`, the content of a file. The image has one grey channel or three colour channels,
/// as in the file, of 8 bits each. Ignores the alpha channel and the EXIF orientation. Errors begin
/// with `path`.
Result<Image> decode_image(std::span<const std::byte> file, const std::string& path);

/// Converts the image to 1 or 3 channels. Grey is the luma of ITU-R BT.601.
Image with_channels(Image image, std::uint32_t channels);

/// Resizes the image by linear interpolation. If the image shrinks, each new pixel is the weighted
/// mean of all old pixels that are less than the size of one new pixel away from its centre, in
/// each direction. Requires: `height` and `width` are at least 1.
Image resized(Image image, std::uint32_t height, std::uint32_t width);

}  // namespace starling::models
