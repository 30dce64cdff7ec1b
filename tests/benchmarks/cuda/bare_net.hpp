/// The baseline of cuda_benchmark: a training step that calls cuBLAS and cuDNN for each layer and
/// pass, as most programs do, and launches no kernels of its own. Data and weights are random.
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
  /// Allocates memory for batches of `rows` rows. Like all functions, throws cuda::Failure.
  BareNet(const Net<float>& net, std::size_t rows);
  BareNet(const BareNet&) = delete;
  BareNet& operator=(const BareNet&) = delete;
  ~BareNet();

  /// Enqueues one step into the stream: forward pass, loss, backward pass, update.
  void step();
  /// Enqueues the same as a CUDA graph, which the second call records.
  void step_as_graph();
  /// Waits until all enqueued steps are computed.
  void finish() const;

 private:
  /// A value of the net's plan: the input, or the output of a layer, and its derivative.
  struct Value {
    float* x = nullptr;
    float* dx = nullptr;
    std::size_t size = 0;
    cudnnTensorDescriptor_t shape = nullptr;
    /// True if an earlier call of the backward pass writes a derivative to dx.
    bool has_derivative = false;
  };
  using Call = std::function<void()>;

  /// Factors; cuBLAS and cuDNN take their addresses.
  static constexpr float one = 1;
  static constexpr float zero = 0;
  static int to_int(std::size_t value) { return static_cast<int>(value); }

  /// Returns device memory with uniform random numbers of about this standard deviation, or with
  /// zeros if it is 0. The destructor frees it.
  float* allocate(std::size_t count, float deviation = 0);
  /// Makes the destructor call `destroy` with the descriptor.
  template <class T, class Destroy>
  T own(T descriptor, Destroy destroy) {
    cleanups_.push_back([descriptor, destroy] { destroy(descriptor); });
    return descriptor;
  }
  cudnnTensorDescriptor_t make_tensor(int n, int c, int h, int w);
  /// Returns the factor with which the next call of the backward pass scales the old derivative
  /// with respect to value `input`: 0 if no earlier call has written it, else 1, so that the call
  /// adds to it.
  const float* beta_for(std::size_t input);

  /// Adds the calls of an operation of the plan: those of the forward pass now, and those of the
  /// backward pass when the constructor calls backward_makers_.
  void add(const Operation<float>& operation);
  void add(const Operation<float>& operation, const ConvolutionSpecification& specification);
  void add(const Operation<float>& operation, const DenseSpecification& specification);
  void add(const Operation<float>& operation, const BatchNormSpecification& specification);
  void add_pool(const Operation<float>& operation, const PoolShape& shape, cudnnPoolingMode_t mode);
  void add_activation(const Operation<float>& operation, cudnnActivationMode_t mode);
  void add_dropout(const Operation<float>& operation, double rate);
  void add_copy(const Operation<float>& operation);
  void add_sum(const Operation<float>& operation);
  void add_loss();
  /// Makes the workspace that all calls share at least `bytes` bytes large.
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
  /// The calls of the backward pass, those of the last layer first.
  std::vector<Call> backward_;
  /// Functions that add calls to backward_, in the order of the layers. The constructor calls them
  /// from the last to the first, so that beta_for() knows which derivatives earlier calls write.
  std::vector<std::function<void()>> backward_makers_;
  /// Functions that free resources.
  std::vector<Call> cleanups_;
};

}  // namespace starling::models
