#include "starling/models/device.hpp"

#include "starling/base/text.hpp"

namespace starling::models {
namespace {

constexpr std::string_view cuda_prefix = "cuda";
constexpr std::size_t index_max = 1023;

}  // namespace

Result<Device> parse_device(std::string_view text) {
  if (text == "cpu") return Device{};
  if (text == "auto") return Device{.kind = Device::Kind::automatic};
  if (text == cuda_prefix) return Device{.kind = Device::Kind::cuda};
  if (text.starts_with("cuda:")) {
    const auto index = parse_count(text.substr(cuda_prefix.size() + 1));
    if (index && *index <= index_max) return Device{.kind = Device::Kind::cuda, .index = *index};
  }
  return Error{quote(text) + " is not a device; valid: cpu, auto, cuda:0, cuda:1 and so on"};
}

std::string print(const Device& device) {
  switch (device.kind) {
    case Device::Kind::cpu:
      return "cpu";
    case Device::Kind::automatic:
      return "auto";
    case Device::Kind::cuda:
      return std::string{cuda_prefix} + ":" + std::to_string(device.index);
  }
  return {};
}

}  // namespace starling::models
