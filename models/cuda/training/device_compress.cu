#include "starling/base/check.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/training/device_compress.hpp"
#include "starling/models/optimizer/threshold_element.hpp"

namespace starling::models::cuda {
namespace {

/// The numbers of consecutive elements that one thread and one block handle.
constexpr unsigned thread_elements = 4;
constexpr unsigned block_elements = thread_elements * block_threads;

/// Computes the exclusive prefix sum over a block: returns the sum of the values of the threads
/// before this one, and sets `total` to the sum of all. Requires: all threads of the block call it.
__device__ std::uint32_t exclusive_scan(std::uint32_t value, std::uint32_t& total) {
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

/// Returns the index of this thread's first element.
__device__ std::uint64_t first_element() {
  return std::uint64_t{blockIdx.x} * block_elements + threadIdx.x * thread_elements;
}

/// Returns the number of this thread's elements that are sent.
__device__ std::uint32_t count_sent(const Threshold& threshold, std::uint64_t size,
                                    const float* residual) {
  std::uint32_t count = 0;
  const std::uint64_t first = first_element();
  for (unsigned k = 0; k < thread_elements && first + k < size; ++k)
    count += is_sent(threshold, residual[first + k]) ? 1 : 0;
  return count;
}

/// Adds g to the residual, and counts the elements that each block sends.
__global__ void __launch_bounds__(block_threads)
    accumulate_kernel(Threshold threshold, std::uint64_t size, const float* g, float* residual,
                      std::uint32_t* counts) {
  const std::uint64_t first = first_element();
  for (unsigned k = 0; k < thread_elements && first + k < size; ++k)
    residual[first + k] += g[first + k];
  std::uint32_t total = 0;
  exclusive_scan(count_sent(threshold, size, residual), total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

/// Turns the counts of the blocks into the index of each block's first sent element. Writes the sum
/// of all counts after them. Must be launched with one block.
__global__ void __launch_bounds__(block_threads)
    scan_kernel(std::uint32_t blocks, std::uint32_t* counts) {
  std::uint32_t before = 0;
  for (std::uint32_t first = 0; first < blocks; first += block_threads) {
    const std::uint32_t i = first + threadIdx.x;
    std::uint32_t total = 0;
    const std::uint32_t start = exclusive_scan(i < blocks ? counts[i] : 0, total);
    if (i < blocks) counts[i] = before + start;
    before += total;
  }
  if (threadIdx.x == 0) counts[blocks] = before;
}

/// Writes the elements to send to `indices` and, unless it is null, `values`. Subtracts them from
/// the residual.
__global__ void __launch_bounds__(block_threads)
    send_kernel(Threshold threshold, std::uint64_t size, const std::uint32_t* block_starts,
                float* residual, std::uint32_t* indices, float* values) {
  std::uint32_t total = 0;
  std::uint32_t next =
      block_starts[blockIdx.x] + exclusive_scan(count_sent(threshold, size, residual), total);
  const std::uint64_t first = first_element();
  for (unsigned k = 0; k < thread_elements && first + k < size; ++k) {
    const float accumulated = residual[first + k];
    if (!is_sent(threshold, accumulated)) continue;
    residual[first + k] = kept_value(threshold, accumulated);
    indices[next] = sent_index(threshold, static_cast<Index>(first + k), accumulated);
    if (values != nullptr) values[next] = sent_value(threshold, accumulated);
    ++next;
  }
}

std::size_t count_blocks(std::size_t size) { return (size + block_elements - 1) / block_elements; }

/// Copies the first `count` elements of `from` to the host and waits for them.
template <class T>
std::vector<T> read(const Context& context, const DeviceArray<T>& from, std::size_t count) {
  std::vector<T> elements(count);
  if (count == 0) return elements;
  check(cudaMemcpyAsync(elements.data(), from.data(), count * sizeof(T), cudaMemcpyDeviceToHost,
                        context.stream().get()),
        "reading the elements to send");
  context.stream().finish();
  return elements;
}

}  // namespace

DeviceCompressor::DeviceCompressor(const Threshold& threshold, std::size_t size)
    : threshold_(threshold),
      size_(size),
      residual_(size),
      block_starts_(count_blocks(size) + 1),
      indices_(size),
      values_(threshold.form == Threshold::Form::values ? size : 0) {
  STARLING_CHECK(is_valid(threshold) && size <= threshold_size_max);
  if (size == 0) return;
  check(cudaMemset(residual_.data(), 0, residual_.bytes()), "clearing a residual");
  finish_default_stream();
}

SparseGradient DeviceCompressor::compress(const Context& context, const float* g) {
  if (size_ == 0) return {};
  const auto blocks = static_cast<unsigned>(count_blocks(size_));
  const cudaStream_t stream = context.stream().get();
  accumulate_kernel<<<blocks, block_threads, 0, stream>>>(threshold_, size_, g, residual_.data(),
                                                          block_starts_.data());
  check_launch("compressing");
  scan_kernel<<<1, block_threads, 0, stream>>>(blocks, block_starts_.data());
  check_launch("compressing");
  send_kernel<<<blocks, block_threads, 0, stream>>>(
      threshold_, size_, block_starts_.data(), residual_.data(), indices_.data(), values_.data());
  check_launch("compressing");
  std::uint32_t count = 0;
  check(cudaMemcpyAsync(&count, block_starts_.data() + blocks, sizeof count, cudaMemcpyDeviceToHost,
                        stream),
        "reading the elements to send");
  context.stream().finish();
  return {read(context, indices_, count), read(context, values_, values_.size() == 0 ? 0 : count)};
}

}  // namespace starling::models::cuda
