// Tests the messages that users read if a device cannot be used. Needs no device.
#include "starling/models/cuda/check.hpp"
#include "starling/models/cuda/net_run.hpp"
#include "tests/models/cuda/device.hpp"

namespace starling::models::cuda {
namespace {

void expect_fragments(const std::string& message, const std::vector<std::string>& fragments) {
  for (const std::string& fragment : fragments)
    EXPECT_NE(message.find(fragment), std::string::npos) << fragment << "\nis not in\n" << message;
}

/// Returns the message for a failed call.
template <class Code>
std::string message_of(Code code) {
  try {
    check(code, "copying a batch");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

TEST(Errors, NameTheActionTheErrorAndARemedy) {
  expect_fragments(message_of(cudaErrorInsufficientDriver),
                   {"copying a batch: ", "install a driver that supports CUDA", "--device cpu"});
  expect_fragments(message_of(cudaErrorNoDevice),
                   {"nvidia-smi", "CUDA_VISIBLE_DEVICES", "--device cpu"});
  expect_fragments(message_of(cudaErrorMemoryAllocation),
                   {"out of memory", "a smaller --batch", "--device cpu"});
  expect_fragments(message_of(cudaErrorNoKernelImageForDevice),
                   {"no kernel image", "no code for that device", "CMAKE_CUDA_ARCHITECTURES"});
  expect_fragments(message_of(cudaErrorUnsupportedPtxVersion), {"no code for that device"});
  expect_fragments(message_of(cudaErrorIllegalAddress),
                   {"copying a batch: ", "cudaErrorIllegalAddress"});
}

TEST(Errors, NameTheLibrary) {
  expect_fragments(message_of(CUBLAS_STATUS_ALLOC_FAILED),
                   {"copying a batch: cuBLAS: ", "a smaller --batch"});
  expect_fragments(message_of(CUBLAS_STATUS_EXECUTION_FAILED), {"cuBLAS: "});
  expect_fragments(message_of(CUDNN_STATUS_BAD_PARAM), {"copying a batch: cuDNN: "});
  expect_fragments(message_of(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH),
                   {"no code for that device"});
  EXPECT_EQ(message_of(cudaSuccess), "");
  EXPECT_EQ(message_of(CUBLAS_STATUS_SUCCESS), "");
  EXPECT_EQ(message_of(CUDNN_STATUS_SUCCESS), "");
}

TEST(Errors, DoNotBlameALayerForWideData) {
  const Table data = dense_table(2, 5'000'000, 2);
  const std::string reason = unsupported_reason(net_of("net:layers=dense 2", data));
  expect_fragments(reason, {"5000000 numbers in the data or in a layer's output", "4194304"});
}

TEST(Errors, NameAMissingDevice) {
  const Table data = dense_table(4, 30, 10);
  const Net<float> net = net_of("net:layers=dense 10", data);
  const auto engine = make_engine(net, 977, 4);
  ASSERT_FALSE(engine);
  expect_fragments(engine.error().message, {"cuda:977: ", "--device cpu"});
}

}  // namespace
}  // namespace starling::models::cuda
