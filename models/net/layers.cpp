#include "starling/models/net/layers.hpp"

#include <string>

#include "starling/base/text.hpp"
#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

template <class T>
struct Entry {
  LayerName name;
  LayerPointer<T> (*make)(SpecReader&, const Shape&);
};

template <class T>
const std::vector<Entry<T>>& entries() {
  static const std::vector<Entry<T>> all{
      {{"conv2d", "conv2d CHANNELS kernel=K [stride=1] [padding=0] [bias=1]", "convolution",
        Reads::images},
       make_conv2d<T>},
      {{"max-pool", "max-pool SIZE [stride=SIZE] [padding=0]", "the largest of each window",
        Reads::images},
       make_max_pool<T>},
      {{"avg-pool", "avg-pool SIZE [stride=SIZE] [padding=0]", "the mean of each window",
        Reads::images},
       make_avg_pool<T>},
      {{"global-avg-pool", "global-avg-pool", "the mean of each channel", Reads::images},
       make_global_avg_pool<T>},
      {{"dense", "dense OUTPUTS [bias=1]", "fully connected", Reads::rows}, make_dense<T>},
      {{"embedding", "embedding IDS width=W", "a learned vector for each id", Reads::rows},
       make_embedding<T>},
      {{"flatten", "flatten", "one row of numbers", Reads::anything}, make_flatten<T>},
      {{"batch-norm", "batch-norm [momentum=0.1] [epsilon=0.00001]",
        "each channel, or number, to mean 0 and variance 1 over the batch", Reads::anything},
       make_batch_norm<T>},
      {{"dropout", "dropout RATE", "drops that share at random while training", Reads::anything},
       make_dropout<T>},
      {{"random-flip", "random-flip", "mirrors half of the images left to right while training",
        Reads::images},
       make_random_flip<T>},
      {{"random-shift", "random-shift PIXELS", "moves images by up to so many while training",
        Reads::images},
       make_random_shift<T>},
      {{"relu", "relu", "max(x, 0)", Reads::anything}, make_relu<T>},
      {{"tanh", "tanh", "tanh(x)", Reads::anything}, make_tanh<T>},
      {{"gelu", "gelu", "x times the chance that a standard normal is below x", Reads::anything},
       make_gelu<T>},
  };
  return all;
}

Error unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const LayerName& layer : layer_names()) names.emplace_back(layer.name);
  names.emplace_back("residual");
  return Error{"unknown layer " + shown(name) + "; " + suggest(name, names)};
}

}  // namespace

const std::vector<LayerName>& layer_names() {
  static const std::vector<LayerName> names = [] {
    std::vector<LayerName> all;
    for (const auto& entry : entries<float>()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

template <class T>
Result<LayerPointer<T>> make_layer(const Spec& spec, const Shape& input) {
  for (const Entry<T>& entry : entries<T>()) {
    if (entry.name.name != spec.name) continue;
    SpecReader read{spec};
    LayerPointer<T> layer = entry.make(read, input);
    if (auto done = read.finish(); !done) return std::move(done).error();
    return layer;
  }
  return unknown(spec.name);
}

template Result<LayerPointer<float>> make_layer(const Spec&, const Shape&);
template Result<LayerPointer<double>> make_layer(const Spec&, const Shape&);

}  // namespace starling::models
