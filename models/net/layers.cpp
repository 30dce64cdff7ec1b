#include "starling/models/net/layers.hpp"

#include <string>

#include "starling/base/text.hpp"
#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

/// A kind of layer and its maker function.
template <class T>
struct LayerEntry {
  LayerKind kind;
  LayerPointer<T> (*make)(SpecReader&, const Shape&);
};

template <class T>
const std::vector<LayerEntry<T>>& layer_entries() {
  static const std::vector<LayerEntry<T>> list{
      {{"conv2d", "conv2d CHANNELS kernel=K [stride=1] [padding=0] [bias=1]", "convolution",
        InputKind::image},
       make_conv2d<T>},
      {{"max-pool", "max-pool SIZE [stride=SIZE] [padding=0]", "the largest number of each window",
        InputKind::image},
       make_max_pool<T>},
      {{"avg-pool", "avg-pool SIZE [stride=SIZE] [padding=0]", "the mean of each window",
        InputKind::image},
       make_avg_pool<T>},
      {{"global-avg-pool", "global-avg-pool", "the mean of each channel", InputKind::image},
       make_global_avg_pool<T>},
      {{"dense", "dense OUTPUTS [bias=1]", "fully connected", InputKind::row}, make_dense<T>},
      {{"embedding", "embedding IDS width=W", "a learned vector for each id", InputKind::row},
       make_embedding<T>},
      {{"flatten", "flatten", "one row of numbers", InputKind::any}, make_flatten<T>},
      {{"batch-norm", "batch-norm [momentum=0.1] [epsilon=0.00001]",
        "scales each channel, or number, to mean 0 and variance 1 over the batch", InputKind::any},
       make_batch_norm<T>},
      {{"dropout", "dropout RATE",
        "sets the share RATE of the numbers to 0 at random while training", InputKind::any},
       make_dropout<T>},
      {{"random-flip", "random-flip", "mirrors half of the images left to right while training",
        InputKind::image},
       make_random_flip<T>},
      {{"random-shift", "random-shift PIXELS", "moves images by up to PIXELS while training",
        InputKind::image},
       make_random_shift<T>},
      {{"relu", "relu", "max(x, 0)", InputKind::any}, make_relu<T>},
      {{"tanh", "tanh", "tanh(x)", InputKind::any}, make_tanh<T>},
      {{"gelu", "gelu", "x times the probability that a standard normal is below x",
        InputKind::any},
       make_gelu<T>},
  };
  return list;
}

Error unknown_layer_error(const std::string& name) {
  std::vector<std::string> names;
  for (const LayerKind& kind : layer_kinds()) names.emplace_back(kind.name);
  names.emplace_back("residual");
  return Error{"unknown layer " + quote(name) + "; " + suggest(name, names)};
}

}  // namespace

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = [] {
    std::vector<LayerKind> list;
    for (const auto& entry : layer_entries<float>()) list.push_back(entry.kind);
    return list;
  }();
  return kinds;
}

template <class T>
Result<LayerPointer<T>> make_layer(const Spec& spec, const Shape& input) {
  for (const LayerEntry<T>& entry : layer_entries<T>()) {
    if (entry.kind.name != spec.name) continue;
    SpecReader reader{spec};
    LayerPointer<T> layer = entry.make(reader, input);
    if (auto done = reader.finish(); !done) return std::move(done).error();
    return layer;
  }
  return unknown_layer_error(spec.name);
}

template Result<LayerPointer<float>> make_layer(const Spec&, const Shape&);
template Result<LayerPointer<double>> make_layer(const Spec&, const Shape&);

}  // namespace starling::models
