// The convolution layer, computed by cuDNN.
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "starling/base/check.hpp"
#include "starling/models/cuda/columns.hpp"
#include "starling/models/cuda/kernels/elementwise.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/layer.hpp"

namespace starling::models::cuda {
namespace {

/// The most bytes of scratch that an algorithm may need. Algorithms that need more are not used,
/// even if they are faster.
constexpr std::size_t workspace_max = std::size_t{256} << 20U;
/// The most batch sizes for which the chosen algorithms are kept.
constexpr std::size_t batch_sizes_max = 64;
/// The most candidate algorithms that cuDNN returns.
constexpr int candidates_max = 16;

/// Owns a cuDNN descriptor.
template <class T, cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)>
class Descriptor {
 public:
  Descriptor() { check(create(&value_), "conv2d"); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { warn_unless_freed(destroy(value_) == CUDNN_STATUS_SUCCESS, "a descriptor"); }
  [[nodiscard]] T get() const { return value_; }

 private:
  T value_ = nullptr;
};

using TensorDescriptor =
    Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
               cudnnDestroyConvolutionDescriptor>;

/// The algorithm for one pass, and the bytes of scratch that it needs.
template <class Algorithm>
struct Choice {
  Algorithm algorithm{};
  std::size_t bytes = 0;
};

/// Chooses an algorithm among cuDNN's candidates, which cuDNN orders by estimated speed. Returns
/// the first deterministic one that needs at most workspace_max bytes and works when it is tried;
/// if there is none, the first such candidate that is not deterministic. Does not measure speeds,
/// so that the same net is computed in the same way every time, unless the device has too little
/// memory for a trial. Throws Failure if no candidate works.
template <class Algorithm, class Performance, class ListCandidates, class WorkspaceSize, class Try>
Choice<Algorithm> choose(const ListCandidates& list_candidates, const WorkspaceSize& workspace_size,
                         const Try& try_algorithm) {
  std::array<Performance, candidates_max> candidates{};
  int count = 0;
  check(list_candidates(&count, candidates.data()), "conv2d: choosing an algorithm");
  std::optional<Failure> memory_failure;
  for (const bool is_deterministic : {true, false})
    for (int i = 0; i < count; ++i) {
      const Performance& candidate = candidates[static_cast<std::size_t>(i)];
      if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
      if ((candidate.determinism == CUDNN_DETERMINISTIC) != is_deterministic) continue;
      Choice<Algorithm> choice{candidate.algo, 0};
      const bool fits = workspace_size(candidate.algo, &choice.bytes) == CUDNN_STATUS_SUCCESS &&
                        choice.bytes <= workspace_max;
      try {
        if (fits && try_algorithm(choice) == CUDNN_STATUS_SUCCESS) return choice;
      } catch (const Failure& failure) {
        if (failure.cause() != Failure::Cause::memory) throw;
        memory_failure = failure;
      }
      // Clears this candidate's error, so that the next check of a launch does not find it.
      static_cast<void>(cudaGetLastError());
    }
  if (memory_failure) throw *memory_failure;
  throw Failure{Failure::Cause::other, "conv2d: cuDNN has no algorithm for this shape"};
}

/// The descriptors and algorithms for one batch size.
struct BatchPlan {
  TensorDescriptor x;
  TensorDescriptor y;
  Choice<cudnnConvolutionFwdAlgo_t> forward;
  /// The algorithm for dx; chosen only if dx is needed.
  Choice<cudnnConvolutionBwdDataAlgo_t> backward_data;
  /// The algorithm for the weights' derivatives.
  Choice<cudnnConvolutionBwdFilterAlgo_t> backward_filter;
};

/// All tensors have channels last: cuDNN's NHWC and, for weights, KRSC. Starling's weights are
/// [kernel x kernel x channels x outputs]. Taken as a matrix [(kernel * kernel * channels) x
/// outputs], cuDNN's weights are its transpose.
class ConvolutionLayer final : public DeviceLayer {
 public:
  ConvolutionLayer(const ConvolutionSpecification& specification, bool needs_dx)
      : specification_(specification), shape_(specification.shape), needs_dx_(needs_dx) {
    const int kernel = to_int(shape_.kernel);
    check(
        cudnnSetFilter4dDescriptor(filter_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC,
                                   to_int(shape_.outputs), to_int(shape_.channels), kernel, kernel),
        "conv2d");
    check(cudnnSetConvolution2dDescriptor(operation_.get(), to_int(shape_.padding),
                                          to_int(shape_.padding), to_int(shape_.stride),
                                          to_int(shape_.stride), 1, 1, CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT),
          "conv2d");
  }

  MemoryNeeds prepare(const Context& context, std::size_t n, std::size_t) override {
    const BatchPlan& plan = plan_for(context, n);
    const std::size_t workspace =
        std::max({plan.forward.bytes, plan.backward_data.bytes, plan.backward_filter.bytes});
    return {.saved_bytes = count_weights() * sizeof(float),
            .scratch_bytes =
                std::max(derivatives_bytes() + workspace, column_scratch_bytes(output_rows(n)))};
  }

  void forward(const ForwardCall& f) override {
    const BatchPlan& plan = plan_for(f.context, f.n);
    auto* w = static_cast<float*>(f.saved);
    transpose(f.context, shape_.window(), shape_.outputs, f.w, false, w);
    check(cudnnConvolutionForward(f.context.dnn(), &one_, plan.x.get(), f.x, filter_.get(), w,
                                  operation_.get(), plan.forward.algorithm, workspace(f),
                                  plan.forward.bytes, &zero_, plan.y.get(), f.y),
          "conv2d");
    if (specification_.bias)
      for_each(f.context, f.n * shape_.output_size(),
               AddBias{f.w + count_weights(), f.y, static_cast<Index>(shape_.outputs)}, "conv2d");
  }

  void backward(const BackwardCall& b) override {
    const BatchPlan& plan = plan_for(b.context, b.n);
    auto* derivatives = static_cast<float*>(b.context.scratch());
    check(cudnnConvolutionBackwardFilter(b.context.dnn(), &one_, plan.x.get(), b.x, plan.y.get(),
                                         b.dy, operation_.get(), plan.backward_filter.algorithm,
                                         workspace(b), plan.backward_filter.bytes, &zero_,
                                         filter_.get(), derivatives),
          "conv2d: gradient");
    transpose(b.context, shape_.outputs, shape_.window(), derivatives, true, b.g);
    if (specification_.bias)
      sum_columns(b.context, output_rows(b.n), b.dy, true, b.g + count_weights());
    if (b.dx == nullptr) return;
    STARLING_CHECK(needs_dx_);
    check(cudnnConvolutionBackwardData(b.context.dnn(), &one_, filter_.get(), b.saved, plan.y.get(),
                                       b.dy, operation_.get(), plan.backward_data.algorithm,
                                       workspace(b), plan.backward_data.bytes, &zero_, plan.x.get(),
                                       b.dx),
          "conv2d: derivative with respect to the input");
  }

 private:
  [[nodiscard]] static int to_int(std::size_t size) { return static_cast<int>(size); }
  [[nodiscard]] std::size_t count_weights() const { return shape_.window() * shape_.outputs; }
  /// The bytes of the weights' derivatives, which are at the beginning of the scratch. cuDNN's
  /// workspace follows them.
  [[nodiscard]] std::size_t derivatives_bytes() const {
    BlockLayout layout;
    static_cast<void>(layout.add<float>(count_weights()));
    return layout.bytes();
  }
  [[nodiscard]] void* workspace(const MicroBatchCall& call) const {
    return static_cast<std::byte*>(call.context.scratch()) + derivatives_bytes();
  }
  /// Returns the output as a matrix with one pixel in each row, in one group.
  [[nodiscard]] Groups output_rows(std::size_t n) const {
    const auto pixels = static_cast<Index>(n * shape_.out_height() * shape_.out_width());
    return {pixels, static_cast<Index>(shape_.outputs), pixels};
  }

  /// Returns the plan for batches of n samples; makes it at the first call.
  const BatchPlan& plan_for(const Context& context, std::size_t n) {
    if (const auto found = plans_.find(n); found != plans_.end()) return found->second;
    if (plans_.size() == batch_sizes_max) plans_.clear();
    BatchPlan& plan = plans_[n];
    try {
      make_plan(context, n, plan);
    } catch (...) {
      plans_.erase(n);
      throw;
    }
    return plan;
  }

  void make_plan(const Context& context, std::size_t n, BatchPlan& plan) const {
    check(cudnnSetTensor4dDescriptor(plan.x.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, to_int(n),
                                     to_int(shape_.channels), to_int(shape_.height),
                                     to_int(shape_.width)),
          "conv2d");
    check(cudnnSetTensor4dDescriptor(plan.y.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, to_int(n),
                                     to_int(shape_.outputs), to_int(shape_.out_height()),
                                     to_int(shape_.out_width())),
          "conv2d");
    // CUDNN_DEFAULT_MATH allows float32 to be rounded to TF32 for tensor cores.
    check(cudnnSetConvolutionMathType(operation_.get(), context.precision() == Precision::tf32
                                                            ? CUDNN_DEFAULT_MATH
                                                            : CUDNN_FMA_MATH),
          "conv2d");
    const Trial trial{context, n * shape_.input_size(), n * shape_.output_size(), count_weights()};
    choose_forward(trial, plan);
    if (needs_dx_) choose_backward_data(trial, plan);
    choose_backward_filter(trial, plan);
    context.stream().finish();
  }

  /// Tensors of zeros on which algorithms are tried. Trials are needed because cuDNN's candidates
  /// include algorithms that it then refuses to run.
  struct Trial {
    Trial(const Context& context, std::size_t inputs, std::size_t outputs, std::size_t weights)
        : dnn(context.dnn()), x(inputs), y(outputs), w(weights) {
      for (const DeviceArray<float>* array : {&x, &y, &w})
        check(cudaMemsetAsync(array->data(), 0, array->bytes(), context.stream().get()),
              "conv2d: choosing an algorithm");
    }
    /// Returns a workspace of at least `bytes` bytes.
    void* reserve_workspace(std::size_t bytes) const {
      if (workspace.bytes() >= bytes) return workspace.data();
      // Frees the old workspace first, so that the device need not hold both.
      workspace = DeviceMemory{};
      workspace = DeviceMemory{bytes};
      return workspace.data();
    }
    cudnnHandle_t dnn;
    DeviceArray<float> x;
    DeviceArray<float> y;
    DeviceArray<float> w;
    mutable DeviceMemory workspace;
  };

  void choose_forward(const Trial& trial, BatchPlan& plan) const {
    using Algorithm = cudnnConvolutionFwdAlgo_t;
    using Performance = cudnnConvolutionFwdAlgoPerf_t;
    plan.forward = choose<Algorithm, Performance>(
        [&](int* count, Performance* candidates) {
          return cudnnGetConvolutionForwardAlgorithm_v7(trial.dnn, plan.x.get(), filter_.get(),
                                                        operation_.get(), plan.y.get(),
                                                        candidates_max, count, candidates);
        },
        [&](Algorithm algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionForwardWorkspaceSize(trial.dnn, plan.x.get(), filter_.get(),
                                                         operation_.get(), plan.y.get(), algorithm,
                                                         bytes);
        },
        [&](const Choice<Algorithm>& choice) {
          return cudnnConvolutionForward(trial.dnn, &one_, plan.x.get(), trial.x.data(),
                                         filter_.get(), trial.w.data(), operation_.get(),
                                         choice.algorithm, trial.reserve_workspace(choice.bytes),
                                         choice.bytes, &zero_, plan.y.get(), trial.y.data());
        });
  }

  void choose_backward_data(const Trial& trial, BatchPlan& plan) const {
    using Algorithm = cudnnConvolutionBwdDataAlgo_t;
    using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
    plan.backward_data = choose<Algorithm, Performance>(
        [&](int* count, Performance* candidates) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(trial.dnn, filter_.get(), plan.y.get(),
                                                             operation_.get(), plan.x.get(),
                                                             candidates_max, count, candidates);
        },
        [&](Algorithm algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardDataWorkspaceSize(trial.dnn, filter_.get(),
                                                              plan.y.get(), operation_.get(),
                                                              plan.x.get(), algorithm, bytes);
        },
        [&](const Choice<Algorithm>& choice) {
          return cudnnConvolutionBackwardData(
              trial.dnn, &one_, filter_.get(), trial.w.data(), plan.y.get(), trial.y.data(),
              operation_.get(), choice.algorithm, trial.reserve_workspace(choice.bytes),
              choice.bytes, &zero_, plan.x.get(), trial.x.data());
        });
  }

  void choose_backward_filter(const Trial& trial, BatchPlan& plan) const {
    using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
    using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
    plan.backward_filter = choose<Algorithm, Performance>(
        [&](int* count, Performance* candidates) {
          return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
              trial.dnn, plan.x.get(), plan.y.get(), operation_.get(), filter_.get(),
              candidates_max, count, candidates);
        },
        [&](Algorithm algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardFilterWorkspaceSize(trial.dnn, plan.x.get(),
                                                                plan.y.get(), operation_.get(),
                                                                filter_.get(), algorithm, bytes);
        },
        [&](const Choice<Algorithm>& choice) {
          return cudnnConvolutionBackwardFilter(
              trial.dnn, &one_, plan.x.get(), trial.x.data(), plan.y.get(), trial.y.data(),
              operation_.get(), choice.algorithm, trial.reserve_workspace(choice.bytes),
              choice.bytes, &zero_, filter_.get(), trial.w.data());
        });
  }

  static constexpr float one_ = 1;
  static constexpr float zero_ = 0;

  ConvolutionSpecification specification_;
  ConvolutionShape shape_;
  bool needs_dx_;
  FilterDescriptor filter_;
  ConvolutionDescriptor operation_;
  /// The plan for each batch size.
  std::map<std::size_t, BatchPlan> plans_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_convolution(const ConvolutionSpecification& specification,
                                              bool needs_dx) {
  return std::make_unique<ConvolutionLayer>(specification, needs_dx);
}

}  // namespace starling::models::cuda
