#include "starling/tools/cluster/keys/access.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "starling/tools/cluster/keys/address.hpp"
#include "starling/tools/cluster/keys/key_store.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

// Together less than 3 s, so that a user soon learns that no node answers.
constexpr int connect_within_ms = 800;
/// A healthy node answers long before this.
constexpr auto doubt_after = 500ms;
constexpr auto view_within = 1400ms;

struct FreeAddresses {
  void operator()(addrinfo* all) const { ::freeaddrinfo(all); }
};

using Found = std::unique_ptr<addrinfo, FreeAddresses>;

/// Looks up the host of tcp://HOST:PORT; null where it is not known here.
Found look_up(const std::string& place) {
  const auto colon = place.rfind(':');
  std::string host = place.substr(6, colon - 6);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), place.substr(colon + 1).c_str(), &hints, &found) != 0)
    found = nullptr;
  return Found{found};
}

/// Returns tcp://HOST: with the host as a numeric address; empty where that fails.
std::string in_figures(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> name{};
  if (::getnameinfo(address, size, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return address->sa_family == AF_INET6 ? "tcp://[" + std::string{name.data()} + "]:"
                                        : "tcp://" + std::string{name.data()} + ":";
}

/// Returns 0 where a connection to `to` was made, else the errno of the failure.
int connect_to(const addrinfo& to) {
  const int probe = ::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return errno;
  int fault = ::connect(probe, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (fault == EINPROGRESS) {
    pollfd waiting{probe, POLLOUT, 0};
    socklen_t size = sizeof fault;
    if (::poll(&waiting, 1, connect_within_ms) <= 0)
      fault = ETIMEDOUT;
    else if (::getsockopt(probe, SOL_SOCKET, SO_ERROR, &fault, &size) != 0)
      fault = errno;
  }
  ::close(probe);
  return fault;
}

/// Returns an Error where nobody takes a connection at tcp://HOST:PORT.
Result<void> try_connection(const std::string& place) {
  const Found to = look_up(place);
  const int fault = to ? connect_to(*to) : EHOSTUNREACH;
  if (fault == 0) return {};
  if (fault == ECONNREFUSED) return Error{"nobody listens at " + place};
  return Error{"no connection to " + place + ": " + std::strerror(fault)};
}

/// Returns the first of `seeds` that answers, else the first of all; they have one HOST:PORT.
std::string find_seed(actor::ClusterClient& client, const std::vector<std::string>& seeds) {
  if (seeds.size() == 1 || !try_connection(wire::place_of(seeds[0]))) return seeds[0];
  const auto replies = client.ask_all(seeds, wire::GetStatus{}, doubt_after);
  const auto first = std::ranges::find_if(replies, [](const auto& r) { return r.has_value(); });
  return first == replies.end() ? seeds[0]
                                : seeds[static_cast<std::size_t>(first - replies.begin())];
}

}  // namespace

std::vector<KeyForm> connection_options(const char* group) {
  return {{"to", KeyKind::text, "[NAME@]HOST:PORT", "any node of the cluster", group},
          {"keys", KeyKind::text, "FILE",
           "key file made by `keys node`; needed where nodes have them", group},
          {"insecure", KeyKind::flag, "", "reach another machine without encryption", group}};
}

Result<std::optional<security::NodeSecrets>> read_keys(const Settings& settings) {
  const auto given = std::ranges::find(settings, "keys", &Setting::key);
  if (given == settings.end()) return std::optional<security::NodeSecrets>{};
  auto secrets = read_key_file_as<security::NodeSecrets>(given->text);
  if (!secrets) return std::move(secrets).error().within(given->place);
  return std::optional{*std::move(secrets)};
}

Result<std::vector<std::string>> parse_seeds(const Setting& setting,
                                             const std::optional<security::NodeSecrets>& secrets) {
  const auto at = setting.text.find('@');
  const bool is_named = at != std::string::npos;
  auto place = parse_address(is_named ? setting.text.substr(at + 1) : setting.text, false);
  if (!place) return std::move(place).error().within(setting.place);
  place = resolve(*place);
  if (!place) return std::move(place).error().within(setting.place);
  auto addresses = security::addresses_of(is_named ? setting.text.substr(0, at) : "", *place,
                                          secrets, utc_now());
  if (addresses) return addresses;
  Error error = std::move(addresses).error();
  if (is_named && secrets)
    error.message +=
        "; a key file knows the nodes that were issued before it: for a later one issue this key "
        "anew, by `" +
        program_name() + " keys node " + secrets->certificate.name +
        "` with what else it had, where the cluster's key is";
  return std::move(error).within(setting.place);
}

Result<std::string> resolve(const std::string& place) {
  const Found found = look_up(place);
  const std::string host = found ? in_figures(found->ai_addr, found->ai_addrlen) : "";
  if (host.empty()) return Error{"'" + place + "' has no host that is known here"};
  return host + place.substr(place.rfind(':') + 1);
}

Result<std::string> own_address(const std::string& place) {
  const Found addresses = look_up(place);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    const int probe = ::socket(to->ai_family, SOCK_DGRAM, 0);
    if (probe < 0) continue;
    sockaddr_storage storage{};
    auto* own = reinterpret_cast<sockaddr*>(&storage);
    socklen_t size = sizeof storage;
    const bool known =
        ::connect(probe, to->ai_addr, to->ai_addrlen) == 0 && ::getsockname(probe, own, &size) == 0;
    ::close(probe);
    const std::string host = known ? in_figures(own, size) : "";
    if (!host.empty()) return host + "*";
  }
  return Error{"'" + place + "' cannot be reached from here"};
}

Result<Access> open_access(const Settings& settings) {
  const auto to = std::ranges::find(settings, "to", &Setting::key);
  if (to == settings.end())
    return Error{"--to: is missing: the address of any node of the cluster, like 10.0.0.1:7400"};
  auto secrets = read_keys(settings);
  if (!secrets) return std::move(secrets).error();
  const auto seeds = parse_seeds(*to, *secrets);
  if (!seeds) return seeds.error();
  const std::string place = wire::place_of(seeds->front());
  if (!*secrets && !is_loopback(place) && place_of(settings, "insecure").empty())
    return Error{to->place + ": " + place +
                 ": nothing would be encrypted or authenticated on the way to another machine; "
                 "valid: --keys FILE or --insecure"};
  auto listen = own_address(place);
  if (!listen) return std::move(listen).error().within(to->place);
  const bool has_keys = secrets->has_value();
  auto client = actor::ClusterClient::open(
      {.listen = *std::move(listen), .secrets = *std::move(secrets), .utc_now = utc_now});
  if (!client) return std::move(client).error().within(place_of(settings, "keys"));
  std::string seed = find_seed(**client, *seeds);
  return Access{std::move(seed), *std::move(client), has_keys};
}

Result<wire::NodeStatus> Access::ask_status() const {
  auto status = client->ask_for<wire::NodeStatus>(seed, wire::GetStatus{}, doubt_after);
  if (status) return status;
  const std::string place = wire::place_of(seed);
  if (auto taken = try_connection(place); !taken) return std::move(taken).error();
  status = client->ask_for<wire::NodeStatus>(seed, wire::GetStatus{}, view_within);
  if (!status) return silence_of(place, has_keys);
  return status;
}

Error silence_of(const std::string& place, bool has_keys) {
  if (auto taken = try_connection(place); !taken) return std::move(taken).error();
  return Error{"no answer from " + place +
               ", where something listens: the node may be busy; one with keys accepts only " +
               (has_keys ? "those of its own cluster, asked for by its own name, NAME@HOST:PORT"
                         : "clients with keys of its cluster, --keys FILE") +
               "; and it must reach back to this machine"};
}

}  // namespace starling::program
