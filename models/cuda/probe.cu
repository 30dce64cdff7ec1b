#include "starling/models/cuda/probe.hpp"

#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/guard.hpp"
#include "starling/models/cuda/launch.hpp"
#include "starling/models/cuda/memory.hpp"

namespace starling::models::cuda {
namespace {

constexpr Index mark = 2026;

struct Mark {
  Index* to;
  STARLING_HOST_DEVICE void operator()(Index) const { *to = mark; }
};

void run_kernel(std::size_t index) {
  use_device(index);
  const Context context{Precision::float32};
  const DeviceArray<Index> place{1};
  for_each(context, 1, Mark{place.data()}, "starting a kernel");
  Index seen = 0;
  check(cudaMemcpyAsync(&seen, place.data(), sizeof seen, cudaMemcpyDeviceToHost,
                        context.stream().get()),
        "running a kernel");
  context.stream().finish();
  if (seen != mark) throw Failure{Failure::Cause::other, "a kernel wrote nothing"};
}

/// Refuses a cuDNN of another major version than this build's: cuDNN promises no compatibility
/// between them, and the library found at run time may be another.
void check_cudnn() {
  const std::size_t version = cudnnGetVersion();
  const std::size_t found = version / (version < 10000 ? 1000 : 10000);
  if (found == CUDNN_MAJOR) return;
  throw Failure{Failure::Cause::other, "cuDNN " + std::to_string(found) +
                                           " was loaded; valid: cuDNN " +
                                           std::to_string(CUDNN_MAJOR) +
                                           ", which this build was made with, or --device cpu"};
}

/// Throws Failure where there is no driver.
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
    std::vector<DeviceInfo> all(count_devices());
    for (std::size_t i = 0; i < all.size(); ++i) {
      cudaDeviceProp properties{};
      check(cudaGetDeviceProperties(&properties, static_cast<int>(i)), "looking at a device");
      all[i] = {i, properties.name, properties.totalGlobalMem};
    }
    return all;
  } catch (const Failure& failure) {
    return Error{failure.what()};
  }
}

Result<void> probe(std::size_t index) {
  return guarded(index, [&]() -> Result<void> {
    const std::size_t count = count_devices();
    if (count == 0)
      throw Failure{Failure::Cause::no_device, "this machine shows this process no CUDA device"};
    if (index >= count)
      return Error{name_of(index) + ": there is no such device; valid: cuda:0" +
                   (count > 1 ? " to " + name_of(count - 1) : "") + ", or --device cpu"};
    check_cudnn();
    run_kernel(index);
    return {};
  });
}

}  // namespace starling::models::cuda
