/// The interface of libstarling_cuda.so to the program that loads it: CUDA devices (device.hpp),
/// without CUDA's libraries in programs that ask for no device. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "starling/models/cuda/device.hpp"
#include "starling/models/net/layers/layer_specification.hpp"

namespace starling::models::cuda {

/// The properties of a build in which the program and the library must agree.
struct PluginBuild {
  /// The project's version.
  std::string_view version;
  std::string_view compiler = __VERSION__;
  std::size_t net_bytes = sizeof(Net<float>);
  std::size_t form_bytes = sizeof(LayerForm);
  bool operator==(const PluginBuild&) const = default;
};

struct Plugin {
  PluginBuild build;
  /// See devices() and make_engine().
  Result<std::vector<DeviceInfo>> (*devices)() = nullptr;
  Result<std::shared_ptr<const NetEngine<float>>> (*make_engine)(const Net<float>& net,
                                                                 std::size_t index,
                                                                 std::size_t rows) = nullptr;
};

/// The name of the exported function, a PluginEntry. The name changes whenever the function's
/// arguments or result change.
inline constexpr const char* plugin_entry_name = "starling_cuda_plugin_2";
using PluginEntry = const Plugin* (*)();

}  // namespace starling::models::cuda
