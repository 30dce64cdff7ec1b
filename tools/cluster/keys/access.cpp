#include "starling/tools/cluster/keys/access.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "starling/actor/wire/frame.hpp"
#include "starling/actor/wire/zmtp.hpp"
#include "starling/tools/cluster/keys/address.hpp"
#include "starling/tools/cluster/keys/key_store.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

// In Access::ask_status() these timeouts add up to less than 3 s, so that a user soon learns that
// no node answers.
constexpr int connect_timeout_ms = 800;
/// How long to wait for the first bytes of a node that has accepted a connection.
constexpr int signature_timeout_ms = 400;
/// How long to wait for the reply to the first request, and to a second one after a successful
/// connection. A healthy node answers long before the first timeout.
constexpr auto first_reply_timeout = 500ms;
constexpr auto second_reply_timeout = 1400ms;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

/// The linked list that getaddrinfo() returns.
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

/// Looks up the host of `address`, tcp://HOST:PORT; null if this machine cannot resolve it.
AddressList look_up(const std::string& address) {
  const auto colon = address.rfind(':');
  constexpr std::size_t host_begin = std::string_view{"tcp://"}.size();
  std::string host = address.substr(host_begin, colon - host_begin);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo* list = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &list) != 0)
    list = nullptr;
  return AddressList{list};
}

/// Returns "tcp://HOST:" with the host as a numeric address; empty if that fails.
std::string numeric_host(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> name{};
  if (::getnameinfo(address, size, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return address->sa_family == AF_INET6 ? "tcp://[" + std::string{name.data()} + "]:"
                                        : "tcp://" + std::string{name.data()} + ":";
}

/// A connection to a socket address. `error` is the errno of the failure, or 0 if the connection is
/// open. Neither copied nor moved.
struct Connection {
  int descriptor = -1;
  int error = 0;

  explicit Connection(const addrinfo& to)
      : descriptor(::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    error = descriptor >= 0 && ::connect(descriptor, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
    if (error != EINPROGRESS) return;
    pollfd writable{descriptor, POLLOUT, 0};
    socklen_t size = sizeof error;
    int ready = 0;
    while ((ready = ::poll(&writable, 1, connect_timeout_ms)) < 0 && errno == EINTR) continue;
    if (ready <= 0)
      error = ETIMEDOUT;
    else if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = errno;
  }
  ~Connection() {
    if (descriptor >= 0) ::close(descriptor);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Returns the version of the frames that the node at the other end uses; nullopt if it does not
  /// name one in time.
  [[nodiscard]] std::optional<unsigned> frame_version() const {
    const wire::Signature own = wire::own_signature();
    wire::Signature answer{};
    pollfd readable{descriptor, POLLIN, 0};
    // The peer sends its signature in one piece.
    const bool is_complete =
        ::send(descriptor, own.data(), own.size(), MSG_NOSIGNAL) == std::ssize(own) &&
        ::poll(&readable, 1, signature_timeout_ms) > 0 &&
        ::recv(descriptor, answer.data(), answer.size(), 0) == std::ssize(answer);
    return is_complete ? wire::frame_version_of(answer) : std::nullopt;
  }
};

/// Looks up the host of `address`, like resolve(). If the host has several addresses, such as ::1
/// and 127.0.0.1, takes the first at which something listens.
Result<std::string> resolve_node(const std::string& address) {
  const AddressList list = look_up(address);
  if (list && list->ai_next != nullptr)
    for (const addrinfo* to = list.get(); to != nullptr; to = to->ai_next)
      if (Connection{*to}.error == 0)
        return numeric_host(to->ai_addr, to->ai_addrlen) + address.substr(address.rfind(':') + 1);
  return resolve(address);
}

/// Returns an Error if nothing accepts a connection at `address`, tcp://HOST:PORT, or if the node
/// there uses frames of another version.
Result<void> try_connection(const std::string& address) {
  const AddressList to = look_up(address);
  if (!to) return Error{"no connection to " + address + ": " + std::strerror(EHOSTUNREACH)};
  const Connection connection{*to};
  if (connection.error == ECONNREFUSED) return Error{"no program listens at " + address};
  if (connection.error != 0)
    return Error{"no connection to " + address + ": " + std::strerror(connection.error)};
  const auto version = connection.frame_version();
  if (version && *version != wire::version)
    return Error{fmt::format(
        "the node at {} sends messages of version {} of the format; valid: version {}, so both "
        "programs must be built from one version of Starling",
        address, *version, static_cast<unsigned>(wire::version))};
  return {};
}

/// Returns the first of `seeds` that answers; seeds[0] if none does. All of them have the same
/// HOST:PORT, with different public keys.
std::string find_seed(actor::ClusterClient& client, const std::vector<std::string>& seeds) {
  if (seeds.size() == 1 || !try_connection(wire::without_key(seeds[0]))) return seeds[0];
  const auto replies = client.ask_all(seeds, wire::GetStatus{}, first_reply_timeout);
  const auto answered =
      std::ranges::find_if(replies, [](const auto& reply) { return reply.has_value(); });
  return answered == replies.end() ? seeds[0]
                                   : seeds[static_cast<std::size_t>(answered - replies.begin())];
}

}  // namespace

bool accepts_connections(const std::string& address) {
  const AddressList to = look_up(address);
  return to && Connection{*to}.error == 0;
}

std::vector<KeyDescription> connection_options(const char* group) {
  return {
      {"to", ValueType::text, "[NAME@]HOST:PORT", "any node of the cluster", group},
      {"keys", ValueType::text, "FILE",
       "key file made by `keys node`; needed if nodes have key files", group},
      {"insecure", ValueType::flag, "", "connect to another machine without encryption", group}};
}

Result<std::optional<security::NodeSecrets>> read_keys(const Settings& settings) {
  const auto setting = std::ranges::find(settings, "keys", &Setting::key);
  if (setting == settings.end()) return std::optional<security::NodeSecrets>{};
  auto secrets = read_key_file_as<security::NodeSecrets>(setting->text);
  if (!secrets) return std::move(secrets).error().within(setting->location);
  return std::optional{*std::move(secrets)};
}

Result<std::vector<std::string>> parse_seeds(const Setting& setting,
                                             const std::optional<security::NodeSecrets>& secrets,
                                             bool is_administrator) {
  const auto at = setting.text.find('@');
  const bool is_named = at != std::string::npos;
  auto address = parse_address(is_named ? setting.text.substr(at + 1) : setting.text, false);
  if (!address) return std::move(address).error().within(setting.location);
  address = resolve_node(*address);
  if (!address) return std::move(address).error().within(setting.location);
  auto addresses = security::addresses_of(is_named ? setting.text.substr(0, at) : "", *address,
                                          secrets, utc_now());
  if (addresses) return addresses;
  Error error = std::move(addresses).error();
  if (is_named && secrets && !is_administrator)
    error.message +=
        "; a key file knows only the nodes whose keys were issued before it: to reach a later one, "
        "issue this key anew, by `" +
        program_name() + " keys node " + secrets->certificate.name +
        "` with the same options, in the folder that has the cluster's key";
  return std::move(error).within(setting.location);
}

Result<std::string> resolve(const std::string& address) {
  const AddressList list = look_up(address);
  const std::string host = list ? numeric_host(list->ai_addr, list->ai_addrlen) : "";
  if (host.empty())
    return Error{"'" + address +
                 "': no address is known for the host; valid: HOST:PORT with a host that this "
                 "machine can resolve"};
  return host + address.substr(address.rfind(':') + 1);
}

Result<std::string> local_address_towards(const std::string& address) {
  const AddressList addresses = look_up(address);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    const int datagrams = ::socket(to->ai_family, SOCK_DGRAM, 0);
    if (datagrams < 0) continue;
    sockaddr_storage storage{};
    auto* own = reinterpret_cast<sockaddr*>(&storage);
    socklen_t size = sizeof storage;
    const bool is_known = ::connect(datagrams, to->ai_addr, to->ai_addrlen) == 0 &&
                          ::getsockname(datagrams, own, &size) == 0;
    ::close(datagrams);
    const std::string host = is_known ? numeric_host(own, size) : "";
    if (!host.empty()) return host + "*";
  }
  return Error{"'" + address + "' cannot be reached from here"};
}

Result<Access> open_access(const Settings& settings) {
  const auto to = std::ranges::find(settings, "to", &Setting::key);
  if (to == settings.end())
    return Error{"--to: is missing: the address of any node of the cluster, like 10.0.0.1:7400"};
  auto secrets = read_keys(settings);
  if (!secrets) return std::move(secrets).error();
  const auto seeds = parse_seeds(*to, *secrets);
  if (!seeds) return seeds.error();
  const std::string address = wire::without_key(seeds->front());
  if (!*secrets && !is_loopback(address) && location_of(settings, "insecure").empty())
    return Error{to->location + ": " + address +
                 ": nothing would be encrypted or authenticated on the way to another machine; "
                 "valid: --keys FILE or --insecure"};
  auto listen = local_address_towards(address);
  if (!listen) return std::move(listen).error().within(to->location);
  const bool has_keys = secrets->has_value();
  auto client = actor::ClusterClient::open(
      {.listen = *std::move(listen), .secrets = *std::move(secrets), .utc_now = utc_now});
  if (!client) return std::move(client).error().within(location_of(settings, "keys"));
  std::string seed = find_seed(**client, *seeds);
  return Access{std::move(seed), *std::move(client), has_keys};
}

Result<wire::NodeStatus> Access::ask_status() const {
  auto status = client->ask_for<wire::NodeStatus>(seed, wire::GetStatus{}, first_reply_timeout);
  if (status) return status;
  const std::string address = wire::without_key(seed);
  if (auto connected = try_connection(address); !connected) return std::move(connected).error();
  status = client->ask_for<wire::NodeStatus>(seed, wire::GetStatus{}, second_reply_timeout);
  if (status) return status;
  if (auto valid = client->check_certificate(); !valid)
    return std::move(valid).error().within("--keys");
  return explain_silence(address, has_keys);
}

Error explain_silence(const std::string& address, bool has_keys) {
  if (auto connected = try_connection(address); !connected) return std::move(connected).error();
  return Error{
      "no answer from " + address +
      ", where something listens: the node may be busy, or cannot connect to this machine; a node "
      "with keys answers only clients " +
      (has_keys ? "of its own cluster that are not revoked and that ask for it by its own name, "
                  "NAME@HOST:PORT; a node whose certificate was renewed is known only to key "
                  "files issued since then"
                : "with keys of its cluster, --keys FILE")};
}

}  // namespace starling::program
