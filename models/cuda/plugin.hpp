/// The interface between libstarling_cuda.so and the program that loads it. The plugin offers CUDA
/// devices (device.hpp), so that programs need CUDA's libraries only if a job asks for a device.
/// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "starling/models/cuda/device.hpp"
#include "starling/models/net/layers/layer_specification.hpp"
#include "starling/models/net/plan.hpp"
#include "starling/models/table.hpp"

namespace starling::models::cuda {

/// The properties of a build that must be equal in the program and in the plugin, so that both
/// agree on the layout of the objects that they exchange.
struct PluginBuild {
  /// The project's version.
  std::string_view version;
  /// The commit that it was built from; "unknown" without Git.
  std::string_view commit;
  std::string_view compiler = __VERSION__;
  std::size_t net_bytes = sizeof(Net<float>);
  std::size_t specification_bytes = sizeof(LayerSpecification);
  std::size_t operation_bytes = sizeof(Operation<float>);
  std::size_t table_bytes = sizeof(Table);
  bool operator==(const PluginBuild&) const = default;
};

/// The functions of the plugin.
struct Plugin {
  PluginBuild build;
  /// See devices() and make_engine() in device.hpp.
  Result<std::vector<DeviceInfo>> (*devices)() = nullptr;
  Result<std::shared_ptr<const NetEngine<float>>> (*make_engine)(const Net<float>& net,
                                                                 std::size_t index,
                                                                 std::size_t rows) = nullptr;
};

/// The name of the exported function, whose type is PluginEntry. The name changes whenever the
/// function's arguments or result change.
inline constexpr const char* plugin_entry_name = "starling_cuda_plugin_3";
using PluginEntry = const Plugin* (*)();

}  // namespace starling::models::cuda
