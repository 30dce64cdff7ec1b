/// The calls of cuBLAS and cuDNN that each layer of a BareNet makes.
#include <cmath>

#include "starling/models/cuda/check.hpp"
#include "tests/benchmarks/cuda/bare_net.hpp"

namespace starling::models {
namespace {

using cuda::check;

constexpr std::size_t workspace_bytes_max = std::size_t{256} << 20U;

/// Returns the first of cuDNN's candidates whose workspace takes at most workspace_bytes_max, a
/// deterministic one if possible. models/cuda chooses in the same way, so that the benchmark
/// compares equal work.
template <class Performance, class WorkspaceSize>
auto choose(const Performance* candidates, int count, const WorkspaceSize& workspace_size)
    -> decltype(candidates->algo) {
  for (const bool is_deterministic : {true, false})
    for (int i = 0; i < count; ++i) {
      std::size_t bytes = 0;
      if (candidates[i].status == CUDNN_STATUS_SUCCESS &&
          (candidates[i].determinism == CUDNN_DETERMINISTIC) == is_deterministic &&
          workspace_size(candidates[i].algo, &bytes) == CUDNN_STATUS_SUCCESS &&
          bytes <= workspace_bytes_max)
        return candidates[i].algo;
    }
  throw cuda::Failure{cuda::Failure::Cause::other, "no algorithm"};
}

}  // namespace

void BareNet::add(const Operation<float>& operation) {
  if (operation.layer == nullptr) return add_sum(operation);
  const LayerSpecification specification = operation.layer->specification();
  if (const auto* conv = std::get_if<ConvolutionSpecification>(&specification))
    return add(operation, *conv);
  if (const auto* dense = std::get_if<DenseSpecification>(&specification))
    return add(operation, *dense);
  if (const auto* norm = std::get_if<BatchNormSpecification>(&specification))
    return add(operation, *norm);
  if (const auto* pool = std::get_if<MaxPoolSpecification>(&specification))
    return add_pool(operation, pool->shape, CUDNN_POOLING_MAX);
  if (const auto* pool = std::get_if<AvgPoolSpecification>(&specification))
    return add_pool(operation, pool->shape, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  if (const auto* pool = std::get_if<GlobalAvgPoolSpecification>(&specification)) {
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(pool->pixels)));
    const PoolShape shape{side, side, pool->channels, side, side, 0};
    return add_pool(operation, shape, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  }
  if (const auto* activation = std::get_if<ActivationSpecification>(&specification))
    return add_activation(operation, activation->kind == ActivationSpecification::Kind::tanh
                                         ? CUDNN_ACTIVATION_TANH
                                         : CUDNN_ACTIVATION_RELU);
  if (const auto* dropout = std::get_if<DropoutSpecification>(&specification))
    return add_dropout(operation, dropout->rate);
  add_copy(operation);
}

void BareNet::add(const Operation<float>& operation,
                  const ConvolutionSpecification& specification) {
  const ConvolutionShape& s = specification.shape;
  cudnnFilterDescriptor_t filter = nullptr;
  check(cudnnCreateFilterDescriptor(&filter), "a filter");
  own(filter, cudnnDestroyFilterDescriptor);
  check(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, to_int(s.outputs),
                                   to_int(s.channels), to_int(s.kernel), to_int(s.kernel)),
        "a filter");
  cudnnConvolutionDescriptor_t conv = nullptr;
  check(cudnnCreateConvolutionDescriptor(&conv), "a convolution");
  own(conv, cudnnDestroyConvolutionDescriptor);
  const int padding = to_int(s.padding);
  const int stride = to_int(s.stride);
  check(cudnnSetConvolution2dDescriptor(conv, padding, padding, stride, stride, 1, 1,
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "a convolution");
  check(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH), "a convolution");
  const Value x = values_[operation.inputs[0]];
  const Value y = values_[operation.output];
  constexpr int candidates_max = 16;
  int count = 0;

  cudnnConvolutionFwdAlgoPerf_t forward_candidates[candidates_max];
  check(cudnnGetConvolutionForwardAlgorithm_v7(dnn_, x.shape, filter, conv, y.shape, candidates_max,
                                               &count, forward_candidates),
        "choosing an algorithm");
  std::size_t bytes = 0;
  const auto forward_algorithm =
      choose(forward_candidates, count, [&](auto algorithm, std::size_t* size) {
        return cudnnGetConvolutionForwardWorkspaceSize(dnn_, x.shape, filter, conv, y.shape,
                                                       algorithm, size);
      });
  check(cudnnGetConvolutionForwardWorkspaceSize(dnn_, x.shape, filter, conv, y.shape,
                                                forward_algorithm, &bytes),
        "choosing an algorithm");
  reserve(bytes);

  cudnnConvolutionBwdFilterAlgoPerf_t weights_candidates[candidates_max];
  check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn_, x.shape, y.shape, conv, filter,
                                                      candidates_max, &count, weights_candidates),
        "choosing an algorithm");
  const auto weights_algorithm =
      choose(weights_candidates, count, [&](auto algorithm, std::size_t* size) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn_, x.shape, y.shape, conv, filter,
                                                              algorithm, size);
      });
  check(cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn_, x.shape, y.shape, conv, filter,
                                                       weights_algorithm, &bytes),
        "choosing an algorithm");
  reserve(bytes);

  cudnnConvolutionBwdDataAlgoPerf_t input_candidates[candidates_max];
  check(cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn_, filter, y.shape, conv, x.shape,
                                                    candidates_max, &count, input_candidates),
        "choosing an algorithm");
  const auto input_algorithm =
      choose(input_candidates, count, [&](auto algorithm, std::size_t* size) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn_, filter, y.shape, conv, x.shape,
                                                            algorithm, size);
      });
  check(cudnnGetConvolutionBackwardDataWorkspaceSize(dnn_, filter, y.shape, conv, x.shape,
                                                     input_algorithm, &bytes),
        "choosing an algorithm");
  reserve(bytes);

  float* w = w_ + operation.parameters_start;
  float* g = g_ + operation.parameters_start;
  const std::size_t size = s.window() * s.outputs;
  const cudnnTensorDescriptor_t bias =
      specification.bias ? make_tensor(1, to_int(s.outputs), 1, 1) : nullptr;
  forward_.push_back([=, this] {
    check(cudnnConvolutionForward(dnn_, &one, x.shape, x.x, filter, w, conv, forward_algorithm,
                                  workspace_, workspace_bytes_, &zero, y.shape, y.x),
          "conv2d");
    if (bias != nullptr)
      check(cudnnAddTensor(dnn_, &one, bias, w + size, &one, y.shape, y.x), "bias");
  });
  const std::size_t input = operation.inputs[0];
  backward_makers_.push_back([=, this] {
    const float* beta = input == 0 ? nullptr : beta_for(input);
    backward_.push_back([=, this] {
      check(cudnnConvolutionBackwardFilter(dnn_, &one, x.shape, x.x, y.shape, y.dx, conv,
                                           weights_algorithm, workspace_, workspace_bytes_, &zero,
                                           filter, g),
            "conv2d");
      if (bias != nullptr)
        check(cudnnConvolutionBackwardBias(dnn_, &one, y.shape, y.dx, &zero, bias, g + size),
              "bias");
      if (beta == nullptr) return;
      check(
          cudnnConvolutionBackwardData(dnn_, &one, filter, w, y.shape, y.dx, conv, input_algorithm,
                                       workspace_, workspace_bytes_, beta, x.shape, x.dx),
          "conv2d");
    });
  });
}

void BareNet::add(const Operation<float>& operation, const DenseSpecification& specification) {
  const Value x = values_[operation.inputs[0]];
  const Value y = values_[operation.output];
  const int inputs = to_int(specification.inputs);
  const int outputs = to_int(specification.outputs);
  float* w = w_ + operation.parameters_start;
  float* g = g_ + operation.parameters_start;
  const std::size_t size = specification.inputs * specification.outputs;
  const cudnnTensorDescriptor_t bias = specification.bias ? make_tensor(1, outputs, 1, 1) : nullptr;
  forward_.push_back([=, this] {
    check(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, outputs, rows_, inputs, &one, w, outputs,
                      x.x, inputs, &zero, y.x, outputs),
          "dense");
    if (bias != nullptr)
      check(cudnnAddTensor(dnn_, &one, bias, w + size, &one, y.shape, y.x), "bias");
  });
  const std::size_t input = operation.inputs[0];
  backward_makers_.push_back([=, this] {
    const float* beta = input == 0 ? nullptr : beta_for(input);
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

void BareNet::add(const Operation<float>& operation, const BatchNormSpecification& specification) {
  const Value x = values_[operation.inputs[0]];
  const Value y = values_[operation.output];
  const std::size_t channels = specification.channels;
  const cudnnTensorDescriptor_t row = make_tensor(1, to_int(channels), 1, 1);
  float* w = w_ + operation.parameters_start;
  float* g = g_ + operation.parameters_start;
  float* mean = allocate(channels);
  float* inverse = allocate(channels);
  forward_.push_back([=, this] {
    check(cudnnBatchNormalizationForwardTraining(
              dnn_, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x.shape, x.x, y.shape, y.x, row, w,
              w + channels, specification.momentum, w + 2 * channels, w + 3 * channels,
              specification.epsilon, mean, inverse),
          "batch-norm");
  });
  const std::size_t input = operation.inputs[0];
  backward_makers_.push_back([=, this] {
    const float* beta = beta_for(input);
    backward_.push_back([=, this] {
      check(cudnnBatchNormalizationBackward(dnn_, CUDNN_BATCHNORM_SPATIAL, &one, beta, &one, &zero,
                                            x.shape, x.x, y.shape, y.dx, x.shape, x.dx, row, w, g,
                                            g + channels, specification.epsilon, mean, inverse),
            "batch-norm");
    });
  });
}

void BareNet::add_pool(const Operation<float>& operation, const PoolShape& shape,
                       cudnnPoolingMode_t mode) {
  const Value x = values_[operation.inputs[0]];
  const Value y = values_[operation.output];
  cudnnPoolingDescriptor_t pool = nullptr;
  check(cudnnCreatePoolingDescriptor(&pool), "pooling");
  own(pool, cudnnDestroyPoolingDescriptor);
  const int size = to_int(shape.size);
  const int padding = to_int(shape.padding);
  const int stride = to_int(shape.stride);
  check(cudnnSetPooling2dDescriptor(pool, mode, CUDNN_PROPAGATE_NAN, size, size, padding, padding,
                                    stride, stride),
        "pooling");
  forward_.push_back([=, this] {
    check(cudnnPoolingForward(dnn_, pool, &one, x.shape, x.x, &zero, y.shape, y.x), "pooling");
  });
  const std::size_t input = operation.inputs[0];
  backward_makers_.push_back([=, this] {
    const float* beta = beta_for(input);
    backward_.push_back([=, this] {
      check(cudnnPoolingBackward(dnn_, pool, &one, y.shape, y.x, y.shape, y.dx, x.shape, x.x, beta,
                                 x.shape, x.dx),
            "pooling");
    });
  });
}

void BareNet::add_activation(const Operation<float>& operation, cudnnActivationMode_t mode) {
  const Value x = values_[operation.inputs[0]];
  const Value y = values_[operation.output];
  cudnnActivationDescriptor_t activation = nullptr;
  check(cudnnCreateActivationDescriptor(&activation), "an activation");
  own(activation, cudnnDestroyActivationDescriptor);
  check(cudnnSetActivationDescriptor(activation, mode, CUDNN_PROPAGATE_NAN, 0), "an activation");
  forward_.push_back([=, this] {
    check(cudnnActivationForward(dnn_, activation, &one, x.shape, x.x, &zero, y.shape, y.x),
          "an activation");
  });
  const std::size_t input = operation.inputs[0];
  backward_makers_.push_back([=, this] {
    const float* beta = beta_for(input);
    backward_.push_back([=, this] {
      check(cudnnActivationBackward(dnn_, activation, &one, y.shape, y.x, y.shape, y.dx, x.shape,
                                    x.x, beta, x.shape, x.dx),
            "an activation");
    });
  });
}

void BareNet::add_dropout(const Operation<float>& operation, double rate) {
  const Value x = values_[operation.inputs[0]];
  const Value y = values_[operation.output];
  std::size_t state_bytes = 0;
  std::size_t reserve_bytes = 0;
  check(cudnnDropoutGetStatesSize(dnn_, &state_bytes), "dropout");
  check(cudnnDropoutGetReserveSpaceSize(x.shape, &reserve_bytes), "dropout");
  float* states = allocate(state_bytes / sizeof(float) + 1);
  float* reserve = allocate(reserve_bytes / sizeof(float) + 1);
  cudnnDropoutDescriptor_t dropout = nullptr;
  check(cudnnCreateDropoutDescriptor(&dropout), "dropout");
  own(dropout, cudnnDestroyDropoutDescriptor);
  check(cudnnSetDropoutDescriptor(dropout, dnn_, static_cast<float>(rate), states, state_bytes, 1),
        "dropout");
  forward_.push_back([=, this] {
    check(cudnnDropoutForward(dnn_, dropout, x.shape, x.x, y.shape, y.x, reserve, reserve_bytes),
          "dropout");
  });
  // cuDNN's dropout overwrites dx, so this requires that no other layer reads x.
  const std::size_t input = operation.inputs[0];
  backward_makers_.push_back([=, this] {
    beta_for(input);
    backward_.push_back([=, this] {
      check(
          cudnnDropoutBackward(dnn_, dropout, y.shape, y.dx, x.shape, x.dx, reserve, reserve_bytes),
          "dropout");
    });
  });
}

/// Adds flatten. Its output shares the memory of its input, so that the baseline copies nothing.
void BareNet::add_copy(const Operation<float>& operation) {
  const Value x = values_[operation.inputs[0]];
  const Value y = values_[operation.output];
  values_[operation.output] = {x.x, x.dx, y.size, y.shape, false};
  backward_makers_.push_back([this, input = operation.inputs[0]] { beta_for(input); });
}

void BareNet::add_sum(const Operation<float>& operation) {
  const Value y = values_[operation.output];
  const auto bytes = y.size * sizeof(float);
  const int size = to_int(y.size);
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    const Value x = values_[operation.inputs[i]];
    if (i == 0)
      forward_.push_back([=, this] {
        check(cudaMemcpyAsync(y.x, x.x, bytes, cudaMemcpyDeviceToDevice, stream_), "residual");
      });
    else
      forward_.push_back(
          [=, this] { check(cublasSaxpy(blas_, size, &one, x.x, 1, y.x, 1), "residual"); });
    backward_makers_.push_back([=, this, input = operation.inputs[i]] {
      const bool adds = beta_for(input) == &one;
      backward_.push_back([=, this] {
        if (adds)
          check(cublasSaxpy(blas_, size, &one, y.dx, 1, x.dx, 1), "residual");
        else
          check(cudaMemcpyAsync(x.dx, y.dx, bytes, cudaMemcpyDeviceToDevice, stream_), "residual");
      });
    });
  }
}

/// Adds the calls that compute dz = (softmax(z) - one-hot labels) / rows.
void BareNet::add_loss() {
  const Value z = values_.back();
  const std::size_t classes = z.size / static_cast<std::size_t>(rows_);
  float* labels = allocate(z.size);
  std::vector<float> one_hot(z.size, 0.0F);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows_); ++i)
    one_hot[i * classes + i % classes] = 1;
  check(cudaMemcpy(labels, one_hot.data(), one_hot.size() * sizeof(float), cudaMemcpyHostToDevice),
        "labels");
  forward_.push_back([=, this] {
    const float minus = -1;
    const float share = 1 / static_cast<float>(rows_);
    check(cudnnSoftmaxForward(dnn_, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                              z.shape, z.x, &zero, z.shape, z.dx),
          "softmax");
    check(cublasSaxpy(blas_, to_int(z.size), &minus, labels, 1, z.dx, 1), "softmax");
    check(cublasSscal(blas_, to_int(z.size), &share, z.dx, 1), "softmax");
  });
}

}  // namespace starling::models
