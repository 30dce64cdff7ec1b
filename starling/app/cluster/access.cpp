#include "starling/app/cluster/access.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "starling/app/cluster/address.hpp"
#include "starling/app/cluster/key_store.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

struct FreeAddresses {
  void operator()(addrinfo* all) const { ::freeaddrinfo(all); }
};

/// The first of several that answers.
Result<std::string> find_door(live::ClusterClient& client, const std::vector<std::string>& doors) {
  if (doors.size() == 1) return doors[0];
  for (const std::string& door : doors)
    if (client.ask(door, wire::AskStatus{}, 2s)) return door;
  return Error{"no answer from " + wire::place_of(doors[0])};
}

}  // namespace

Result<std::optional<security::NodeSecrets>> read_keys(const Settings& settings) {
  const auto given = std::ranges::find(settings, "keys", &Setting::key);
  if (given == settings.end()) return std::optional<security::NodeSecrets>{};
  auto secrets = read_key_file_as<security::NodeSecrets>(given->text);
  if (!secrets) return std::move(secrets).error().within(given->place);
  return std::optional{*std::move(secrets)};
}

Result<std::vector<std::string>> parse_door(const Setting& setting,
                                            const std::optional<security::NodeSecrets>& secrets) {
  const auto at = setting.text.find('@');
  const bool is_named = at != std::string::npos;
  auto place = parse_address(is_named ? setting.text.substr(at + 1) : setting.text, false);
  if (!place) return std::move(place).error().within(setting.place);
  auto addresses = security::addresses_of(is_named ? setting.text.substr(0, at) : "", *place,
                                          secrets, utc_now());
  if (!addresses) return std::move(addresses).error().within(setting.place);
  return addresses;
}

Result<std::string> own_address(const std::string& place) {
  const auto colon = place.rfind(':');
  std::string host = place.substr(6, colon - 6);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), place.substr(colon + 1).c_str(), &hints, &found) != 0)
    return Error{"'" + host + "' is no host that is known here"};
  const std::unique_ptr<addrinfo, FreeAddresses> addresses{found};
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const int probe = ::socket(to->ai_family, SOCK_DGRAM, 0);
    if (probe < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    const bool known = ::connect(probe, to->ai_addr, to->ai_addrlen) == 0 &&
                       ::getsockname(probe, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    ::close(probe);
    std::array<char, NI_MAXHOST> name{};
    if (known && ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, name.data(), name.size(),
                               nullptr, 0, NI_NUMERICHOST) == 0)
      return to->ai_family == AF_INET6 ? "tcp://[" + std::string{name.data()} + "]:*"
                                       : "tcp://" + std::string{name.data()} + ":*";
  }
  return Error{"'" + host + "' cannot be reached from here"};
}

Result<Access> open_access(const Settings& settings) {
  const auto to = std::ranges::find(settings, "to", &Setting::key);
  if (to == settings.end())
    return Error{"--to: is missing: the address of any node of the cluster, like 10.0.0.1:7400"};
  auto secrets = read_keys(settings);
  if (!secrets) return std::move(secrets).error();
  const auto doors = parse_door(*to, *secrets);
  if (!doors) return doors.error();
  auto listen = own_address(wire::place_of(doors->front()));
  if (!listen) return std::move(listen).error().within(to->place);
  auto client = live::ClusterClient::open(
      {.listen = *std::move(listen), .secrets = *std::move(secrets), .utc_now = utc_now});
  if (!client) return std::move(client).error().within(place_of(settings, "keys"));
  auto door = find_door(**client, *doors);
  if (!door) return std::move(door).error();
  return Access{*std::move(door), *std::move(client)};
}

}  // namespace starling::app
