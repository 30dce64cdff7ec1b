#include "starling/base/check.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/training/device_compress.hpp"
#include "starling/models/optimizer/threshold_element.hpp"

namespace starling::models::cuda {
namespace {

/// Consecutive elements that one thread handles, and one block.
constexpr unsigned in_thread = 4;
constexpr unsigned in_block = in_thread * block_threads;

/// Returns the sum of the values of the threads before this one, and the sum of all in `total`.
/// Requires: all threads of the block call.
__device__ std::uint32_t sum_before(std::uint32_t value, std::uint32_t& total) {
  __shared__ std::uint32_t shared[block_threads];
  __syncthreads();
  shared[threadIdx.x] = value;
  for (unsigned step = 1; step < block_threads; step *= 2) {
    __syncthreads();
    const std::uint32_t before = threadIdx.x >= step ? shared[threadIdx.x - step] : 0;
    __syncthreads();
    shared[threadIdx.x] += before;
  }
  __syncthreads();
  total = shared[block_threads - 1];
  return shared[threadIdx.x] - value;
}

/// The first element of this thread.
__device__ std::uint64_t first_element() {
  return std::uint64_t{blockIdx.x} * in_block + threadIdx.x * in_thread;
}

__device__ std::uint32_t count_sent(const Threshold& how, std::uint64_t size,
                                    const float* residual) {
  std::uint32_t count = 0;
  const std::uint64_t first = first_element();
  for (unsigned k = 0; k < in_thread && first + k < size; ++k)
    count += is_sent(how, residual[first + k]) ? 1 : 0;
  return count;
}

__global__ void __launch_bounds__(block_threads)
    gather_kernel(Threshold how, std::uint64_t size, const float* g, float* residual,
                  std::uint32_t* counts) {
  const std::uint64_t first = first_element();
  for (unsigned k = 0; k < in_thread && first + k < size; ++k) residual[first + k] += g[first + k];
  std::uint32_t total = 0;
  sum_before(count_sent(how, size, residual), total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

/// One block: turns counts into places, with their sum behind the last.
__global__ void __launch_bounds__(block_threads)
    place_kernel(std::uint32_t blocks, std::uint32_t* counts) {
  std::uint32_t before = 0;
  for (std::uint32_t at = 0; at < blocks; at += block_threads) {
    const std::uint32_t i = at + threadIdx.x;
    std::uint32_t total = 0;
    const std::uint32_t place = sum_before(i < blocks ? counts[i] : 0, total);
    if (i < blocks) counts[i] = before + place;
    before += total;
  }
  if (threadIdx.x == 0) counts[blocks] = before;
}

__global__ void __launch_bounds__(block_threads)
    send_kernel(Threshold how, std::uint64_t size, const std::uint32_t* places, float* residual,
                std::uint32_t* indices, float* values) {
  std::uint32_t total = 0;
  std::uint32_t at = places[blockIdx.x] + sum_before(count_sent(how, size, residual), total);
  const std::uint64_t first = first_element();
  for (unsigned k = 0; k < in_thread && first + k < size; ++k) {
    const float whole = residual[first + k];
    if (!is_sent(how, whole)) continue;
    residual[first + k] = left_value(how, whole);
    indices[at] = sent_index(how, static_cast<Index>(first + k), whole);
    if (values != nullptr) values[at] = sent_value(how, whole);
    ++at;
  }
}

std::size_t blocks_of(std::size_t size) { return (size + in_block - 1) / in_block; }

template <class T>
std::vector<T> read(const Context& context, const DeviceArray<T>& from, std::size_t count) {
  std::vector<T> all(count);
  if (count == 0) return all;
  check(cudaMemcpyAsync(all.data(), from.data(), count * sizeof(T), cudaMemcpyDeviceToHost,
                        context.stream().get()),
        "reading what is sent");
  context.stream().finish();
  return all;
}

}  // namespace

DeviceCompressor::DeviceCompressor(const Threshold& how, std::size_t size)
    : how_(how),
      size_(size),
      residual_(size),
      places_(blocks_of(size) + 1),
      indices_(size),
      values_(how.form == Threshold::Form::values ? size : 0) {
  STARLING_CHECK(is_valid(how) && size <= threshold_size_max);
  if (size == 0) return;
  check(cudaMemset(residual_.data(), 0, residual_.bytes()), "clearing a residual");
  finish_default_stream();
}

SparseGradient DeviceCompressor::compress(const Context& context, const float* g) {
  if (size_ == 0) return {};
  const auto blocks = static_cast<unsigned>(blocks_of(size_));
  const cudaStream_t stream = context.stream().get();
  gather_kernel<<<blocks, block_threads, 0, stream>>>(how_, size_, g, residual_.data(),
                                                      places_.data());
  check_launch("compressing");
  place_kernel<<<1, block_threads, 0, stream>>>(blocks, places_.data());
  check_launch("compressing");
  send_kernel<<<blocks, block_threads, 0, stream>>>(how_, size_, places_.data(), residual_.data(),
                                                    indices_.data(), values_.data());
  check_launch("compressing");
  std::uint32_t count = 0;
  check(cudaMemcpyAsync(&count, places_.data() + blocks, sizeof count, cudaMemcpyDeviceToHost,
                        stream),
        "reading what is sent");
  context.stream().finish();
  return {read(context, indices_, count), read(context, values_, values_.size() == 0 ? 0 : count)};
}

}  // namespace starling::models::cuda
