#include "tests/benchmarks/cuda/bare_net.hpp"

#include <algorithm>

#include "starling/models/cuda/check.hpp"

namespace starling::models {

using cuda::check;

BareNet::BareNet(const Net<float>& net, std::size_t rows) : rows_(to_int(rows)) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  check(cublasCreate(&blas_), "creating a handle");
  check(cublasSetStream(blas_, stream_), "setting the stream");
  check(cudnnCreate(&dnn_), "creating a handle");
  check(cudnnSetStream(dnn_, stream_), "setting the stream");
  // cuBLAS gets a workspace here, because it must not allocate one while a step is recorded.
  constexpr std::size_t blas_bytes = std::size_t{32} << 20U;
  check(cublasSetWorkspace(blas_, allocate(blas_bytes / sizeof(float)), blas_bytes),
        "setting the workspace");
  parameters_ = total_size(net.parameters());
  w_ = allocate(parameters_, 0.05F);
  g_ = allocate(parameters_);
  for (const auto& value : net.plan().values()) {
    const std::size_t size = rows * volume(value.shape);
    const bool is_image = value.shape.size() == 3;
    values_.push_back(
        {allocate(size, values_.empty() ? 1.0F : 0), allocate(size), size,
         make_tensor(rows_, to_int(value.shape.back()), is_image ? to_int(value.shape[0]) : 1,
                     is_image ? to_int(value.shape[1]) : 1)});
  }
  for (const Operation<float>& operation : net.plan().operations()) add(operation);
  add_loss();
  for (auto maker = backward_makers_.rbegin(); maker != backward_makers_.rend(); ++maker)
    (*maker)();
  check(cudaDeviceSynchronize(), "building a bare net");
}

BareNet::~BareNet() {
  cudaStreamSynchronize(stream_);
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  for (auto cleanup = cleanups_.rbegin(); cleanup != cleanups_.rend(); ++cleanup) (*cleanup)();
  cudaFree(workspace_);
  cudnnDestroy(dnn_);
  cublasDestroy(blas_);
  cudaStreamDestroy(stream_);
}

void BareNet::step() {
  for (const Call& call : forward_) call();
  for (const Call& call : backward_) call();
  const float rate = -0.01F;
  check(cublasSaxpy(blas_, to_int(parameters_), &rate, g_, 1, w_, 1), "updating");
}

void BareNet::step_as_graph() {
  if (steps_++ == 0) return step();
  if (graph_ == nullptr) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording");
    step();
    check(cudaStreamEndCapture(stream_, &graph), "recording");
    check(cudaGraphInstantiate(&graph_, graph, 0), "recording");
    check(cudaGraphDestroy(graph), "recording");
  }
  check(cudaGraphLaunch(graph_, stream_), "launching");
}

void BareNet::finish() const { check(cudaStreamSynchronize(stream_), "computing"); }

float* BareNet::allocate(std::size_t count, float deviation) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<std::size_t>(count, 1) * sizeof(float)), "allocating memory");
  cleanups_.push_back([memory] { cudaFree(memory); });
  std::vector<float> drawn(count, 0.0F);
  Random random{count};
  if (deviation > 0)
    for (float& value : drawn) value = deviation * static_cast<float>(random.real(-1.7, 1.7));
  check(cudaMemcpy(memory, drawn.data(), count * sizeof(float), cudaMemcpyHostToDevice), "filling");
  return static_cast<float*>(memory);
}

cudnnTensorDescriptor_t BareNet::make_tensor(int n, int c, int h, int w) {
  cudnnTensorDescriptor_t shape = nullptr;
  check(cudnnCreateTensorDescriptor(&shape), "creating a tensor descriptor");
  own(shape, cudnnDestroyTensorDescriptor);
  check(cudnnSetTensor4dDescriptor(shape, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, n, c, h, w),
        "creating a tensor descriptor");
  return shape;
}

const float* BareNet::beta_for(std::size_t input) {
  const bool adds = values_[input].has_derivative;
  values_[input].has_derivative = true;
  return adds ? &one : &zero;
}

void BareNet::reserve(std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  check(cudaFree(workspace_), "allocating the workspace");
  check(cudaMalloc(&workspace_, bytes), "allocating the workspace");
  workspace_bytes_ = bytes;
}

}  // namespace starling::models
