#include "starling/models/cuda/plugin.hpp"

namespace starling::models::cuda {

/// The program that loads the plugin looks this function up by plugin_entry_name. Both names must
/// be equal.
extern "C" __attribute__((visibility("default"))) const Plugin* starling_cuda_plugin_3() {
  static const Plugin plugin{
      .build = {.version = STARLING_VERSION, .commit = STARLING_COMMIT},
      .devices = [] { return devices(); },
      .make_engine = [](const Net<float>& net, std::size_t index,
                        std::size_t rows) { return make_engine(net, index, rows); }};
  return &plugin;
}

}  // namespace starling::models::cuda
