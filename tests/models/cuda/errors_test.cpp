// The messages to users where a device cannot be used. No device is needed.
#include "starling/models/cuda/check.hpp"
#include "tests/models/cuda/device.hpp"

namespace starling::models::cuda {
namespace {

void expect_said(const std::string& message, const std::vector<std::string>& fragments) {
  for (const std::string& fragment : fragments)
    EXPECT_NE(message.find(fragment), std::string::npos) << fragment << "\nis not in\n" << message;
}

/// The message that a call's failure makes.
template <class Code>
std::string said(Code code) {
  try {
    check(code, "copying a batch");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

TEST(Errors, SayWhatWasTriedWhatFailedAndWhatToDo) {
  expect_said(said(cudaErrorInsufficientDriver),
              {"copying a batch: ", "install a driver that knows CUDA", "--device cpu"});
  expect_said(said(cudaErrorNoDevice), {"nvidia-smi", "CUDA_VISIBLE_DEVICES", "--device cpu"});
  expect_said(said(cudaErrorMemoryAllocation),
              {"out of memory", "a smaller --batch", "--device cpu"});
  expect_said(said(cudaErrorNoKernelImageForDevice),
              {"no kernel image", "no code for that device", "CMAKE_CUDA_ARCHITECTURES"});
  expect_said(said(cudaErrorUnsupportedPtxVersion), {"no code for that device"});
  expect_said(said(cudaErrorIllegalAddress), {"copying a batch: ", "cudaErrorIllegalAddress"});
}

TEST(Errors, OfTheLibrariesAreNamedToo) {
  expect_said(said(CUBLAS_STATUS_ALLOC_FAILED), {"copying a batch: cuBLAS: ", "a smaller --batch"});
  expect_said(said(CUBLAS_STATUS_EXECUTION_FAILED), {"cuBLAS: "});
  expect_said(said(CUDNN_STATUS_BAD_PARAM), {"copying a batch: cuDNN: "});
  expect_said(said(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH), {"no code for that device"});
  EXPECT_EQ(said(cudaSuccess), "");
  EXPECT_EQ(said(CUBLAS_STATUS_SUCCESS), "");
  EXPECT_EQ(said(CUDNN_STATUS_SUCCESS), "");
}

TEST(Errors, OfADeviceThatIsNotThereNameIt) {
  const Table data = dense_table(4, 30, 10);
  const Net<float> net = net_of("net:layers=dense 10", data);
  const auto engine = make_engine(net, 977, 4);
  ASSERT_FALSE(engine);
  expect_said(engine.error().message, {"cuda:977: ", "--device cpu"});
}

}  // namespace
}  // namespace starling::models::cuda
