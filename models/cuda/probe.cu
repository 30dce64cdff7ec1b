#include "starling/models/cuda/probe.hpp"

#include "starling/models/cuda/catch_errors.hpp"
#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/memory.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {
namespace {

constexpr Index written_value = 2026;

/// A kernel body that writes written_value.
struct WriteValue {
  Index* result;
  STARLING_HOST_DEVICE void operator()(Index) const { *result = written_value; }
};

/// Runs a kernel and checks the number that it wrote.
void run_kernel(std::size_t index) {
  use_device(index);
  const Context context{Precision::float32};
  const DeviceArray<Index> value{1};
  for_each(context, 1, WriteValue{value.data()}, "starting a kernel");
  Index read_value = 0;
  check(cudaMemcpyAsync(&read_value, value.data(), sizeof read_value, cudaMemcpyDeviceToHost,
                        context.stream().get()),
        "running a kernel");
  context.stream().finish();
  if (read_value != written_value)
    throw Failure{Failure::Cause::other, "a kernel did not write its result"};
}

/// Refuses a cuDNN of another major version than this build's: cuDNN promises no compatibility
/// between major versions, and the loader may find another library than the build.
void check_cudnn() {
  const std::size_t version = cudnnGetVersion();
  const std::size_t found = version / (version < 10000 ? 1000 : 10000);
  if (found == CUDNN_MAJOR) return;
  throw Failure{Failure::Cause::other, "cuDNN " + std::to_string(found) +
                                           " was loaded; valid: cuDNN " +
                                           std::to_string(CUDNN_MAJOR) +
                                           ", which this build was made with, or --device cpu"};
}

/// Returns the number of devices; throws Failure if there is no driver.
std::size_t count_devices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  check(code, "looking for devices");
  return static_cast<std::size_t>(count);
}

}  // namespace

Result<std::vector<DeviceInfo>> devices() {
  try {
    std::vector<DeviceInfo> infos(count_devices());
    for (std::size_t i = 0; i < infos.size(); ++i) {
      cudaDeviceProp properties{};
      check(cudaGetDeviceProperties(&properties, static_cast<int>(i)),
            "reading a device's properties");
      infos[i] = {i, properties.name, properties.totalGlobalMem};
    }
    return infos;
  } catch (const Failure& failure) {
    return Error{failure.what()};
  }
}

Result<void> probe(std::size_t index) {
  return catch_errors(index, [&]() -> Result<void> {
    const std::size_t count = count_devices();
    if (count == 0) throw Failure{Failure::Cause::no_device, "this process can see no CUDA device"};
    if (index >= count)
      return Error{device_name(index) + ": there is no such device; valid: cuda:0" +
                   (count > 1 ? " to " + device_name(count - 1) : "") + ", or --device cpu"};
    check_cudnn();
    run_kernel(index);
    return {};
  });
}

}  // namespace starling::models::cuda
