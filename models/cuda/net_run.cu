#include "starling/models/cuda/net_run.hpp"

#include <algorithm>

#include "starling/models/cuda/kernels/elementwise.hpp"
#include "starling/models/cuda/kernels/loss.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/tabular/affine.hpp"

namespace starling::models::cuda {
namespace {

/// The most elements of one tensor of a micro-batch. An Index counts them, and must not overflow
/// when a stride is added to it.
constexpr std::size_t tensor_max = std::size_t{1} << 30U;
/// The most rows of a micro-batch, even if its tensors are small.
constexpr std::size_t micro_batch_rows_max = 4096;
constexpr unsigned warp = 32;

/// The lanes of a warp that compute the loss of a row together; see OneLane in kernels/loss.hpp.
/// All lanes must call the same functions.
struct WarpLanes {
  __device__ static Index lane() { return threadIdx.x % warp; }
  __device__ static Index count() { return warp; }
  __device__ static float sum(float value) {
    for (unsigned step = warp / 2; step > 0; step /= 2)
      value += __shfl_xor_sync(0xffffffffU, value, step);
    return value;
  }
  __device__ static void find_best(float& score, Index& index) {
    for (unsigned step = warp / 2; step > 0; step /= 2) {
      const float other_score = __shfl_xor_sync(0xffffffffU, score, step);
      const Index other_index = __shfl_xor_sync(0xffffffffU, index, step);
      if (other_score > score || (other_score == score && other_index < index)) {
        score = other_score;
        index = other_index;
      }
    }
  }
};

/// The arguments of loss_kernel.
struct LossCall {
  Net<float>::Loss kind;
  Index rows;
  /// The number of scores of one row.
  Index width;
  float margin;
  float weight;
  const float* scores;
  const float* labels;
  /// Null if no derivatives are needed.
  float* derivatives;
  double* losses;
  double* metric_values;
};

/// Computes the loss of each row, and its derivatives with respect to the scores. One warp computes
/// one row.
__global__ void __launch_bounds__(block_threads) loss_kernel(LossCall call) {
  const Index row = blockIdx.x * (block_threads / warp) + threadIdx.x / warp;
  if (row >= call.rows) return;
  const float* z = call.scores + std::size_t{row} * call.width;
  float* derivatives =
      call.derivatives == nullptr ? nullptr : call.derivatives + std::size_t{row} * call.width;
  const float label = call.labels[row];
  const WarpLanes lanes;
  RowLoss result{0, 0};
  switch (call.kind) {
    case Net<float>::Loss::softmax:
      result =
          softmax_row(z, call.width, static_cast<Index>(label), call.weight, derivatives, lanes);
      break;
    case Net<float>::Loss::squared:
      result = squared_row(*z, label, call.weight, lanes.lane() == 0 ? derivatives : nullptr);
      break;
    case Net<float>::Loss::contrastive:
      result = contrastive_row(z, call.width / 2, label == 0, call.margin, call.weight, derivatives,
                               lanes);
      break;
  }
  if (lanes.lane() > 0) return;
  call.losses[row] = result.loss;
  call.metric_values[row] = result.metric_value;
}

/// Adds the rows' losses and metric_values to `sums`. Must be launched with one block, so that the
/// order of additions is always the same.
__global__ void __launch_bounds__(block_threads)
    accumulate_kernel(Index rows, const double* losses, const double* metric_values,
                      Accumulator* sums) {
  __shared__ double shared[2][block_threads];
  double loss = 0;
  double metric_value = 0;
  for (Index row = threadIdx.x; row < rows; row += block_threads) {
    loss += losses[row];
    metric_value += metric_values[row];
  }
  shared[0][threadIdx.x] = loss;
  shared[1][threadIdx.x] = metric_value;
  for (unsigned step = block_threads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x >= step) continue;
    shared[0][threadIdx.x] += shared[0][threadIdx.x + step];
    shared[1][threadIdx.x] += shared[1][threadIdx.x + step];
  }
  if (threadIdx.x > 0) return;
  sums->loss += shared[0][0];
  sums->metric_value += shared[1][0];
}

/// Returns the number of elements of the net's largest value for one row, which may hold two
/// inputs.
std::size_t largest_value(const Net<float>& net) {
  std::size_t largest = 0;
  for (const auto& value : net.plan().values()) largest = std::max(largest, volume(value.shape));
  return largest * net.inputs_in_row();
}

void copy(const Context& context, std::size_t size, const float* from, float* to) {
  check(cudaMemcpyAsync(to, from, size * sizeof(float), cudaMemcpyDeviceToDevice,
                        context.stream().get()),
        "copying on the device");
}

}  // namespace

std::string unsupported_reason(const Net<float>& net) {
  if (largest_value(net) * rows_at_once <= tensor_max) return {};
  return "one row has " + std::to_string(largest_value(net)) +
         " numbers in the data or in a layer's output, more than the " +
         std::to_string(tensor_max / rows_at_once) + " that a device supports; use --device cpu";
}

NetRun::NetRun(const Net<float>& net) : net_(net) {
  const auto& values = net_.plan().values();
  for (const Operation<float>& operation : net_.plan().operations()) {
    layers_.push_back(operation.layer == nullptr ? nullptr
                                                 : make_layer(operation.layer->specification(),
                                                              values[operation.inputs[0]].shape,
                                                              operation.inputs[0] != 0));
    if (operation.layer != nullptr &&
        std::holds_alternative<EmbeddingSpecification>(operation.layer->specification()))
      ids_in_row_ = net_.features();
  }
  // A multiple of rows_at_once, the number of rows for which batch normalisation computes
  // statistics together.
  const std::size_t rows_that_fit = tensor_max / largest_value(net_) / rows_at_once * rows_at_once;
  rows_max_ = std::clamp(rows_that_fit, rows_at_once, micro_batch_rows_max);
  saved_bytes_.resize(layers_.size());
  saved_capacity_.resize(layers_.size());
}

bool NetRun::reserve(std::size_t rows, Context& context) {
  std::size_t scratch = 0;
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    if (layers_[k] == nullptr) continue;
    const MemoryNeeds needs = layers_[k]->prepare(context, samples(rows), samples(rows_at_once));
    saved_bytes_[k] = needs.saved_bytes;
    scratch = std::max(scratch, needs.scratch_bytes);
  }
  const bool has_moved = context.reserve_scratch(scratch);
  const bool fits = rows <= rows_capacity_ &&
                    std::ranges::equal(saved_bytes_, saved_capacity_, std::less_equal<>{});
  if (fits) return has_moved;
  for (std::size_t k = 0; k < layers_.size(); ++k)
    saved_bytes_[k] = std::max(saved_bytes_[k], saved_capacity_[k]);
  context.stream().finish();
  allocate(std::max(rows, rows_capacity_));
  return true;
}

void NetRun::allocate(std::size_t rows) {
  const Plan<float>& plan = net_.plan();
  const std::size_t n = samples(rows);
  BlockLayout layout;
  std::vector<std::size_t> value_offsets(plan.values().size());
  std::vector<std::size_t> block_offsets;
  std::vector<std::size_t> saved_offsets;
  for (const Operation<float>& operation : plan.operations())
    value_offsets[operation.output] =
        operation.in_place ? value_offsets[operation.inputs[0]]
                           : layout.add<float>(n * volume(plan.values()[operation.output].shape));
  for (const std::size_t size : plan.block_sizes())
    block_offsets.push_back(layout.add<float>(n * size));
  for (const std::size_t bytes : saved_bytes_)
    saved_offsets.push_back(layout.add<std::byte>(bytes));
  const std::size_t losses_offset = layout.add<double>(rows);
  const std::size_t metric_values_offset = layout.add<double>(rows);
  const std::size_t accumulated_offset = layout.add<Accumulator>(1);

  rows_capacity_ = 0;
  saved_capacity_.assign(saved_bytes_.size(), 0);
  // Frees the old block first, so that the device need not hold both.
  memory_ = DeviceMemory{};
  memory_ = DeviceMemory{layout.bytes()};
  values_.assign(value_offsets.size(), nullptr);
  for (std::size_t i = 1; i < value_offsets.size(); ++i)
    values_[i] = array_at<float>(memory_, value_offsets[i]);
  derivative_blocks_.clear();
  for (const std::size_t offset : block_offsets)
    derivative_blocks_.push_back(array_at<float>(memory_, offset));
  saved_.clear();
  for (const std::size_t offset : saved_offsets)
    saved_.push_back(array_at<std::byte>(memory_, offset));
  losses_ = array_at<double>(memory_, losses_offset);
  metric_values_ = array_at<double>(memory_, metric_values_offset);
  accumulated_ = array_at<Accumulator>(memory_, accumulated_offset);
  rows_capacity_ = rows;
  saved_capacity_ = saved_bytes_;
}

MicroBatchCall NetRun::make_call(const Context& context, std::size_t operation, const float* w,
                                 const NetInput& input, std::size_t rows, bool training,
                                 std::uint32_t micro_batch) const {
  return {.context = context,
          .n = samples(rows),
          .training = training,
          .group_samples = samples(rows_at_once),
          .w = w + net_.plan().operations()[operation].parameters_start,
          .saved = saved_[operation],
          .draws = {input.seed, static_cast<std::uint32_t>(operation), micro_batch},
          .order = input.order};
}

void NetRun::forward(const Context& context, const float* w, const NetInput& input,
                     std::size_t rows, bool training, std::uint32_t micro_batch) {
  const auto& operations = net_.plan().operations();
  for (std::size_t k = 0; k < operations.size(); ++k) {
    if (operations[k].layer == nullptr) {
      add_terms(context, operations[k], input, samples(rows));
      continue;
    }
    ForwardCall pass{make_call(context, k, w, input, rows, training, micro_batch)};
    pass.x = value(operations[k].inputs[0], input);
    pass.y = values_[operations[k].output];
    layers_[k]->forward(pass);
  }
}

void NetRun::add_terms(const Context& context, const Operation<float>& sum, const NetInput& input,
                       std::size_t n) {
  const std::size_t size = n * volume(net_.plan().values()[sum.output].shape);
  float* y = values_[sum.output];
  if (!sum.in_place) copy(context, size, value(sum.inputs[0], input), y);
  for (std::size_t i = 1; i < sum.inputs.size(); ++i)
    for_each(context, size, Add{value(sum.inputs[i], input), y}, "adding branches");
}

void NetRun::loss(const Context& context, const NetInput& input, std::size_t rows, float weight) {
  const auto width = static_cast<Index>(net_.outputs());
  const auto count = static_cast<Index>(rows);
  float* derivatives = weight > 0 ? derivative(values_.size() - 1) : nullptr;
  constexpr Index rows_in_block = block_threads / warp;
  loss_kernel<<<(count + rows_in_block - 1) / rows_in_block, block_threads, 0,
                context.stream().get()>>>({net_.loss(), count, width, net_.margin(), weight,
                                           scores(), input.labels, derivatives, losses_,
                                           metric_values_});
  check_launch("computing the loss");
  accumulate_kernel<<<1, block_threads, 0, context.stream().get()>>>(count, losses_, metric_values_,
                                                                     accumulated_);
  check_launch("computing the loss");
}

void NetRun::clear_accumulated(const Context& context) const {
  check(cudaMemsetAsync(accumulated_, 0, sizeof(Accumulator), context.stream().get()),
        "clearing sums");
}

void NetRun::backward(const Context& context, const float* w, const NetInput& input,
                      std::size_t rows, float weight, std::uint32_t micro_batch, float* g) {
  const auto& operations = net_.plan().operations();
  const std::size_t n = samples(rows);
  for (std::size_t k = operations.size(); k-- > 0;) {
    const Operation<float>& operation = operations[k];
    if (operation.layer == nullptr) {
      pass_to_terms(context, operation, n);
      continue;
    }
    const std::size_t input_value = operation.inputs[0];
    const bool is_added = operation.adds_derivative[0] && input_value != 0;
    BackwardCall pass{make_call(context, k, w, input, rows, true, micro_batch)};
    pass.x = value(input_value, input);
    pass.y = values_[operation.output];
    pass.dy = derivative(operation.output);
    pass.dx = input_value == 0 ? nullptr
              : is_added       ? derivative_blocks_[operation.spare_block]
                               : derivative(input_value);
    pass.g = g + operation.parameters_start;
    pass.weight = weight / static_cast<float>(net_.inputs_in_row());
    layers_[k]->backward(pass);
    if (is_added)
      for_each(context, n * volume(net_.plan().values()[input_value].shape),
               Add{pass.dx, derivative(input_value)}, "adding branches");
  }
}

void NetRun::pass_to_terms(const Context& context, const Operation<float>& sum, std::size_t n) {
  const std::size_t size = n * volume(net_.plan().values()[sum.output].shape);
  const float* dy = derivative(sum.output);
  for (std::size_t i = 0; i < sum.inputs.size(); ++i) {
    float* dx = derivative(sum.inputs[i]);
    if (sum.adds_derivative[i])
      for_each(context, size, Add{dy, dx}, "adding branches");
    else if (dx != dy)
      copy(context, size, dy, dx);
  }
}

}  // namespace starling::models::cuda
