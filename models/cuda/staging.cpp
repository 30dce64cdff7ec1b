#include "starling/models/cuda/staging.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "starling/base/check.hpp"

namespace starling::models::cuda {

namespace {

/// How many ids every embedding of the net knows.
std::size_t ids_of(const Net<float>& net) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const PlanStep<float>& step : net.plan().steps()) {
    if (step.layer == nullptr) continue;
    const LayerForm form = step.layer->form();
    if (const auto* embedding = std::get_if<EmbeddingForm>(&form))
      least = std::min(least, embedding->ids);
  }
  return least;
}

}  // namespace

/// The offsets of the parts, and the bytes of all, for some number of rows.
struct Staging::Layout {
  std::size_t seed, labels, order, x, bytes;
};

Staging::Staging(const Net<float>& net, std::size_t ids_in_row)
    : features_(net.features()),
      labels_max_(net.loss() == Net<float>::Loss::softmax       ? net.outputs()
                  : net.loss() == Net<float>::Loss::contrastive ? 2
                                                                : 0),
      ids_in_row_(ids_in_row),
      ids_max_(ids_of(net)) {}

Staging::Layout Staging::layout(std::size_t rows) const {
  Parts parts;
  Layout at{};
  at.seed = parts.plan<std::uint64_t>(1);
  at.labels = parts.plan<float>(rows);
  at.order = parts.plan<Index>(rows * ids_in_row_);
  at.x = parts.plan<float>(rows * features_);
  at.bytes = parts.bytes();
  return at;
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
  const Layout at = layout(batch.size());
  STARLING_CHECK(at.bytes <= host_.bytes() && data.features() == features_);
  rows_ = batch.size();
  *part<std::uint64_t>(host_, at.seed) = seed;
  auto* labels = part<float>(host_, at.labels);
  auto* x = part<float>(host_, at.x);
  for (std::size_t i = 0; i < rows_; ++i) {
    labels[i] = data.label(batch[i]);
    // A label that is not a class would make the loss read beyond the scores.
    STARLING_CHECK(labels_max_ == 0 ||
                   (labels[i] >= 0 && labels[i] < static_cast<float>(labels_max_)));
    std::ranges::copy(data.dense_row(batch[i]), x + i * features_);
  }
  if (ids_in_row_ > 0) gather_order(x, part<Index>(host_, at.order));
}

void Staging::gather_order(const float* x, Index* order) const {
  const std::size_t ids = rows_ * ids_in_row_;
  for (std::size_t i = 0; i < ids; ++i)
    STARLING_CHECK(x[i] >= 0 && x[i] < static_cast<float>(ids_max_));
  std::iota(order, order + ids, Index{0});
  // std::stable_sort would take memory.
  std::sort(order, order + ids,
            [&](Index a, Index b) { return x[a] < x[b] || (x[a] == x[b] && a < b); });
}

void Staging::upload(const Stream& stream) const {
  check(cudaMemcpyAsync(device_.data(), host_.data(), layout(rows_).bytes, cudaMemcpyHostToDevice,
                        stream.get()),
        "copying a batch");
}

NetInput Staging::input() const {
  const Layout at = layout(rows_);
  return {.x = part<float>(device_, at.x),
          .labels = part<float>(device_, at.labels),
          .order = ids_in_row_ == 0 ? nullptr : part<Index>(device_, at.order),
          .seed = part<std::uint64_t>(device_, at.seed)};
}

}  // namespace starling::models::cuda
