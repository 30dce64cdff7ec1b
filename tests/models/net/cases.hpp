/// Nets that cover each layer and each loss, for tests that compare two computations of a gradient.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "starling/models/net/layers/shape.hpp"

namespace starling::models {

/// A net, and the features and classes of the random data that a test computes it on.
struct NetCase {
  std::string name;
  /// The text that Net::parse reads.
  std::string net;
  std::size_t features;
  /// 0 for real targets.
  std::size_t classes;
};

inline void PrintTo(const NetCase& given, std::ostream* out) { *out << given.net; }

/// The sizes of the nets. Tests with finite differences need small nets. Tests of a device need
/// values with more elements than one block of threads computes.
struct NetSizes {
  Shape image;
  /// The features of a row that is not an image.
  std::size_t features;
  /// The width of dense layers.
  std::size_t width;
  std::size_t classes;

  /// Returns a net that applies `layers` to an image and ends with a dense layer.
  [[nodiscard]] NetCase between_image_and_dense(std::string name, const std::string& layers) const {
    return image_net(std::move(name), layers + "; flatten; " + last());
  }
  /// Returns a net with `layers` between two dense layers.
  [[nodiscard]] NetCase between_dense(std::string name, const std::string& layers) const {
    return row_net(std::move(name), dense() + "; " + layers + "; " + last());
  }
  /// Returns a net of `layers` only, which reads images.
  [[nodiscard]] NetCase image_net(std::string name, const std::string& layers) const {
    return {std::move(name), "net:input=" + print_shape(image) + ",layers=" + layers, volume(image),
            classes};
  }
  /// Returns a net of `layers` only, which reads rows.
  [[nodiscard]] NetCase row_net(std::string name, const std::string& layers) const {
    return {std::move(name), "net:layers=" + layers, features, classes};
  }
  [[nodiscard]] std::string dense() const { return "dense " + std::to_string(width); }
  [[nodiscard]] std::string last() const { return "dense " + std::to_string(classes); }
};

/// Returns nets that cover each loss and each layer that uses no random numbers.
inline std::vector<NetCase> net_cases(const NetSizes& sizes) {
  const std::string dense = sizes.dense();
  const std::string last = sizes.last();
  const std::string channels = std::to_string(sizes.image.back());
  return {
      sizes.row_net("Dense", dense + "; tanh; " + last),
      sizes.row_net("DenseWithoutBias", dense + " bias=0; tanh; " + last + " bias=0"),
      sizes.between_image_and_dense("Conv", "conv2d 5 kernel=3"),
      sizes.between_image_and_dense("ConvPaddedStrided",
                                    "conv2d 4 kernel=3 padding=1 stride=2 bias=0; tanh"),
      sizes.between_image_and_dense("ConvAfterConv",
                                    "conv2d 3 kernel=2; tanh; conv2d 2 kernel=3 padding=2; tanh"),
      sizes.between_image_and_dense("ConvOfOnePixel", "tanh; conv2d 4 kernel=1 stride=2"),
      sizes.between_image_and_dense("MaxPool", "conv2d 3 kernel=1; max-pool 2"),
      sizes.between_image_and_dense("MaxPoolOverlapping",
                                    "conv2d 3 kernel=1; max-pool 3 stride=2 padding=1"),
      sizes.between_image_and_dense("AvgPool", "conv2d 3 kernel=1; avg-pool 2"),
      sizes.between_image_and_dense("AvgPoolOverlapping",
                                    "conv2d 3 kernel=1; avg-pool 3 stride=1 padding=2"),
      sizes.image_net("GlobalAvgPool", "conv2d 4 kernel=2; tanh; global-avg-pool; " + last),
      sizes.between_image_and_dense("BatchNormOfImages", "conv2d 3 kernel=2; batch-norm; tanh"),
      sizes.between_dense("BatchNormOfRows", "batch-norm momentum=0.3 epsilon=0.01; tanh"),
      sizes.between_dense("Relu", "relu"),
      sizes.between_dense("Tanh", "tanh"),
      sizes.between_dense("Gelu", "gelu"),
      sizes.row_net("TanhLast", last + "; tanh"),
      sizes.image_net("FlattenFirst", "flatten; " + last),
      sizes.between_image_and_dense(
          "ResidualIdentity", "conv2d 3 kernel=2; tanh; residual(conv2d 3 kernel=3 padding=1)"),
      sizes.between_image_and_dense("ResidualOverTheInput",
                                    "residual(conv2d " + channels + " kernel=1; tanh); tanh"),
      sizes.between_image_and_dense(
          "ResidualProjected",
          "conv2d 3 kernel=1; batch-norm; tanh; residual(conv2d 4 kernel=3 padding=1 stride=2; "
          "batch-norm; tanh; conv2d 4 kernel=1 | conv2d 4 kernel=1 stride=2; batch-norm); tanh"),
      sizes.between_dense("ResidualNested", "tanh; residual(" + dense + "; residual(tanh | " +
                                                dense + "; gelu | ); tanh)"),
      sizes.between_dense("ResidualOfActivations", "residual(tanh | gelu | )"),
      sizes.between_dense("ResidualOfItself", "residual( )"),
      {"Squared", "net:layers=dense 4; tanh; dense 1", 7, 0},
      {"Contrastive", "net:layers=dense 4; tanh; dense 3,loss=contrastive margin=2", 14, 2},
      {"ContrastiveImages",
       "net:input=3x3x1,layers=conv2d 2 kernel=2; batch-norm; tanh; flatten,loss=contrastive", 18,
       2},
  };
}

}  // namespace starling::models
