/// The baseline of cuda_benchmark: a step that only calls cuBLAS and cuDNN, once for each layer and
/// pass, as most programs do. Its data and its weights are random.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "starling/models/net/net.hpp"

namespace starling::models {

/// A net of dense, conv2d, pooling, relu, tanh, dropout, batch-norm, flatten and residual layers
/// with softmax loss, one batch, and SGD, on the current device. Float32 without TF32, channels
/// last.
class BareNet {
 public:
  BareNet(const Net<float>& net, std::size_t rows);
  BareNet(const BareNet&) = delete;
  BareNet& operator=(const BareNet&) = delete;
  ~BareNet();

  /// Puts one step into the stream: forward, loss, backward, update.
  void step();
  /// The same as a CUDA graph, recorded at the second call.
  void step_as_graph();
  void finish() const;

 private:
  struct Value {
    float* x = nullptr;
    float* dx = nullptr;
    std::size_t size = 0;
    cudnnTensorDescriptor_t shape = nullptr;
    /// True where a later layer has already written a derivative there.
    bool has_slope = false;
  };
  using Call = std::function<void()>;

  /// Factors of cuBLAS and cuDNN, which take them by address.
  static constexpr float one = 1;
  static constexpr float zero = 0;
  static int number(std::size_t value) { return static_cast<int>(value); }

  float* floats(std::size_t count, float deviation = 0);
  /// Has `destroy` called with the descriptor at the end.
  template <class T, class Destroy>
  T kept(T descriptor, Destroy destroy) {
    ends_.push_back([descriptor, destroy] { destroy(descriptor); });
    return descriptor;
  }
  cudnnTensorDescriptor_t tensor(int n, int c, int h, int w);
  /// Returns the factor `beta` with which the next pass writes the derivative by value `from`: 0 to
  /// overwrite, 1 to add.
  const float* blend(std::size_t from);

  void add(const PlanStep<float>& step);
  void add(const PlanStep<float>& step, const ConvolutionForm& form);
  void add(const PlanStep<float>& step, const DenseForm& form);
  void add(const PlanStep<float>& step, const BatchNormForm& form);
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
  /// The calls of each layer's backward pass, the last layer's first. They are made in that order
  /// too, since the next call adds where an earlier one has written a derivative.
  std::vector<Call> backward_;
  std::vector<std::function<void()>> makers_;
  std::vector<Call> ends_;
};

}  // namespace starling::models
