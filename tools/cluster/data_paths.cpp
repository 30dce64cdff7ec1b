#include "starling/tools/cluster/data_paths.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include <netdb.h>

#include "starling/actor/wire/transport.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/tools/cluster/keys/address.hpp"

namespace starling::program {
namespace {

std::string absolute(const std::string& file) {
  std::error_code failed;
  const auto path = std::filesystem::absolute(file, failed);
  return failed ? file : path.string();
}

/// True if a socket of this machine can be bound to the address.
bool is_here(const std::string& address) {
  const auto place = parse_address(wire::place_of(address), false);
  if (!place) return false;
  if (is_loopback(*place)) return true;
  const auto colon = place->rfind(':');
  std::string host = place->substr(6, colon - 6);
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

/// Returns the files and folders that the source names.
std::vector<std::string*> files_of(models::Source& source) {
  if (auto* idx = std::get_if<models::IdxSource>(&source.kind)) return {&idx->images, &idx->labels};
  if (auto* csv = std::get_if<models::CsvSource>(&source.kind)) return {&csv->file};
  if (auto* libsvm = std::get_if<models::LibsvmSource>(&source.kind)) return {&libsvm->file};
  if (auto* npz = std::get_if<models::NpzSource>(&source.kind)) return {&npz->file};
  if (auto* images = std::get_if<models::ImagesSource>(&source.kind)) return {&images->folder};
  std::vector<std::string*> files;
  if (auto* npy = std::get_if<models::NpySource>(&source.kind)) {
    files.push_back(&npy->file);
    if (!npy->label_file.empty()) files.push_back(&npy->label_file);
  }
  if (auto* cifar10 = std::get_if<models::Cifar10Source>(&source.kind))
    for (std::string& file : cifar10->files) files.push_back(&file);
  return files;
}

/// Returns with_files() of a source that does not parse as a built-in one.
std::string with_leading_files(const std::string& source,
                               std::string (*absolute)(const std::string&)) {
  const auto colon = source.find(':');
  if (colon == std::string::npos) return source;
  const std::string rest = source.substr(colon + 1);
  std::string text = source.substr(0, colon);
  char lead = ':';
  bool leads = true;
  for (const std::string_view part : split(rest, ',')) {
    const std::string word{trimmed(part)};
    leads = leads && word.find('=') == std::string::npos;
    std::error_code ignored;
    text += lead;
    text += leads && std::filesystem::exists(word, ignored) ? absolute(word) : std::string{part};
    lead = ',';
  }
  return text;
}

/// Returns a setting's text with absolute paths; the text itself where it names no file.
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
  auto parsed = models::Source::parse(source);
  if (!parsed) return with_leading_files(source, absolute);
  bool changes = false;
  for (std::string* file : files_of(*parsed)) {
    const std::string written = std::exchange(*file, absolute(*file));
    changes = changes || *file != written;
  }
  return changes ? parsed->print() : source;
}

Result<Settings> with_absolute_paths(Settings settings,
                                     const std::vector<core::NodeRecord>& nodes) {
  const auto elsewhere = std::ranges::find_if(nodes, [](const core::NodeRecord& node) {
    return core::is_live(node.state) && !is_here(node.address);
  });
  for (Setting& setting : settings) {
    const std::string path = resolved(setting);
    if (path == setting.text) continue;
    if (elsewhere != nodes.end())
      return Error{setting.place + ": '" + setting.text +
                   "' is relative to where this program stands, and node " +
                   printable(elsewhere->name) + " at " +
                   printable(wire::place_of(elsewhere->address)) +
                   " is on another machine; valid: the absolute path at which every node finds "
                   "it, like '" +
                   path + "'"};
    setting.text = path;
  }
  return settings;
}

}  // namespace starling::program
