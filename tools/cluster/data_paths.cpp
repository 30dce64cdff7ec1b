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

std::string absolute_path(const std::string& file) {
  std::error_code failed;
  const auto path = std::filesystem::absolute(file, failed);
  return failed ? file : path.string();
}

/// Returns true if the host of `address` is this machine: a socket can be bound to it.
bool is_on_this_machine(const std::string& address) {
  const auto parsed = parse_address(wire::without_key(address), false);
  if (!parsed) return false;
  if (is_loopback(*parsed)) return true;
  const auto colon = parsed->rfind(':');
  constexpr std::size_t host_begin = std::string_view{"tcp://"}.size();
  std::string host = parsed->substr(host_begin, colon - host_begin);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* resolved = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &resolved) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{resolved, ::freeaddrinfo};
  const int test_socket = ::socket(resolved->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (test_socket < 0) return false;
  const bool is_bound = ::bind(test_socket, resolved->ai_addr, resolved->ai_addrlen) == 0;
  ::close(test_socket);
  return is_bound;
}

/// Returns pointers to the paths of files and folders in a built-in source.
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

/// Implements with_files() for a source that is not built in: replaces each option before the first
/// `KEY=VALUE` that names an existing file.
std::string with_files_among_leading_options(const std::string& source,
                                             std::string (*path_of)(const std::string&)) {
  const auto colon = source.find(':');
  if (colon == std::string::npos) return source;
  const std::string rest = source.substr(colon + 1);
  std::string text = source.substr(0, colon);
  char separator = ':';
  bool is_leading = true;
  for (const std::string_view part : split(rest, ',')) {
    const std::string word{trim(part)};
    is_leading = is_leading && word.find('=') == std::string::npos;
    std::error_code ignored;
    text += separator;
    text +=
        is_leading && std::filesystem::exists(word, ignored) ? path_of(word) : std::string{part};
    separator = ',';
  }
  return text;
}

/// Returns a setting's text with the paths in it made absolute; the same text if it has no path.
std::string with_absolute_paths_in(const Setting& setting) {
  if (setting.key == "data" || setting.key == "test")
    return with_files(setting.text, absolute_path);
  if (setting.key == "resume" || setting.key == "init") return absolute_path(setting.text);
  constexpr std::string_view trace = "trace:";
  if (setting.key == "delay" && setting.text.starts_with(trace))
    return std::string{trace} + absolute_path(setting.text.substr(trace.size()));
  return setting.text;
}

/// Replaces the text of each setting by what `make_absolute` returns for it. Returns an Error if
/// that changes a text, and a live node of `nodes` is on another machine.
Result<Settings> with_paths(Settings settings, const std::vector<core::NodeRecord>& nodes,
                            const std::function<std::string(const Setting&)>& make_absolute) {
  const auto remote_node = std::ranges::find_if(nodes, [](const core::NodeRecord& node) {
    return core::is_live(node.state) && !is_on_this_machine(node.address);
  });
  for (Setting& setting : settings) {
    const std::string absolute = make_absolute(setting);
    if (absolute == setting.text) continue;
    if (remote_node != nodes.end())
      return Error{setting.location + ": '" + setting.text +
                   "' is relative to this program's working folder, and node " +
                   printable(remote_node->name) + " at " +
                   printable(wire::without_key(remote_node->address)) +
                   " is on another machine; valid: the absolute path at which every node finds "
                   "the file, like '" +
                   absolute + "'"};
    setting.text = absolute;
  }
  return settings;
}

}  // namespace

std::string with_files(const std::string& source, std::string (*path_of)(const std::string&)) {
  auto parsed = models::Source::parse(source);
  if (!parsed) return with_files_among_leading_options(source, path_of);
  bool has_changed = false;
  for (std::string* file : files_of(*parsed)) {
    const std::string original = std::exchange(*file, path_of(*file));
    has_changed = has_changed || *file != original;
  }
  return has_changed ? parsed->print() : source;
}

Result<Settings> with_absolute_paths(Settings settings,
                                     const std::vector<core::NodeRecord>& nodes) {
  return with_paths(std::move(settings), nodes, with_absolute_paths_in);
}

Result<Settings> with_absolute_paths(Settings settings, const std::vector<core::NodeRecord>& nodes,
                                     const std::function<bool(const Setting&)>& is_path) {
  return with_paths(std::move(settings), nodes, [&](const Setting& setting) {
    return is_path(setting) ? absolute_path(setting.text) : setting.text;
  });
}

}  // namespace starling::program
