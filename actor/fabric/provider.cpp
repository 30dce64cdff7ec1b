#include "starling/actor/fabric/provider.hpp"

#include <array>
#include <cstddef>

#include "starling/actor/fabric/endpoint.hpp"

namespace starling::fabric {
namespace {

/// The name of each provider. The index is the value of the Provider.
constexpr std::array<std::string_view, 3> provider_names{"shm", "tcp", "verbs"};

}  // namespace

Result<Provider> parse_provider(std::string_view text) {
  for (std::size_t i = 0; i < provider_names.size(); ++i)
    if (text == provider_names[i]) return static_cast<Provider>(i);
  return Error{"unknown provider '" + std::string{text} + "'; valid: shm, tcp, verbs"};
}

std::string_view print(Provider provider) {
  return provider_names.at(static_cast<std::size_t>(provider));
}

Result<void> check(Provider provider) {
  const auto endpoint = Endpoint::open(provider);
  if (!endpoint) return endpoint.error();
  return {};
}

}  // namespace starling::fabric
