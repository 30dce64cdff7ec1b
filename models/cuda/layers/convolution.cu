// The convolution layer, by cuDNN.
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

/// The most bytes of scratch for one algorithm: faster algorithms that need more are not worth it.
constexpr std::size_t workspace_max = std::size_t{256} << 20U;
/// Batch sizes whose algorithms are remembered: the job's batch, its last batch, those of tests.
constexpr std::size_t sizes_max = 64;
constexpr int candidates_max = 16;

/// A descriptor of cuDNN's.
template <class T, cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)>
class Descriptor {
 public:
  Descriptor() { check(create(&value_), "conv2d"); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { expect(destroy(value_) == CUDNN_STATUS_SUCCESS, "a descriptor"); }
  [[nodiscard]] T get() const { return value_; }

 private:
  T value_ = nullptr;
};

using Tensor =
    Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using Filter =
    Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using Operation = Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                             cudnnDestroyConvolutionDescriptor>;

/// One pass's algorithm and its scratch.
template <class Algorithm>
struct Choice {
  Algorithm algorithm{};
  std::size_t bytes = 0;
};

/// Returns the first of cuDNN's candidates, ordered by its heuristics with the fastest first, that
/// fits into the scratch and the device's memory, works when tried, and repeats to the bit; where
/// none repeats, the first that works. No speed is measured, so that the same net computes the same
/// way every time, unless memory is short.
template <class Algorithm, class Performance, class Ask, class Measure, class Try>
Choice<Algorithm> choose(const Ask& ask, const Measure& measure, const Try& attempt) {
  std::array<Performance, candidates_max> found{};
  int count = 0;
  check(ask(&count, found.data()), "conv2d: choosing an algorithm");
  std::optional<Failure> no_room;
  for (const bool any : {false, true})
    for (int i = 0; i < count; ++i) {
      const Performance& one = found[static_cast<std::size_t>(i)];
      if (one.status != CUDNN_STATUS_SUCCESS) continue;
      if ((one.determinism == CUDNN_DETERMINISTIC) == any) continue;
      Choice<Algorithm> choice{one.algo, 0};
      const bool fits =
          measure(one.algo, &choice.bytes) == CUDNN_STATUS_SUCCESS && choice.bytes <= workspace_max;
      try {
        if (fits && attempt(choice) == CUDNN_STATUS_SUCCESS) return choice;
      } catch (const Failure& failure) {
        if (failure.cause() != Failure::Cause::memory) throw;
        no_room = failure;
      }
      // Clears this candidate's error: else the next call that asks for the last error would find
      // it.
      static_cast<void>(cudaGetLastError());
    }
  if (no_room) throw *no_room;
  throw Failure{Failure::Cause::other, "conv2d: cuDNN has no algorithm for this shape"};
}

/// The descriptors and algorithms for one batch size.
struct Sized {
  Tensor x;
  Tensor y;
  Choice<cudnnConvolutionFwdAlgo_t> forward;
  /// Chosen only where dx is needed.
  Choice<cudnnConvolutionBwdDataAlgo_t> input;
  Choice<cudnnConvolutionBwdFilterAlgo_t> weights;
};

/// Channels last throughout (cuDNN's NHWC and, for weights, KRSC). Our weights are [kernel x kernel
/// x channels x outputs]: seen as a matrix, cuDNN's are its transpose.
class ConvolutionLayer final : public DeviceLayer {
 public:
  ConvolutionLayer(const ConvolutionForm& form, bool needs_dx)
      : form_(form), shape_(form.shape), needs_dx_(needs_dx) {
    const int kernel = number(shape_.kernel);
    check(
        cudnnSetFilter4dDescriptor(filter_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC,
                                   number(shape_.outputs), number(shape_.channels), kernel, kernel),
        "conv2d");
    check(cudnnSetConvolution2dDescriptor(operation_.get(), number(shape_.padding),
                                          number(shape_.padding), number(shape_.stride),
                                          number(shape_.stride), 1, 1, CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT),
          "conv2d");
  }

  Needs prepare(const Context& context, std::size_t n, std::size_t) override {
    const Sized& sized = sized_for(context, n);
    const std::size_t workspace =
        std::max({sized.forward.bytes, sized.input.bytes, sized.weights.bytes});
    return {.kept_bytes = weights() * sizeof(float),
            .scratch_bytes = std::max(slopes_bytes() + workspace, column_scratch_bytes(rows(n)))};
  }

  void forward(const ForwardCall& f) override {
    const Sized& sized = sized_for(f.context, f.n);
    auto* w = static_cast<float*>(f.kept);
    transpose(f.context, shape_.window(), shape_.outputs, f.w, false, w);
    check(cudnnConvolutionForward(f.context.dnn(), &one_, sized.x.get(), f.x, filter_.get(), w,
                                  operation_.get(), sized.forward.algorithm, workspace(f),
                                  sized.forward.bytes, &zero_, sized.y.get(), f.y),
          "conv2d");
    if (form_.bias)
      for_each(f.context, f.n * shape_.output_size(),
               AddBias{f.w + weights(), f.y, static_cast<Index>(shape_.outputs)}, "conv2d");
  }

  void backward(const BackwardCall& b) override {
    const Sized& sized = sized_for(b.context, b.n);
    auto* slopes = static_cast<float*>(b.context.scratch());
    check(cudnnConvolutionBackwardFilter(b.context.dnn(), &one_, sized.x.get(), b.x, sized.y.get(),
                                         b.dy, operation_.get(), sized.weights.algorithm,
                                         workspace(b), sized.weights.bytes, &zero_, filter_.get(),
                                         slopes),
          "conv2d: gradient");
    transpose(b.context, shape_.outputs, shape_.window(), slopes, true, b.g);
    if (form_.bias) sum_columns(b.context, rows(b.n), b.dy, true, b.g + weights());
    if (b.dx == nullptr) return;
    STARLING_CHECK(needs_dx_);
    check(cudnnConvolutionBackwardData(b.context.dnn(), &one_, filter_.get(), b.kept, sized.y.get(),
                                       b.dy, operation_.get(), sized.input.algorithm, workspace(b),
                                       sized.input.bytes, &zero_, sized.x.get(), b.dx),
          "conv2d: derivative by the input");
  }

 private:
  [[nodiscard]] static int number(std::size_t size) { return static_cast<int>(size); }
  [[nodiscard]] std::size_t weights() const { return shape_.window() * shape_.outputs; }
  /// Bytes of the weights' derivatives, at the front of the scratch; cuDNN's own scratch follows.
  [[nodiscard]] std::size_t slopes_bytes() const {
    Parts parts;
    static_cast<void>(parts.plan<float>(weights()));
    return parts.bytes();
  }
  [[nodiscard]] void* workspace(const PieceCall& call) const {
    return static_cast<std::byte*>(call.context.scratch()) + slopes_bytes();
  }
  /// The pixels of the output as rows, for sums over them.
  [[nodiscard]] Groups rows(std::size_t n) const {
    const auto pixels = static_cast<Index>(n * shape_.out_height() * shape_.out_width());
    return {pixels, static_cast<Index>(shape_.outputs), pixels};
  }

  const Sized& sized_for(const Context& context, std::size_t n) {
    if (const auto at = sized_.find(n); at != sized_.end()) return at->second;
    if (sized_.size() == sizes_max) sized_.clear();
    Sized& sized = sized_[n];
    try {
      describe(context, n, sized);
    } catch (...) {
      sized_.erase(n);
      throw;
    }
    return sized;
  }

  void describe(const Context& context, std::size_t n, Sized& sized) const {
    check(cudnnSetTensor4dDescriptor(sized.x.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, number(n),
                                     number(shape_.channels), number(shape_.height),
                                     number(shape_.width)),
          "conv2d");
    check(cudnnSetTensor4dDescriptor(sized.y.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, number(n),
                                     number(shape_.outputs), number(shape_.out_height()),
                                     number(shape_.out_width())),
          "conv2d");
    // The default math type lets float32 be rounded to TF32 for tensor cores.
    check(cudnnSetConvolutionMathType(operation_.get(), context.precision() == Precision::tf32
                                                            ? CUDNN_DEFAULT_MATH
                                                            : CUDNN_FMA_MATH),
          "conv2d");
    const Trial trial{context, n * shape_.input_size(), n * shape_.output_size(), weights()};
    choose_forward(trial, sized);
    if (needs_dx_) choose_input(trial, sized);
    choose_weights(trial, sized);
    context.stream().finish();
  }

  /// Zeros on which algorithms are tried: cuDNN's lists also name algorithms that it then refuses.
  struct Trial {
    Trial(const Context& on, std::size_t inputs, std::size_t outputs, std::size_t weights)
        : dnn(on.dnn()), x(inputs), y(outputs), w(weights) {
      for (const DeviceArray<float>* array : {&x, &y, &w})
        check(cudaMemsetAsync(array->data(), 0, array->bytes(), on.stream().get()),
              "conv2d: choosing an algorithm");
    }
    void* room(std::size_t bytes) const {
      if (workspace.bytes() >= bytes) return workspace.data();
      // Frees the old block first, so that both need not fit.
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

  void choose_forward(const Trial& trial, Sized& sized) const {
    using Algorithm = cudnnConvolutionFwdAlgo_t;
    using Performance = cudnnConvolutionFwdAlgoPerf_t;
    sized.forward = choose<Algorithm, Performance>(
        [&](int* count, Performance* found) {
          return cudnnGetConvolutionForwardAlgorithm_v7(trial.dnn, sized.x.get(), filter_.get(),
                                                        operation_.get(), sized.y.get(),
                                                        candidates_max, count, found);
        },
        [&](Algorithm algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionForwardWorkspaceSize(trial.dnn, sized.x.get(), filter_.get(),
                                                         operation_.get(), sized.y.get(), algorithm,
                                                         bytes);
        },
        [&](const Choice<Algorithm>& by) {
          return cudnnConvolutionForward(trial.dnn, &one_, sized.x.get(), trial.x.data(),
                                         filter_.get(), trial.w.data(), operation_.get(),
                                         by.algorithm, trial.room(by.bytes), by.bytes, &zero_,
                                         sized.y.get(), trial.y.data());
        });
  }

  void choose_input(const Trial& trial, Sized& sized) const {
    using Algorithm = cudnnConvolutionBwdDataAlgo_t;
    using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
    sized.input = choose<Algorithm, Performance>(
        [&](int* count, Performance* found) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(
              trial.dnn, filter_.get(), sized.y.get(), operation_.get(), sized.x.get(),
              candidates_max, count, found);
        },
        [&](Algorithm algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardDataWorkspaceSize(trial.dnn, filter_.get(),
                                                              sized.y.get(), operation_.get(),
                                                              sized.x.get(), algorithm, bytes);
        },
        [&](const Choice<Algorithm>& by) {
          return cudnnConvolutionBackwardData(trial.dnn, &one_, filter_.get(), trial.w.data(),
                                              sized.y.get(), trial.y.data(), operation_.get(),
                                              by.algorithm, trial.room(by.bytes), by.bytes, &zero_,
                                              sized.x.get(), trial.x.data());
        });
  }

  void choose_weights(const Trial& trial, Sized& sized) const {
    using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
    using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
    sized.weights = choose<Algorithm, Performance>(
        [&](int* count, Performance* found) {
          return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
              trial.dnn, sized.x.get(), sized.y.get(), operation_.get(), filter_.get(),
              candidates_max, count, found);
        },
        [&](Algorithm algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardFilterWorkspaceSize(trial.dnn, sized.x.get(),
                                                                sized.y.get(), operation_.get(),
                                                                filter_.get(), algorithm, bytes);
        },
        [&](const Choice<Algorithm>& by) {
          return cudnnConvolutionBackwardFilter(trial.dnn, &one_, sized.x.get(), trial.x.data(),
                                                sized.y.get(), trial.y.data(), operation_.get(),
                                                by.algorithm, trial.room(by.bytes), by.bytes,
                                                &zero_, filter_.get(), trial.w.data());
        });
  }

  static constexpr float one_ = 1;
  static constexpr float zero_ = 0;

  ConvolutionForm form_;
  ConvolutionShape shape_;
  bool needs_dx_;
  Filter filter_;
  Operation operation_;
  std::map<std::size_t, Sized> sized_;
};

}  // namespace

std::unique_ptr<DeviceLayer> make_convolution(const ConvolutionForm& form, bool needs_dx) {
  return std::make_unique<ConvolutionLayer>(form, needs_dx);
}

}  // namespace starling::models::cuda
