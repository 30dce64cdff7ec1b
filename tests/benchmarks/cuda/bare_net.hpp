/// The baseline of cuda_benchmark: a training step that calls only cuBLAS and cuDNN, once for each
/// layer and pass, as most programs do. Data and weights are random.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "starling/models/net/net.hpp"

namespace starling::models {

/// Trains a net on the current device, always with the same batch, by SGD with softmax loss. The
/// net may have dense, conv2d, pooling, relu, tanh, dropout, batch-norm, flatten and residual
/// layers. Float32 without TF32, channels last.
class BareNet {
 public:
  BareNet(const Net<float>& net, std::size_t rows);
  BareNet(const BareNet&) = delete;
  BareNet& operator=(const BareNet&) = delete;
  ~BareNet();

  /// Puts one step into the stream: forward, loss, backward, update.
  void step();
  /// Does the same by a CUDA graph, which the second call records.
  void step_as_graph();
  /// Waits for all steps.
  void finish() const;

 private:
  struct Value {
    float* x = nullptr;
    float* dx = nullptr;
    std::size_t size = 0;
    cudnnTensorDescriptor_t shape = nullptr;
    /// True if an earlier call of the backward pass writes a derivative to dx.
    bool has_derivative = false;
  };
  using Call = std::function<void()>;

  /// Factors, which cuBLAS and cuDNN take by address.
  static constexpr float one = 1;
  static constexpr float zero = 0;
  static int to_int(std::size_t value) { return static_cast<int>(value); }

  /// Returns device memory with uniform random numbers of that standard deviation, or zeros.
  float* allocate(std::size_t count, float deviation = 0);
  /// Lets the destructor call `destroy` with the descriptor.
  template <class T, class Destroy>
  T own(T descriptor, Destroy destroy) {
    cleanups_.push_back([descriptor, destroy] { destroy(descriptor); });
    return descriptor;
  }
  cudnnTensorDescriptor_t make_tensor(int n, int c, int h, int w);
  /// Returns the factor `beta` with which the next call of the backward pass writes the derivative
  /// by value `input`: 0 to overwrite, 1 to add.
  const float* beta_for(std::size_t input);

  void add(const PlanStep<float>& step);
  void add(const PlanStep<float>& step, const ConvolutionSpecification& specification);
  void add(const PlanStep<float>& step, const DenseSpecification& specification);
  void add(const PlanStep<float>& step, const BatchNormSpecification& specification);
  void add_pool(const PlanStep<float>& step, const PoolShape& shape, cudnnPoolingMode_t mode);
  void add_activation(const PlanStep<float>& step, cudnnActivationMode_t mode);
  void add_dropout(const PlanStep<float>& step, double rate);
  void add_copy(const PlanStep<float>& step);
  void add_sum(const PlanStep<float>& step);
  void add_loss();
  void reserve(std::size_t bytes);

  int rows_;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  std::size_t steps_ = 0;
  std::vector<Value> values_;
  float* w_ = nullptr;
  float* g_ = nullptr;
  std::size_t parameters_ = 0;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::vector<Call> forward_;
  /// The calls of the backward pass, the last layer's first. The makers add them in this order,
  /// because a call must add to a derivative that an earlier call writes.
  std::vector<Call> backward_;
  /// Functions that add the calls of the backward pass, in the order of the layers.
  std::vector<std::function<void()>> makers_;
  /// Functions that free resources.
  std::vector<Call> cleanups_;
};

}  // namespace starling::models
