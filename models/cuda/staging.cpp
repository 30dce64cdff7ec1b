#include "starling/models/cuda/staging.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "starling/base/check.hpp"

namespace starling::models::cuda {

namespace {

/// Returns the number of ids that the net's embedding knows; the smallest of these numbers if there
/// are several embeddings.
std::size_t count_ids(const Net<float>& net) {
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (const Operation<float>& operation : net.plan().operations()) {
    if (operation.layer == nullptr) continue;
    const LayerSpecification specification = operation.layer->specification();
    if (const auto* embedding = std::get_if<EmbeddingSpecification>(&specification))
      smallest = std::min(smallest, embedding->ids);
  }
  return smallest;
}

}  // namespace

/// The offsets in bytes of the arrays for some number of rows, and the size of all together.
struct Staging::Layout {
  std::size_t seed, labels, order, x, bytes;
};

Staging::Staging(const Net<float>& net, std::size_t ids_in_row)
    : features_(net.features()),
      label_limit_(net.loss() == Net<float>::Loss::softmax       ? net.outputs()
                   : net.loss() == Net<float>::Loss::contrastive ? 2
                                                                 : 0),
      ids_in_row_(ids_in_row),
      id_limit_(count_ids(net)) {}

Staging::Layout Staging::layout(std::size_t rows) const {
  BlockLayout block;
  Layout offsets{};
  offsets.seed = block.add<std::uint64_t>(1);
  offsets.labels = block.add<float>(rows);
  offsets.order = block.add<Index>(rows * ids_in_row_);
  offsets.x = block.add<float>(rows * features_);
  offsets.bytes = block.bytes();
  return offsets;
}

bool Staging::reserve(std::size_t rows) {
  const std::size_t bytes = layout(rows).bytes;
  if (bytes <= device_.bytes()) return false;
  rows_ = 0;
  host_ = PinnedMemory{};
  device_ = DeviceMemory{};
  host_ = PinnedMemory{bytes};
  device_ = DeviceMemory{bytes};
  return true;
}

void Staging::fill(const Table& data, Batch batch, std::uint64_t seed) {
  const Layout offsets = layout(batch.size());
  STARLING_CHECK(offsets.bytes <= host_.bytes() && data.features() == features_);
  rows_ = batch.size();
  if (data.is_mapped()) data.prefetch(batch);  // reads all rows at once, not one by one
  *array_at<std::uint64_t>(host_, offsets.seed) = seed;
  auto* labels = array_at<float>(host_, offsets.labels);
  auto* x = array_at<float>(host_, offsets.x);
  for (std::size_t i = 0; i < rows_; ++i) {
    labels[i] = data.label(batch[i]);
    // A label that is not a class would make the loss read beyond the scores.
    STARLING_CHECK(label_limit_ == 0 ||
                   (labels[i] >= 0 && labels[i] < static_cast<float>(label_limit_)));
    std::ranges::copy(data.dense_row(batch[i]), x + i * features_);
  }
  if (ids_in_row_ > 0) sort_by_id(x, array_at<Index>(host_, offsets.order));
}

void Staging::sort_by_id(const float* x, Index* order) const {
  const std::size_t ids = rows_ * ids_in_row_;
  for (std::size_t i = 0; i < ids; ++i)
    STARLING_CHECK(x[i] >= 0 && x[i] < static_cast<float>(id_limit_));
  std::iota(order, order + ids, Index{0});
  // std::stable_sort would allocate memory.
  std::sort(order, order + ids,
            [&](Index a, Index b) { return x[a] < x[b] || (x[a] == x[b] && a < b); });
}

void Staging::upload(const Stream& stream) const {
  check(cudaMemcpyAsync(device_.data(), host_.data(), layout(rows_).bytes, cudaMemcpyHostToDevice,
                        stream.get()),
        "copying a batch");
}

NetInput Staging::input() const {
  const Layout offsets = layout(rows_);
  return {.x = array_at<float>(device_, offsets.x),
          .labels = array_at<float>(device_, offsets.labels),
          .order = ids_in_row_ == 0 ? nullptr : array_at<Index>(device_, offsets.order),
          .seed = array_at<std::uint64_t>(device_, offsets.seed)};
}

}  // namespace starling::models::cuda
