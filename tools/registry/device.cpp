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

/// Returns the paths at which the CUDA library may be: the program's folder; ../lib, where the
/// build puts it; the folder of libraries, where `cmake --install` puts it; and its bare name,
/// which dlopen() looks up in the system's folders.
std::vector<std::string> library_paths() {
  std::error_code fault;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", fault).parent_path();
  if (fault) return {library_name};
  return {folder / library_name, folder.parent_path() / "lib" / library_name,
          folder / STARLING_LIBRARY_FOLDER / library_name, library_name};
}

/// Returns true if program and plugin are of one build, so that they agree on the memory layout of
/// nets and tables.
bool is_same_build(const cuda::Plugin& plugin) {
  const std::string program_version = version();
  const std::string program_commit = commit();
  return plugin.build == cuda::PluginBuild{.version = program_version, .commit = program_commit};
}

/// Loads the plugin from the first path at which it exists. Never unloads it.
Result<const cuda::Plugin*> load() {
  std::string why;
  for (const std::string& path : library_paths()) {
    std::error_code ignored;
    if (path != library_name && !std::filesystem::exists(path, ignored)) continue;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      why = ::dlerror();
      break;
    }
    const auto entry =
        reinterpret_cast<cuda::PluginEntry>(::dlsym(library, cuda::plugin_entry_name));
    if (entry != nullptr && is_same_build(*entry())) return entry();
    return Error{path + " is of another build"};
  }
  return Error{"CUDA cannot be used: " + why};
}

/// Returns the plugin, which the first call loads, or the reason why it cannot be loaded.
const Result<const cuda::Plugin*>& plugin() {
  static const auto loaded = load();
  return loaded;
}

Result<NetOnDevice> put_on_cuda(const models::Net<float>& net, const Device& device,
                                std::size_t rows) {
  if (!plugin())
    return Error{print(device) + ": " + plugin().error().message +
                 "; valid: cpu, auto, or a build where CMake finds nvcc and cuDNN "
                 "(-DSTARLING_CUDA=ON says what is missing), with " +
                 library_name + " and CUDA's libraries where it runs"};
  auto engine = (*plugin())->make_engine(net, device.index, rows);
  if (!engine) return std::move(engine).error();
  return NetOnDevice{net.with_engine(*std::move(engine)), print(device)};
}

/// Returns why no CUDA device can be used; empty if one can.
std::string find_device_problem() {
  if (!plugin()) return plugin().error().message;
  const auto devices = (*plugin())->devices();
  if (!devices) return devices.error().message;
  return devices->empty() ? "there is no CUDA device" : "";
}

}  // namespace

Result<NetOnDevice> put_on_device(const models::Net<float>& net, const Device& device,
                                  std::size_t rows) {
  const NetOnDevice on_cpu{net, print(Device{})};
  if (device.kind == Device::Kind::cuda) return put_on_cuda(net, device, rows);
  if (device.kind == Device::Kind::cpu) return on_cpu;
  if (auto problem = find_device_problem(); !problem.empty())
    return NetOnDevice{on_cpu.net, on_cpu.device, std::move(problem)};
  auto moved = put_on_cuda(net, Device{.kind = Device::Kind::cuda}, rows);
  if (moved) return moved;
  return NetOnDevice{on_cpu.net, on_cpu.device, moved.error().message};
}

Result<void> refuse_cuda(const Device& device, const std::string& why) {
  if (device.kind != Device::Kind::cuda) return {};
  return Error{print(device) + ": " + why};
}

}  // namespace starling::program
