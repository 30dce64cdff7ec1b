#include "starling/models/cuda/parameter_copies.hpp"

#include <algorithm>
#include <cstring>

#include "starling/base/check.hpp"
#include "starling/models/cuda/kernels/rows.hpp"
#include "starling/models/cuda/launch.hpp"

namespace starling::models::cuda {
namespace {

/// The most elements of a chunk: 4 MiB. A chunk of rows has at least one row, even if it is larger.
constexpr std::size_t chunk_max = std::size_t{1} << 20U;

/// Returns the number of whole rows in a chunk.
std::size_t rows_in_chunk(std::size_t width) { return std::max<std::size_t>(chunk_max / width, 1); }

std::size_t divide_rounding_up(std::size_t size, std::size_t divisor) {
  return (size + divisor - 1) / divisor;
}

/// Returns the number of rows of all row-sparse parameters.
std::size_t count_sparse_rows(const std::vector<Parameter>& parameters) {
  std::size_t rows = 0;
  for (const Parameter& p : parameters) rows += p.row_sparse ? p.shape[0] : 0;
  return rows;
}

}  // namespace

/// The elements that one copy moves: a contiguous part of the parameter vector, or touched rows of
/// one parameter. A contiguous part has the same offset in the staging memory as in the parameter
/// vector. The touched rows of a parameter are staged without gaps, from the parameter's offset on.
struct ParameterCopies::Chunk {
  /// The chunk's offset in the staging memory.
  std::size_t staged_offset;
  std::size_t size;
  /// The parameter to which the rows belong, if the chunk holds rows.
  Tensor tensor = {};
  /// The row indices of the chunk's rows; null if the chunk is a contiguous part.
  const std::uint32_t* rows = nullptr;
  /// The same row indices in the device's memory.
  const Index* device_rows = nullptr;

  /// Calls visit(offset in the parameter vector, offset in the staging memory, size) for each row,
  /// or once for a contiguous part.
  template <class Visit>
  void for_rows(const Visit& visit) const {
    if (rows == nullptr) return visit(staged_offset, staged_offset, size);
    for (std::size_t i = 0; i * tensor.width < size; ++i)
      visit(tensor.start + rows[i] * tensor.width, staged_offset + i * tensor.width, tensor.width);
  }
};

ParameterCopies::ParameterCopies(const std::vector<Parameter>& parameters)
    : w_staged_(total_size(parameters)),
      g_staged_(w_staged_.size()),
      rows_staged_(count_sparse_rows(parameters)),
      rows_(rows_staged_.size()) {
  std::size_t start = 0;
  std::size_t chunks = 0;
  for (const Parameter& p : parameters) {
    const Tensor tensor{start, p.size() / p.row_size(), p.row_size()};
    tensors_.push_back(tensor);
    start += p.size();
    if (p.row_sparse) {
      chunks += divide_rounding_up(tensor.rows, rows_in_chunk(tensor.width));
    } else if (!dense_segments_.empty() &&
               dense_segments_.back().start + dense_segments_.back().size == tensor.start) {
      dense_segments_.back().size += p.size();
    } else {
      dense_segments_.push_back({tensor.start, p.size()});
    }
  }
  for (const Segment& segment : dense_segments_)
    chunks += divide_rounding_up(segment.size, chunk_max);
  chunk_events_ = std::vector<Event>(chunks);
}

template <class Visit>
void ParameterCopies::for_chunks(const TouchedRowLists& touched, const Visit& visit) const {
  for (const auto& [start, size] : dense_segments_)
    for (std::size_t i = 0; i < size; i += chunk_max)
      visit(Chunk{.staged_offset = start + i, .size = std::min(chunk_max, size - i)});
  const Index* device_rows = rows_.data();
  for (const auto& [parameter, rows] : touched) {
    const Tensor& tensor = tensors_[parameter];
    const std::size_t chunk_rows = rows_in_chunk(tensor.width);
    for (std::size_t i = 0; i < rows.size(); i += chunk_rows)
      visit(Chunk{.staged_offset = tensor.start + i * tensor.width,
                  .size = std::min(chunk_rows, rows.size() - i) * tensor.width,
                  .tensor = tensor,
                  .rows = rows.data() + i,
                  .device_rows = device_rows + i});
    device_rows += rows.size();
  }
}

void ParameterCopies::upload(const Context& context, std::span<const float> w,
                             const TouchedRowLists& touched, float* device_staging,
                             float* device_w) {
  STARLING_CHECK(w.size() == w_staged_.size());
  const cudaStream_t stream = context.stream().get();
  Index* end = rows_staged_.data();
  for (const auto& [parameter, rows] : touched) {
    STARLING_CHECK(rows.empty() || rows.back() < tensors_[parameter].rows);
    end = std::ranges::copy(rows, end).out;
  }
  const auto count = static_cast<std::size_t>(end - rows_staged_.data());
  if (count > 0)
    check(cudaMemcpyAsync(rows_.data(), rows_staged_.data(), count * sizeof(Index),
                          cudaMemcpyHostToDevice, stream),
          "copying parameters");
  for_chunks(touched, [&](const Chunk& chunk) {
    chunk.for_rows([&](std::size_t from, std::size_t to, std::size_t size) {
      std::memcpy(w_staged_.data() + to, w.data() + from, size * sizeof(float));
    });
    float* to = (chunk.rows == nullptr ? device_w : device_staging) + chunk.staged_offset;
    check(cudaMemcpyAsync(to, w_staged_.data() + chunk.staged_offset, chunk.size * sizeof(float),
                          cudaMemcpyHostToDevice, stream),
          "copying parameters");
    if (chunk.rows == nullptr) return;
    for_each(context, chunk.size,
             ScatterRows{chunk.device_rows, to, device_w + chunk.tensor.start,
                         static_cast<Index>(chunk.tensor.width)},
             "copying parameters");
  });
}

void ParameterCopies::add_gradient_to(const Context& context, const float* device_g,
                                      const TouchedRowLists& touched, float* device_staging,
                                      std::span<float> g) {
  STARLING_CHECK(g.size() == g_staged_.size());
  std::size_t next = 0;
  for_chunks(touched, [&](const Chunk& chunk) {
    const float* from = (chunk.rows == nullptr ? device_g : device_staging) + chunk.staged_offset;
    if (chunk.rows != nullptr)
      for_each(context, chunk.size,
               GatherRows<Index>{chunk.device_rows, device_g + chunk.tensor.start,
                                 device_staging + chunk.staged_offset,
                                 static_cast<Index>(chunk.tensor.width)},
               "reading a gradient");
    check(cudaMemcpyAsync(g_staged_.data() + chunk.staged_offset, from, chunk.size * sizeof(float),
                          cudaMemcpyDeviceToHost, context.stream().get()),
          "reading a gradient");
    chunk_events_[next++].record(context.stream());
  });
  // Adds each chunk while the next one is copied.
  next = 0;
  for_chunks(touched, [&](const Chunk& chunk) {
    chunk_events_[next++].wait();
    chunk.for_rows([&](std::size_t to, std::size_t from, std::size_t size) {
      const float* staged = g_staged_.data() + from;
      for (std::size_t i = 0; i < size; ++i) g[to + i] += staged[i];
    });
  });
}

}  // namespace starling::models::cuda
