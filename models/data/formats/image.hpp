/// One PNG or JPEG image. Internal to models/data. Pure functions.
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

/// Decodes a file's content into its own channels, 8 bits each. The alpha channel and the EXIF
/// orientation are ignored. `place` names the file in errors; damage is one.
Result<Image> decode_image(std::span<const std::byte> file, const std::string& place);

/// Returns the image with 1 or 3 channels; grey is the luma of ITU-R BT.601.
Image with_channels(Image image, std::uint32_t channels);

/// Resizes the image by linear interpolation; each pixel of a smaller image weighs all pixels that
/// it covers. Requires: both extents at least 1.
Image resized(Image image, std::uint32_t height, std::uint32_t width);

}  // namespace starling::models
