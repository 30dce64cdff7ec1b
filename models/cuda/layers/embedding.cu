// The embedding layer, which looks up a vector for each id.
#include "starling/models/cuda/kernels/embedding.hpp"

#include "starling/models/cuda/kernels/rows.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

class EmbeddingLayer final : public DeviceLayer {
 public:
  explicit EmbeddingLayer(const EmbeddingSpecification& specification)
      : specification_(specification) {}

  void forward(const ForwardCall& f) override {
    for_each(f.context, f.n * specification_.length * specification_.width,
             GatherRows<float>{f.x, f.w, f.y, static_cast<Index>(specification_.width)},
             "embedding");
  }
  void backward(const BackwardCall& b) override {
    const std::size_t ids = b.n * specification_.length;
    for_each(b.context, ids * specification_.width,
             EmbedBackward{b.x, b.order, b.dy, b.g, static_cast<Index>(ids),
                           static_cast<Index>(specification_.width)},
             "embedding");
  }

 private:
  EmbeddingSpecification specification_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_embedding(const EmbeddingSpecification& specification) {
  return std::make_unique<EmbeddingLayer>(specification);
}

}  // namespace starling::models::cuda
