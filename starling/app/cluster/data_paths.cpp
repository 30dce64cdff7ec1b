#include "starling/app/cluster/data_paths.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>

#include <netdb.h>

#include "starling/actor/wire/transport.hpp"
#include "starling/app/cluster/address.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/source.hpp"

namespace starling::app {
namespace {

std::string absolute(const std::string& file) {
  std::error_code failed;
  const auto path = std::filesystem::absolute(file, failed).lexically_normal();
  return failed ? file : path.string();
}

/// Whether a socket of this machine can have the address.
bool is_here(const std::string& address) {
  const std::string place = wire::place_of(address);
  if (is_loopback(place)) return true;
  const auto colon = place.rfind(':');
  std::string host = place.substr(6, colon - 6);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all{found, ::freeaddrinfo};
  const int probe = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool is_own = ::bind(probe, found->ai_addr, found->ai_addrlen) == 0;
  ::close(probe);
  return is_own;
}

bool is_built_in(std::string_view name) {
  return std::ranges::any_of(models::source_names(),
                             [&](const auto& source) { return source.first == name; });
}

/// A setting's text with absolute paths; the text itself where it names no file.
std::string resolved(const Setting& setting) {
  if (setting.key == "data" || setting.key == "test") return with_files(setting.text, absolute);
  if (setting.key == "resume" || setting.key == "init") return absolute(setting.text);
  constexpr std::string_view trace = "trace:";
  if (setting.key == "delay" && setting.text.starts_with(trace))
    return std::string{trace} + absolute(setting.text.substr(trace.size()));
  return setting.text;
}

}  // namespace

std::string with_files(const std::string& source, std::string (*absolute)(const std::string&)) {
  const auto colon = source.find(':');
  if (colon == std::string::npos || !is_built_in(std::string_view{source}.substr(0, colon)))
    return source;
  const std::string rest = source.substr(colon + 1);
  std::string text = source.substr(0, colon);
  char lead = ':';
  for (const std::string_view part : split(rest, ',')) {
    const std::string word{part};
    constexpr std::string_view labels = "labels=";
    text += lead;
    if (word.starts_with(labels))
      text += std::string{labels} + absolute(word.substr(labels.size()));
    else
      text += word.find('=') == std::string::npos ? absolute(word) : word;
    lead = ',';
  }
  return text;
}

Result<Settings> with_absolute_paths(Settings settings,
                                     const std::vector<core::MemberRecord>& nodes) {
  const auto elsewhere = std::ranges::find_if(nodes, [](const core::MemberRecord& node) {
    return core::is_live(node.state) && !is_here(node.address);
  });
  for (Setting& setting : settings) {
    const std::string path = resolved(setting);
    if (path == setting.text) continue;
    if (elsewhere != nodes.end())
      return Error{setting.place + ": '" + setting.text +
                   "' is relative to where this program stands, and node " +
                   printable(elsewhere->name) + " at " + wire::place_of(elsewhere->address) +
                   " is on another machine; valid: the absolute path at which every node finds "
                   "it, like '" +
                   path + "'"};
    setting.text = path;
  }
  return settings;
}

}  // namespace starling::app
