// The embedding of ids.
#include "starling/models/cuda/kernels/embedding.hpp"

#include "starling/models/cuda/kernels/rows.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

class EmbeddingLayer final : public DeviceLayer {
 public:
  explicit EmbeddingLayer(const EmbeddingForm& form) : form_(form) {}

  void forward(const ForwardCall& f) override {
    for_each(f.context, f.n * form_.length * form_.width,
             GatherRows<float>{f.x, f.w, f.y, static_cast<Index>(form_.width)}, "embedding");
  }
  void backward(const BackwardCall& b) override {
    const std::size_t ids = b.n * form_.length;
    for_each(b.context, ids * form_.width,
             EmbedBackward{b.x, b.order, b.dy, b.g, static_cast<Index>(ids),
                           static_cast<Index>(form_.width)},
             "embedding");
  }

 private:
  EmbeddingForm form_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_embedding(const EmbeddingForm& form) {
  return std::make_unique<EmbeddingLayer>(form);
}

}  // namespace starling::models::cuda
