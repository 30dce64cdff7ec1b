#include "starling/models/cuda/training/device_update.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "starling/models/cuda/launch.hpp"

namespace starling::models::cuda {
namespace {

/// The most elements in a segment, which one block updates.
constexpr std::size_t segment_max = 4096;

/// Returns the sum of all threads' values in thread 0, and 0 in the others.
__device__ double block_sum(double value) {
  __shared__ double shared[block_threads];
  shared[threadIdx.x] = value;
  for (unsigned step = block_threads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
  }
  return threadIdx.x == 0 ? shared[0] : 0;
}

/// Writes the sum of the gradient's squares in each segment to `squares`; 0 if it is not trained.
__global__ void __launch_bounds__(block_threads)
    squares_kernel(const Segment* segments, const float* g, double* squares) {
  const Segment segment = segments[blockIdx.x];
  const unsigned size = segment.trained ? segment.size : 0;
  double sum = 0;
  for (unsigned i = threadIdx.x; i < size; i += block_threads) {
    const auto value = static_cast<double>(g[segment.start + i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

/// Computes the factor that clips the gradient's norm to `limit`. Must be launched with one block.
__global__ void __launch_bounds__(block_threads)
    factor_kernel(unsigned count, const double* squares, double limit, float* factor) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < count; i += block_threads) sum += squares[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *factor = norm_factor(sum, limit);
}

/// Each block updates one segment. `factor` is null if the gradient's norm is not clipped.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads)
    update_kernel(const Segment* segments, const StagedUpdate* staged, const float* g, float* w,
                  float* state, std::uint64_t total, const float* factor, float limit) {
  const Update<Arithmetic> update{*staged, g, w, state, total};
  const Segment segment = segments[blockIdx.x];
  const Clipping clip{factor == nullptr ? 1 : *factor, limit};
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < segment.size; i += block_threads)
    update(segment, segment.start + i, clip);
}

/// Divides each parameter tensor into segments.
std::vector<Segment> make_segments(const std::vector<Parameter>& parameters) {
  std::vector<Segment> segments;
  std::uint64_t start = 0;
  for (const Parameter& parameter : parameters) {
    const std::uint64_t end = start + parameter.size();
    for (; start < end; start += segments.back().size)
      segments.push_back({.size = static_cast<std::uint32_t>(std::min(end - start, segment_max)),
                          .start = start,
                          .decays = parameter.decay,
                          .trained = parameter.trained});
  }
  return segments;
}

}  // namespace

DeviceUpdate::DeviceUpdate(const Optimizer& optimizer, const Clip& clip,
                           const std::vector<Parameter>& parameters)
    : optimizer_(optimizer), clip_(clip_bounds(clip)), total_(total_size(parameters)) {
  const std::vector<Segment> segments = make_segments(parameters);
  segments_ = DeviceArray<Segment>{segments.size()};
  check(cudaMemcpy(segments_.data(), segments.data(), segments_.bytes(), cudaMemcpyHostToDevice),
        "copying to the device");
  state_ = DeviceArray<float>{slot_count(optimizer) * total_};
  if (state_.size() > 0) check(cudaMemset(state_.data(), 0, state_.bytes()), "clearing a state");
  finish_default_stream();
  if (std::isinf(clip_.norm)) return;
  squares_ = DeviceArray<double>{segments.size()};
  factor_ = DeviceArray<float>{1};
}

void DeviceUpdate::apply(const Context& context, const StagedUpdate* staged, const float* g,
                         float* w) {
  if (total_ == 0) return;
  const cudaStream_t stream = context.stream().get();
  if (!std::isinf(clip_.norm)) {
    squares_kernel<<<blocks(), block_threads, 0, stream>>>(segments_.data(), g, squares_.data());
    check_launch("clipping");
    factor_kernel<<<1, block_threads, 0, stream>>>(blocks(), squares_.data(), clip_.norm,
                                                   factor_.data());
    check_launch("clipping");
  }
  std::visit(
      [&]<class O>(const O&) {
        update_kernel<OptimizerUpdate<O>><<<blocks(), block_threads, 0, stream>>>(
            segments_.data(), staged, g, w, state_.data(), total_, factor_.data(), clip_.value);
      },
      optimizer_);
  check_launch("updating parameters");
}

}  // namespace starling::models::cuda
