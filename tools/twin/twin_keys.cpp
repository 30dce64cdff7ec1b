#include "starling/tools/twin/twin_keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "starling/tools/sim/learning.hpp"

namespace starling::program {
namespace {

constexpr std::array<std::string_view, 6> outputs{"save",    "checkpoint", "checkpoint-every",
                                                  "metrics", "report",     "trace"};

bool is_output(std::string_view key) { return std::ranges::find(outputs, key) != outputs.end(); }

}  // namespace

const std::vector<KeyDescription>& twin_keys() {
  static const std::vector<KeyDescription> all = [] {
    std::vector<KeyDescription> keys;
    for (const Key& key : job_keys())
      if (!is_output(key.name) && key.name != "resume" && key.name != "trust-file")
        keys.push_back(key);
    keys.push_back(
        {"seeds", ValueType::count, "N",
         "number of simulations, 100 or more; their seeds are the job's and the next ones [200]",
         "What is simulated"});
    return keys;
  }();
  return all;
}

Settings live_settings(Settings settings) {
  std::erase_if(settings, [](const Setting& setting) {
    return is_output(setting.key) || setting.key == "seeds";
  });
  return settings;
}

Settings sim_settings(Settings settings) {
  std::erase_if(settings, [](const Setting& setting) {
    return setting.key == "epochs" || std::ranges::count(learning_keys(), setting.key) > 0;
  });
  return settings;
}

}  // namespace starling::program
