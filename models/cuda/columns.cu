#include <algorithm>

#include "starling/models/cuda/columns.hpp"
#include "starling/models/cuda/launch.hpp"

namespace starling::models::cuda {
namespace {

/// transpose_kernel transposes tiles of tile x tile elements with tile x tile_rows threads.
constexpr unsigned tile = 32;
constexpr unsigned tile_rows = 8;
/// The rows of a group are divided into at most this many parts, one for each block.
constexpr Index parts_max = 128;
/// A part has at most this many rows, unless a group would then have more than parts_max parts.
constexpr Index part_rows = 256;

/// Returns the number of parts into which the rows of each group are divided.
Index count_parts(const Groups& groups) {
  const Index rows = std::min(groups.rows, groups.group_rows);
  return std::clamp<Index>((rows + part_rows - 1) / part_rows, 1, parts_max);
}

/// Returns the number of columns that one block sums. It is small for a matrix with few columns, so
/// that all threads of the block have work.
unsigned block_columns(Index channels) { return channels <= 8 ? 8 : channels <= 16 ? 16 : 32; }

/// Two sums that are computed together.
struct Pair {
  float first;
  float second;
};

// The terms of the sums: operator() returns the terms for element `offset` of the matrix.
// `statistic` is the index of the element's group and channel in `mean`.
struct Value {
  const float* x;
  __device__ Pair operator()(std::uint64_t offset, Index) const { return {x[offset], 0}; }
};
struct Square {
  const float* x;
  const float* mean;
  __device__ Pair operator()(std::uint64_t offset, Index statistic) const {
    const float d = x[offset] - mean[statistic];
    return {d * d, 0};
  }
};
struct Product {
  const float* dy;
  const float* x;
  const float* mean;
  __device__ Pair operator()(std::uint64_t offset, Index statistic) const {
    return {dy[offset] * (x[offset] - mean[statistic]), dy[offset]};
  }
};

/// The block with index (column block, part, group) sums its columns over its part of the group's
/// rows. Writes the sums to `partial` [groups x parts x channels].
template <class Term>
__global__ void __launch_bounds__(block_threads)
    partial_sums_kernel(Groups groups, Index parts, Term term, Pair* partial) {
  __shared__ Pair shared[block_threads];
  const Index column = blockIdx.x * blockDim.x + threadIdx.x;
  const Index group = blockIdx.z;
  const Index size = groups.size(group);
  const Index part_size = (size + parts - 1) / parts;
  const Index begin = blockIdx.y * part_size;
  const Index end = min(begin + part_size, size);
  Pair sum{0, 0};
  if (column < groups.channels)
    for (Index r = begin + threadIdx.y; r < end; r += blockDim.y) {
      const std::uint64_t row = std::uint64_t{group} * groups.group_rows + r;
      const Pair value = term(row * groups.channels + column, group * groups.channels + column);
      sum.first += value.first;
      sum.second += value.second;
    }
  Pair* thread_sum = shared + threadIdx.y * blockDim.x + threadIdx.x;
  *thread_sum = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= groups.channels) return;
  for (unsigned r = 1; r < blockDim.y; ++r) {
    sum.first += thread_sum[r * blockDim.x].first;
    sum.second += thread_sum[r * blockDim.x].second;
  }
  partial[(std::uint64_t{group} * parts + blockIdx.y) * groups.channels + column] = sum;
}

/// Called for each statistic, that is, each group and channel: adds the sums of the group's parts.
struct AddParts {
  Index channels;
  Index parts;
  bool adds;
  const Pair* partial;
  float* first;
  /// May be null.
  float* second;
  __device__ void operator()(Index i) const {
    const Pair* from = partial + std::uint64_t{i / channels} * parts * channels + i % channels;
    Pair sum{0, 0};
    for (Index p = 0; p < parts; ++p) {
      sum.first += from[std::uint64_t{p} * channels].first;
      sum.second += from[std::uint64_t{p} * channels].second;
    }
    first[i] = adds ? first[i] + sum.first : sum.first;
    if (second != nullptr) second[i] = sum.second;
  }
};

/// Sums the terms that `term` returns. Writes the first of each Pair to `first`, or adds it if
/// `adds`, and writes the second to `second` unless that is null.
template <class Term>
void sum_terms(const Context& context, const Groups& groups, const Term& term, bool adds,
               float* first, float* second) {
  const Index parts = count_parts(groups);
  const unsigned width = block_columns(groups.channels);
  const dim3 block{width, block_threads / width};
  const dim3 grid{(groups.channels + width - 1) / width, parts, groups.count()};
  auto* partial = static_cast<Pair*>(context.scratch());
  partial_sums_kernel<<<grid, block, 0, context.stream().get()>>>(groups, parts, term, partial);
  check_launch("summing columns");
  for_each(context, std::size_t{groups.count()} * groups.channels,
           AddParts{groups.channels, parts, adds, partial, first, second}, "summing columns");
}

/// Each block reads a tile row by row into shared memory and writes its transpose row by row, so
/// that all accesses to global memory are coalesced.
__global__ void __launch_bounds__(block_threads)
    transpose_kernel(std::uint64_t rows, std::uint64_t columns, const float* from, bool adds,
                     float* to) {
  __shared__ float shared[tile][tile + 1];
  const std::uint64_t tiles_across = (columns + tile - 1) / tile;
  const std::uint64_t row = blockIdx.x / tiles_across * tile;
  const std::uint64_t column = blockIdx.x % tiles_across * tile;
  for (unsigned i = threadIdx.y; i < tile; i += tile_rows)
    if (row + i < rows && column + threadIdx.x < columns)
      shared[i][threadIdx.x] = from[(row + i) * columns + column + threadIdx.x];
  __syncthreads();
  for (unsigned i = threadIdx.y; i < tile; i += tile_rows) {
    if (column + i >= columns || row + threadIdx.x >= rows) continue;
    float& result = to[(column + i) * rows + row + threadIdx.x];
    const float value = shared[threadIdx.x][i];
    result = adds ? result + value : value;
  }
}

}  // namespace

std::size_t column_scratch_bytes(const Groups& groups) {
  return std::size_t{groups.count()} * count_parts(groups) * groups.channels * sizeof(Pair);
}

void sum_columns(const Context& context, const Groups& groups, const float* x, bool adds,
                 float* sums) {
  sum_terms(context, groups, Value{x}, adds, sums, nullptr);
}

void sum_squares(const Context& context, const Groups& groups, const float* x, const float* mean,
                 float* sums) {
  sum_terms(context, groups, Square{x, mean}, false, sums, nullptr);
}

void sum_products(const Context& context, const Groups& groups, const float* dy, const float* x,
                  const float* mean, float* products, float* totals) {
  sum_terms(context, groups, Product{dy, x, mean}, false, products, totals);
}

void transpose(const Context& context, std::size_t rows, std::size_t columns, const float* from,
               bool adds, float* to) {
  const std::size_t tiles = (rows + tile - 1) / tile * ((columns + tile - 1) / tile);
  if (tiles == 0) return;
  transpose_kernel<<<static_cast<unsigned>(tiles), dim3{tile, tile_rows}, 0,
                     context.stream().get()>>>(rows, columns, from, adds, to);
  check_launch("transposing");
}

}  // namespace starling::models::cuda
