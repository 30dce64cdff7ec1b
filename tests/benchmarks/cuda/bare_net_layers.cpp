/// The calls of cuBLAS and cuDNN that each layer of a BareNet makes.
#include <cmath>

#include "starling/models/cuda/check.hpp"
#include "tests/benchmarks/cuda/bare_net.hpp"

namespace starling::models {
namespace {

using cuda::check;

constexpr std::size_t workspace_most = std::size_t{256} << 20U;

/// The first algorithm that cuDNN would take and whose scratch fits, deterministic ones before all
/// others: as the layers choose, so that equal work is compared.
template <class Performance, class Measure>
auto first_of(const Performance* found, int count, const Measure& measure)
    -> decltype(found->algo) {
  for (const bool any : {false, true})
    for (int i = 0; i < count; ++i) {
      std::size_t bytes = 0;
      if (found[i].status == CUDNN_STATUS_SUCCESS &&
          (found[i].determinism == CUDNN_DETERMINISTIC) != any &&
          measure(found[i].algo, &bytes) == CUDNN_STATUS_SUCCESS && bytes <= workspace_most)
        return found[i].algo;
    }
  throw cuda::Failure{cuda::Failure::Cause::other, "no algorithm"};
}

}  // namespace

void BareNet::add(const PlanStep<float>& step) {
  if (step.layer == nullptr) return add_sum(step);
  const LayerForm form = step.layer->form();
  if (const auto* conv = std::get_if<ConvolutionForm>(&form)) return add(step, *conv);
  if (const auto* dense = std::get_if<DenseForm>(&form)) return add(step, *dense);
  if (const auto* norm = std::get_if<BatchNormForm>(&form)) return add(step, *norm);
  if (const auto* pool = std::get_if<MaxPoolForm>(&form))
    return add_pool(step, pool->shape, CUDNN_POOLING_MAX);
  if (const auto* pool = std::get_if<AvgPoolForm>(&form))
    return add_pool(step, pool->shape, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  if (const auto* pool = std::get_if<GlobalAvgPoolForm>(&form)) {
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(pool->pixels)));
    const PoolShape shape{side, side, pool->channels, side, side, 0};
    return add_pool(step, shape, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  }
  if (const auto* activation = std::get_if<ActivationForm>(&form))
    return add_activation(step, activation->kind == ActivationForm::Kind::tanh
                                    ? CUDNN_ACTIVATION_TANH
                                    : CUDNN_ACTIVATION_RELU);
  if (const auto* dropout = std::get_if<DropoutForm>(&form))
    return add_dropout(step, dropout->rate);
  add_copy(step);
}

void BareNet::add(const PlanStep<float>& step, const ConvolutionForm& form) {
  const ConvolutionShape& s = form.shape;
  cudnnFilterDescriptor_t filter = nullptr;
  check(cudnnCreateFilterDescriptor(&filter), "a filter");
  kept(filter, cudnnDestroyFilterDescriptor);
  check(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, number(s.outputs),
                                   number(s.channels), number(s.kernel), number(s.kernel)),
        "a filter");
  cudnnConvolutionDescriptor_t conv = nullptr;
  check(cudnnCreateConvolutionDescriptor(&conv), "a convolution");
  kept(conv, cudnnDestroyConvolutionDescriptor);
  const int padding = number(s.padding);
  const int stride = number(s.stride);
  check(cudnnSetConvolution2dDescriptor(conv, padding, padding, stride, stride, 1, 1,
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "a convolution");
  check(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH), "a convolution");
  const Value x = values_[step.from[0]];
  const Value y = values_[step.to];
  constexpr int most = 16;
  int count = 0;

  cudnnConvolutionFwdAlgoPerf_t forward[most];
  check(cudnnGetConvolutionForwardAlgorithm_v7(dnn_, x.shape, filter, conv, y.shape, most, &count,
                                               forward),
        "choosing");
  std::size_t bytes = 0;
  const auto ahead = first_of(forward, count, [&](auto algorithm, std::size_t* wanted) {
    return cudnnGetConvolutionForwardWorkspaceSize(dnn_, x.shape, filter, conv, y.shape, algorithm,
                                                   wanted);
  });
  check(
      cudnnGetConvolutionForwardWorkspaceSize(dnn_, x.shape, filter, conv, y.shape, ahead, &bytes),
      "choosing");
  reserve(bytes);

  cudnnConvolutionBwdFilterAlgoPerf_t weights[most];
  check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn_, x.shape, y.shape, conv, filter, most,
                                                      &count, weights),
        "choosing");
  const auto by_weights = first_of(weights, count, [&](auto algorithm, std::size_t* wanted) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn_, x.shape, y.shape, conv, filter,
                                                          algorithm, wanted);
  });
  check(cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn_, x.shape, y.shape, conv, filter,
                                                       by_weights, &bytes),
        "choosing");
  reserve(bytes);

  cudnnConvolutionBwdDataAlgoPerf_t input[most];
  check(cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn_, filter, y.shape, conv, x.shape, most,
                                                    &count, input),
        "choosing");
  const auto by_input = first_of(input, count, [&](auto algorithm, std::size_t* wanted) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn_, filter, y.shape, conv, x.shape,
                                                        algorithm, wanted);
  });
  check(cudnnGetConvolutionBackwardDataWorkspaceSize(dnn_, filter, y.shape, conv, x.shape, by_input,
                                                     &bytes),
        "choosing");
  reserve(bytes);

  float* w = w_ + step.start;
  float* g = g_ + step.start;
  const std::size_t size = s.window() * s.outputs;
  const cudnnTensorDescriptor_t bias = form.bias ? tensor(1, number(s.outputs), 1, 1) : nullptr;
  forward_.push_back([=, this] {
    check(cudnnConvolutionForward(dnn_, &one, x.shape, x.x, filter, w, conv, ahead, workspace_,
                                  workspace_bytes_, &zero, y.shape, y.x),
          "conv2d");
    if (bias != nullptr)
      check(cudnnAddTensor(dnn_, &one, bias, w + size, &one, y.shape, y.x), "bias");
  });
  const std::size_t from = step.from[0];
  makers_.push_back([=, this] {
    const float* beta = from == 0 ? nullptr : blend(from);
    backward_.push_back([=, this] {
      check(
          cudnnConvolutionBackwardFilter(dnn_, &one, x.shape, x.x, y.shape, y.dx, conv, by_weights,
                                         workspace_, workspace_bytes_, &zero, filter, g),
          "conv2d");
      if (bias != nullptr)
        check(cudnnConvolutionBackwardBias(dnn_, &one, y.shape, y.dx, &zero, bias, g + size),
              "bias");
      if (beta == nullptr) return;
      check(cudnnConvolutionBackwardData(dnn_, &one, filter, w, y.shape, y.dx, conv, by_input,
                                         workspace_, workspace_bytes_, beta, x.shape, x.dx),
            "conv2d");
    });
  });
}

void BareNet::add(const PlanStep<float>& step, const DenseForm& form) {
  const Value x = values_[step.from[0]];
  const Value y = values_[step.to];
  const int inputs = number(form.inputs);
  const int outputs = number(form.outputs);
  float* w = w_ + step.start;
  float* g = g_ + step.start;
  const std::size_t size = form.inputs * form.outputs;
  const cudnnTensorDescriptor_t bias = form.bias ? tensor(1, outputs, 1, 1) : nullptr;
  forward_.push_back([=, this] {
    check(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, outputs, rows_, inputs, &one, w, outputs,
                      x.x, inputs, &zero, y.x, outputs),
          "dense");
    if (bias != nullptr)
      check(cudnnAddTensor(dnn_, &one, bias, w + size, &one, y.shape, y.x), "bias");
  });
  const std::size_t from = step.from[0];
  makers_.push_back([=, this] {
    const float* beta = from == 0 ? nullptr : blend(from);
    backward_.push_back([=, this] {
      check(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_T, outputs, inputs, rows_, &one, y.dx,
                        outputs, x.x, inputs, &zero, g, outputs),
            "dense");
      if (bias != nullptr)
        check(cudnnConvolutionBackwardBias(dnn_, &one, y.shape, y.dx, &zero, bias, g + size),
              "bias");
      if (beta == nullptr) return;
      check(cublasSgemm(blas_, CUBLAS_OP_T, CUBLAS_OP_N, inputs, rows_, outputs, &one, w, outputs,
                        y.dx, outputs, beta, x.dx, inputs),
            "dense");
    });
  });
}

void BareNet::add(const PlanStep<float>& step, const BatchNormForm& form) {
  const Value x = values_[step.from[0]];
  const Value y = values_[step.to];
  const std::size_t channels = form.channels;
  const cudnnTensorDescriptor_t row = tensor(1, number(channels), 1, 1);
  float* w = w_ + step.start;
  float* g = g_ + step.start;
  float* mean = floats(channels);
  float* inverse = floats(channels);
  forward_.push_back([=, this] {
    check(cudnnBatchNormalizationForwardTraining(dnn_, CUDNN_BATCHNORM_SPATIAL, &one, &zero,
                                                 x.shape, x.x, y.shape, y.x, row, w, w + channels,
                                                 form.momentum, w + 2 * channels, w + 3 * channels,
                                                 form.epsilon, mean, inverse),
          "batch-norm");
  });
  const std::size_t from = step.from[0];
  makers_.push_back([=, this] {
    const float* beta = blend(from);
    backward_.push_back([=, this] {
      check(cudnnBatchNormalizationBackward(dnn_, CUDNN_BATCHNORM_SPATIAL, &one, beta, &one, &zero,
                                            x.shape, x.x, y.shape, y.dx, x.shape, x.dx, row, w, g,
                                            g + channels, form.epsilon, mean, inverse),
            "batch-norm");
    });
  });
}

void BareNet::add_pool(const PlanStep<float>& step, const PoolShape& shape,
                       cudnnPoolingMode_t mode) {
  const Value x = values_[step.from[0]];
  const Value y = values_[step.to];
  cudnnPoolingDescriptor_t pool = nullptr;
  check(cudnnCreatePoolingDescriptor(&pool), "pooling");
  kept(pool, cudnnDestroyPoolingDescriptor);
  const int size = number(shape.size);
  const int padding = number(shape.padding);
  const int stride = number(shape.stride);
  check(cudnnSetPooling2dDescriptor(pool, mode, CUDNN_PROPAGATE_NAN, size, size, padding, padding,
                                    stride, stride),
        "pooling");
  forward_.push_back([=, this] {
    check(cudnnPoolingForward(dnn_, pool, &one, x.shape, x.x, &zero, y.shape, y.x), "pooling");
  });
  const std::size_t from = step.from[0];
  makers_.push_back([=, this] {
    const float* beta = blend(from);
    backward_.push_back([=, this] {
      check(cudnnPoolingBackward(dnn_, pool, &one, y.shape, y.x, y.shape, y.dx, x.shape, x.x, beta,
                                 x.shape, x.dx),
            "pooling");
    });
  });
}

void BareNet::add_activation(const PlanStep<float>& step, cudnnActivationMode_t mode) {
  const Value x = values_[step.from[0]];
  const Value y = values_[step.to];
  cudnnActivationDescriptor_t activation = nullptr;
  check(cudnnCreateActivationDescriptor(&activation), "an activation");
  kept(activation, cudnnDestroyActivationDescriptor);
  check(cudnnSetActivationDescriptor(activation, mode, CUDNN_PROPAGATE_NAN, 0), "an activation");
  forward_.push_back([=, this] {
    check(cudnnActivationForward(dnn_, activation, &one, x.shape, x.x, &zero, y.shape, y.x),
          "an activation");
  });
  const std::size_t from = step.from[0];
  makers_.push_back([=, this] {
    const float* beta = blend(from);
    backward_.push_back([=, this] {
      check(cudnnActivationBackward(dnn_, activation, &one, y.shape, y.x, y.shape, y.dx, x.shape,
                                    x.x, beta, x.shape, x.dx),
            "an activation");
    });
  });
}

void BareNet::add_dropout(const PlanStep<float>& step, double rate) {
  const Value x = values_[step.from[0]];
  const Value y = values_[step.to];
  std::size_t state_bytes = 0;
  std::size_t reserve_bytes = 0;
  check(cudnnDropoutGetStatesSize(dnn_, &state_bytes), "dropout");
  check(cudnnDropoutGetReserveSpaceSize(x.shape, &reserve_bytes), "dropout");
  float* states = floats(state_bytes / sizeof(float) + 1);
  float* reserve = floats(reserve_bytes / sizeof(float) + 1);
  cudnnDropoutDescriptor_t dropout = nullptr;
  check(cudnnCreateDropoutDescriptor(&dropout), "dropout");
  kept(dropout, cudnnDestroyDropoutDescriptor);
  check(cudnnSetDropoutDescriptor(dropout, dnn_, static_cast<float>(rate), states, state_bytes, 1),
        "dropout");
  forward_.push_back([=, this] {
    check(cudnnDropoutForward(dnn_, dropout, x.shape, x.x, y.shape, y.x, reserve, reserve_bytes),
          "dropout");
  });
  // In a chain of layers, no other layer writes a derivative there.
  const std::size_t from = step.from[0];
  makers_.push_back([=, this] {
    blend(from);
    backward_.push_back([=, this] {
      check(
          cudnnDropoutBackward(dnn_, dropout, y.shape, y.dx, x.shape, x.dx, reserve, reserve_bytes),
          "dropout");
    });
  });
}

/// flatten: the copies that a program without a plan would make are not held against it.
void BareNet::add_copy(const PlanStep<float>& step) {
  const Value x = values_[step.from[0]];
  const Value own = values_[step.to];
  values_[step.to] = {x.x, x.dx, own.size, own.shape, false};
  makers_.push_back([this, from = step.from[0]] { blend(from); });
}

void BareNet::add_sum(const PlanStep<float>& step) {
  const Value y = values_[step.to];
  const auto bytes = y.size * sizeof(float);
  const int size = number(y.size);
  for (std::size_t i = 0; i < step.from.size(); ++i) {
    const Value x = values_[step.from[i]];
    if (i == 0)
      forward_.push_back([=, this] {
        check(cudaMemcpyAsync(y.x, x.x, bytes, cudaMemcpyDeviceToDevice, stream_), "residual");
      });
    else
      forward_.push_back(
          [=, this] { check(cublasSaxpy(blas_, size, &one, x.x, 1, y.x, 1), "residual"); });
    makers_.push_back([=, this, from = step.from[i]] {
      const bool adds = blend(from) == &one;
      backward_.push_back([=, this] {
        if (adds)
          check(cublasSaxpy(blas_, size, &one, y.dx, 1, x.dx, 1), "residual");
        else
          check(cudaMemcpyAsync(x.dx, y.dx, bytes, cudaMemcpyDeviceToDevice, stream_), "residual");
      });
    });
  }
}

/// dz = (softmax(z) - one-hot labels) / n.
void BareNet::add_loss() {
  const Value z = values_.back();
  const std::size_t classes = z.size / static_cast<std::size_t>(rows_);
  float* labels = floats(z.size);
  std::vector<float> hot(z.size, 0.0F);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows_); ++i)
    hot[i * classes + i % classes] = 1;
  check(cudaMemcpy(labels, hot.data(), hot.size() * sizeof(float), cudaMemcpyHostToDevice),
        "labels");
  forward_.push_back([=, this] {
    const float minus = -1;
    const float share = 1 / static_cast<float>(rows_);
    check(cudnnSoftmaxForward(dnn_, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                              z.shape, z.x, &zero, z.shape, z.dx),
          "softmax");
    check(cublasSaxpy(blas_, number(z.size), &minus, labels, 1, z.dx, 1), "softmax");
    check(cublasSscal(blas_, number(z.size), &share, z.dx, 1), "softmax");
  });
}

}  // namespace starling::models
