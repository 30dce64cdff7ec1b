#include "starling/tools/registry/device.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "starling/models/cuda/plugin.hpp"
#include "starling/tools/program/version.hpp"

namespace starling::program {
namespace {

namespace cuda = models::cuda;
using models::Device;

constexpr const char* library_name = "libstarling_cuda.so";

/// Where the library may be: beside the program, where the build and `cmake --install` put it, or
/// where the system looks.
std::vector<std::string> library_paths() {
  std::error_code unknown;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
  if (unknown) return {library_name};
  return {folder / library_name, folder.parent_path() / "lib" / library_name, library_name};
}

/// Whether both sides see the same nets.
bool is_ours(const cuda::Plugin& plugin) {
  const std::string own = version();
  return plugin.build == cuda::PluginBuild{.version = own};
}

/// Loaded for good.
Result<const cuda::Plugin*> load() {
  std::string why;
  for (const std::string& path : library_paths()) {
    std::error_code unknown;
    if (path != library_name && !std::filesystem::exists(path, unknown)) continue;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      why = ::dlerror();
      break;
    }
    const auto entry =
        reinterpret_cast<cuda::PluginEntry>(::dlsym(library, cuda::plugin_entry_name));
    if (entry != nullptr && is_ours(*entry())) return entry();
    return Error{path + " is of another build"};
  }
  return Error{"CUDA cannot be used: " + why};
}

const Result<const cuda::Plugin*>& plugin() {
  static const auto loaded = load();
  return loaded;
}

Result<PlacedNet> place_on_cuda(const models::Net<float>& net, const Device& device,
                                std::size_t rows) {
  if (!plugin())
    return Error{print(device) + ": " + plugin().error().message +
                 "; valid: cpu, auto, or a build where CMake finds nvcc and cuDNN "
                 "(-DSTARLING_CUDA=ON says what is missing), with " +
                 library_name + " and CUDA's libraries where it runs"};
  auto engine = (*plugin())->make_engine(net, device.index, rows);
  if (!engine) return std::move(engine).error();
  return PlacedNet{net.on(*std::move(engine)), print(device)};
}

/// Why none can be used; nothing where one can.
std::string problem_with_devices() {
  if (!plugin()) return plugin().error().message;
  const auto devices = (*plugin())->devices();
  if (!devices) return devices.error().message;
  return devices->empty() ? "there is no CUDA device" : "";
}

}  // namespace

Result<PlacedNet> place(const models::Net<float>& net, const Device& device, std::size_t rows) {
  const PlacedNet own{net, print(Device{})};
  if (device.kind == Device::Kind::cuda) return place_on_cuda(net, device, rows);
  if (device.kind == Device::Kind::cpu) return own;
  if (auto problem = problem_with_devices(); !problem.empty())
    return PlacedNet{own.net, own.device, std::move(problem)};
  auto placed = place_on_cuda(net, Device{.kind = Device::Kind::cuda}, rows);
  if (placed) return placed;
  return PlacedNet{own.net, own.device, placed.error().message};
}

Result<void> check_on_cpu(const Device& device, const std::string& why) {
  if (device.kind != Device::Kind::cuda) return {};
  return Error{print(device) + ": " + why};
}

}  // namespace starling::program
