#include "starling/models/cuda/net_run.hpp"

#include <algorithm>

#include "starling/models/cuda/kernels/elementwise.hpp"
#include "starling/models/cuda/kernels/loss.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/tabular/affine.hpp"

namespace starling::models::cuda {
namespace {

/// The most numbers in one tensor of a piece: an Index counts them, with capacity left for a
/// stride.
constexpr std::size_t piece_max = std::size_t{1} << 30U;
constexpr std::size_t rows_most = 4096;
constexpr unsigned warp = 32;

/// A warp's lanes, all of which call the same functions.
struct WarpLanes {
  __device__ static Index lane() { return threadIdx.x % warp; }
  __device__ static Index count() { return warp; }
  __device__ static float sum(float value) {
    for (unsigned step = warp / 2; step > 0; step /= 2)
      value += __shfl_xor_sync(0xffffffffU, value, step);
    return value;
  }
  __device__ static void best(float& score, Index& place) {
    for (unsigned step = warp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xffffffffU, score, step);
      const Index where = __shfl_xor_sync(0xffffffffU, place, step);
      if (other > score || (other == score && where < place)) {
        score = other;
        place = where;
      }
    }
  }
};

struct LossCall {
  Net<float>::Loss kind;
  Index rows;
  /// Scores of one row.
  Index width;
  float margin;
  float weight;
  const float* scores;
  const float* labels;
  /// Null where no derivatives are needed.
  float* slopes;
  float* losses;
  float* merits;
};

/// One warp computes one row.
__global__ void __launch_bounds__(block_threads) loss_kernel(LossCall call) {
  const Index row = blockIdx.x * (block_threads / warp) + threadIdx.x / warp;
  if (row >= call.rows) return;
  const float* z = call.scores + std::size_t{row} * call.width;
  float* slopes = call.slopes == nullptr ? nullptr : call.slopes + std::size_t{row} * call.width;
  const float label = call.labels[row];
  const WarpLanes lanes;
  RowLoss result{0, 0};
  switch (call.kind) {
    case Net<float>::Loss::softmax:
      result = softmax_row(z, call.width, static_cast<Index>(label), call.weight, slopes, lanes);
      break;
    case Net<float>::Loss::squared:
      result = squared_row(*z, label, call.weight, lanes.lane() == 0 ? slopes : nullptr);
      break;
    case Net<float>::Loss::contrastive:
      result =
          contrastive_row(z, call.width / 2, label == 0, call.margin, call.weight, slopes, lanes);
      break;
  }
  if (lanes.lane() > 0) return;
  call.losses[row] = result.loss;
  call.merits[row] = result.merit;
}

/// One block, which always sums in the same order.
__global__ void __launch_bounds__(block_threads)
    accumulate_kernel(Index rows, const float* losses, const float* merits, Accumulator* sums) {
  __shared__ double shared[2][block_threads];
  double loss = 0;
  double merit = 0;
  for (Index row = threadIdx.x; row < rows; row += block_threads) {
    loss += static_cast<double>(losses[row]);
    merit += static_cast<double>(merits[row]);
  }
  shared[0][threadIdx.x] = loss;
  shared[1][threadIdx.x] = merit;
  for (unsigned step = block_threads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x >= step) continue;
    shared[0][threadIdx.x] += shared[0][threadIdx.x + step];
    shared[1][threadIdx.x] += shared[1][threadIdx.x + step];
  }
  if (threadIdx.x > 0) return;
  sums->loss += shared[0][0];
  sums->merit += shared[1][0];
}

/// Returns the size of the widest value of one row, all inputs of the row together.
std::size_t widest(const Net<float>& net) {
  std::size_t most = 0;
  for (const auto& value : net.plan().values()) most = std::max(most, volume(value.shape));
  return most * net.inputs_in_row();
}

void copy(const Context& context, std::size_t size, const float* from, float* to) {
  check(cudaMemcpyAsync(to, from, size * sizeof(float), cudaMemcpyDeviceToDevice,
                        context.stream().get()),
        "copying on the device");
}

}  // namespace

std::string refusal(const Net<float>& net) {
  if (widest(net) * rows_at_once <= piece_max) return {};
  return "a layer makes " + std::to_string(widest(net)) + " numbers of one row, more than the " +
         std::to_string(piece_max / rows_at_once) + " that a device takes; use --device cpu";
}

NetRun::NetRun(const Net<float>& net) : net_(net) {
  const auto& values = net_.plan().values();
  for (const PlanStep<float>& step : net_.plan().steps()) {
    layers_.push_back(
        step.layer == nullptr
            ? nullptr
            : make_layer(step.layer->form(), values[step.from[0]].shape, step.from[0] != 0));
    if (step.layer != nullptr && std::holds_alternative<EmbeddingForm>(step.layer->form()))
      ids_in_row_ = net_.features();
  }
  // A multiple of rows_at_once, the rows whose batch statistics are taken together.
  const std::size_t fit = piece_max / widest(net_) / rows_at_once * rows_at_once;
  rows_max_ = std::clamp(fit, rows_at_once, rows_most);
  kept_bytes_.resize(layers_.size());
  kept_capacity_.resize(layers_.size());
}

bool NetRun::reserve(std::size_t rows, Context& context) {
  std::size_t scratch = 0;
  for (std::size_t s = 0; s < layers_.size(); ++s) {
    if (layers_[s] == nullptr) continue;
    const Needs needs = layers_[s]->prepare(context, samples(rows), samples(rows_at_once));
    kept_bytes_[s] = needs.kept_bytes;
    scratch = std::max(scratch, needs.scratch_bytes);
  }
  const bool moved = context.reserve_scratch(scratch);
  const bool fits =
      rows <= capacity_ && std::ranges::equal(kept_bytes_, kept_capacity_, std::less_equal<>{});
  if (fits) return moved;
  for (std::size_t s = 0; s < layers_.size(); ++s)
    kept_bytes_[s] = std::max(kept_bytes_[s], kept_capacity_[s]);
  context.stream().finish();
  take(std::max(rows, capacity_));
  return true;
}

void NetRun::take(std::size_t rows) {
  const Plan<float>& plan = net_.plan();
  const std::size_t n = samples(rows);
  Parts parts;
  std::vector<std::size_t> value_at(plan.values().size());
  std::vector<std::size_t> slot_at;
  std::vector<std::size_t> kept_at;
  for (const PlanStep<float>& step : plan.steps())
    value_at[step.to] = step.in_place ? value_at[step.from[0]]
                                      : parts.plan<float>(n * volume(plan.values()[step.to].shape));
  for (const std::size_t size : plan.slots()) slot_at.push_back(parts.plan<float>(n * size));
  for (const std::size_t bytes : kept_bytes_) kept_at.push_back(parts.plan<std::byte>(bytes));
  const std::size_t losses_at = parts.plan<float>(rows);
  const std::size_t merits_at = parts.plan<float>(rows);
  const std::size_t accumulated_at = parts.plan<Accumulator>(1);

  capacity_ = 0;
  kept_capacity_.assign(kept_bytes_.size(), 0);
  // Frees the old block first, so that both need not fit.
  memory_ = DeviceMemory{};
  memory_ = DeviceMemory{parts.bytes()};
  values_.assign(value_at.size(), nullptr);
  for (std::size_t i = 1; i < value_at.size(); ++i) values_[i] = part<float>(memory_, value_at[i]);
  slots_.clear();
  for (const std::size_t at : slot_at) slots_.push_back(part<float>(memory_, at));
  kept_.clear();
  for (const std::size_t at : kept_at) kept_.push_back(part<std::byte>(memory_, at));
  losses_ = part<float>(memory_, losses_at);
  merits_ = part<float>(memory_, merits_at);
  accumulated_ = part<Accumulator>(memory_, accumulated_at);
  capacity_ = rows;
  kept_capacity_ = kept_bytes_;
}

PieceCall NetRun::call(const Context& context, std::size_t step, const float* w,
                       const NetInput& input, std::size_t rows, bool training,
                       std::uint32_t piece) const {
  return {.context = context,
          .n = samples(rows),
          .training = training,
          .group_samples = samples(rows_at_once),
          .w = w + net_.plan().steps()[step].start,
          .kept = kept_[step],
          .draws = {input.seed, static_cast<std::uint32_t>(step), piece},
          .order = input.order};
}

void NetRun::forward(const Context& context, const float* w, const NetInput& input,
                     std::size_t rows, bool training, std::uint32_t piece) {
  const auto& steps = net_.plan().steps();
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].layer == nullptr) {
      add_terms(context, steps[s], input, samples(rows));
      continue;
    }
    ForwardCall pass{call(context, s, w, input, rows, training, piece)};
    pass.x = value(steps[s].from[0], input);
    pass.y = values_[steps[s].to];
    layers_[s]->forward(pass);
  }
}

void NetRun::add_terms(const Context& context, const PlanStep<float>& sum, const NetInput& input,
                       std::size_t n) {
  const std::size_t size = n * volume(net_.plan().values()[sum.to].shape);
  float* y = values_[sum.to];
  if (!sum.in_place) copy(context, size, value(sum.from[0], input), y);
  for (std::size_t i = 1; i < sum.from.size(); ++i)
    for_each(context, size, Add{value(sum.from[i], input), y}, "residual");
}

void NetRun::loss(const Context& context, const NetInput& input, std::size_t rows, float weight) {
  const auto width = static_cast<Index>(net_.outputs());
  const auto count = static_cast<Index>(rows);
  float* slopes = weight > 0 ? slope(values_.size() - 1) : nullptr;
  constexpr Index rows_in_block = block_threads / warp;
  loss_kernel<<<(count + rows_in_block - 1) / rows_in_block, block_threads, 0,
                context.stream().get()>>>({net_.loss(), count, width, net_.margin(), weight,
                                           scores(), input.labels, slopes, losses_, merits_});
  check_launch("loss");
  accumulate_kernel<<<1, block_threads, 0, context.stream().get()>>>(count, losses_, merits_,
                                                                     accumulated_);
  check_launch("loss");
}

void NetRun::clear_accumulated(const Context& context) const {
  check(cudaMemsetAsync(accumulated_, 0, sizeof(Accumulator), context.stream().get()),
        "clearing sums");
}

void NetRun::backward(const Context& context, const float* w, const NetInput& input,
                      std::size_t rows, float weight, std::uint32_t piece, float* g) {
  const auto& steps = net_.plan().steps();
  const std::size_t n = samples(rows);
  for (std::size_t s = steps.size(); s-- > 0;) {
    const PlanStep<float>& step = steps[s];
    if (step.layer == nullptr) {
      spread(context, step, n);
      continue;
    }
    const std::size_t from = step.from[0];
    const bool adds = step.adds[0] && from != 0;
    BackwardCall pass{call(context, s, w, input, rows, true, piece)};
    pass.x = value(from, input);
    pass.y = values_[step.to];
    pass.dy = slope(step.to);
    pass.dx = from == 0 ? nullptr : adds ? slots_[step.spare_slot] : slope(from);
    pass.g = g + step.start;
    pass.weight = weight / static_cast<float>(net_.inputs_in_row());
    layers_[s]->backward(pass);
    if (adds)
      for_each(context, n * volume(net_.plan().values()[from].shape), Add{pass.dx, slope(from)},
               "residual");
  }
}

/// Passes the derivative by a sum on to each of its terms, unchanged.
void NetRun::spread(const Context& context, const PlanStep<float>& sum, std::size_t n) {
  const std::size_t size = n * volume(net_.plan().values()[sum.to].shape);
  const float* dy = slope(sum.to);
  for (std::size_t i = 0; i < sum.from.size(); ++i) {
    float* dx = slope(sum.from[i]);
    if (sum.adds[i])
      for_each(context, size, Add{dy, dx}, "residual");
    else if (dx != dy)
      copy(context, size, dy, dx);
  }
}

}  // namespace starling::models::cuda
