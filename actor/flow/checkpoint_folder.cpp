#include "starling/actor/flow/checkpoint_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/flow/plan/failure.hpp"
#include "starling/engine/flow/values/codec.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {
namespace {

constexpr const char* manifest_name = "checkpoint";
/// Part of the format on disk: in the name of a checkpoint of iterate(), the number of iterations
/// follows this prefix, as in `round-20`.
constexpr std::string_view iteration_prefix = "round-";
constexpr const char* extension = ".records";
/// The first line of a manifest. The bytes of the CheckpointManifest follow, then their hash.
constexpr std::string_view first_line = "starling checkpoint 2\n";

std::string bytes_of(const CheckpointManifest& manifest) {
  Bytes bytes;
  put(bytes, manifest);
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const std::uint64_t sum = hash_bytes(text);
  put(bytes, sum);
  return std::string{first_line} +
         std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<CheckpointManifest> read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + manifest_name;
  std::ifstream file{path, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (!file.is_open() || !text.starts_with(first_line))
    return Error{folder +
                 ": exists, and is no checkpoint of this version; valid: a new folder, or "
                 "one that checkpoint() has written"};
  const Error damaged{path +
                      ": the file is damaged; try: remove the folder, and compute the "
                      "records again"};
  const std::string_view content = std::string_view{text}.substr(first_line.size());
  std::uint64_t sum = 0;
  if (content.size() < sizeof sum) return damaged;
  const std::string_view body = content.substr(0, content.size() - sizeof sum);
  std::memcpy(&sum, content.data() + body.size(), sizeof sum);
  if (sum != hash_bytes(body)) return damaged;
  CheckpointManifest manifest;
  try {
    std::span bytes = std::as_bytes(std::span{body.data(), body.size()});
    get(bytes, manifest);
    if (!bytes.empty()) return damaged;
  } catch (const DecodeError&) {
    return damaged;
  }
  return manifest;
}

std::string print(const CheckpointIdentity& identity) {
  constexpr std::size_t digits = 16;
  std::string number(digits, '0');
  std::uint64_t rest = identity.fingerprint;
  for (auto digit = number.rbegin(); digit != number.rend(); ++digit, rest /= digits)
    *digit = "0123456789abcdef"[rest % digits];
  return number + " of '" + printable(identity.operations) + "' with records " +
         identity.record_type;
}

/// Returns the iterations for which there are folders, in no order.
std::vector<std::uint32_t> iterations_in(const std::filesystem::path& folder,
                                         std::error_code& error) {
  std::vector<std::uint32_t> iterations;
  for (auto at = std::filesystem::directory_iterator{folder, error};
       !error && at != std::filesystem::directory_iterator{}; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(iteration_prefix)) continue;
    const auto iteration = parse_count(std::string_view{name}.substr(iteration_prefix.size()));
    // Another text of the same number, such as `round-020`, is not the name of a checkpoint.
    if (iteration && *iteration > 0 && *iteration <= UINT32_MAX &&
        name == std::string{iteration_prefix} + std::to_string(*iteration))
      iterations.push_back(static_cast<std::uint32_t>(*iteration));
  }
  return iterations;
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() !=
         std::filesystem::file_type::not_found;
}

/// Returns true if the folder has the files of parts, and nothing else. If the removal of a
/// checkpoint is interrupted, such files stay.
bool is_partly_removed(const std::string& folder) {
  std::error_code error;
  bool has_parts = false;
  for (auto at = std::filesystem::directory_iterator{folder, error};
       !error && at != std::filesystem::directory_iterator{}; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("part-") || !name.ends_with(extension)) return false;
    has_parts = true;
  }
  return has_parts && !error;
}

}  // namespace

std::string checkpoint_file(const std::string& folder, Part part) {
  return folder + "/" + OutputFolder::part_name(part, extension);
}

CheckpointSearch find_checkpoint(const std::string& folder, CheckpointIdentity identity) {
  CheckpointSearch search;
  search.identity = std::move(identity);
  std::error_code error;
  search.path = std::filesystem::absolute(folder, error).string();
  while (search.path.size() > 1 && search.path.ends_with('/')) search.path.pop_back();
  if (folder.empty()) {
    search.error = "a checkpoint without a folder; valid: a new folder, or one with a checkpoint";
  } else if (!exists(search.path)) {
    OutputFolder::remove_abandoned(search.path);
    search.token = OutputFolder::new_token();
    // Finds out before the records are computed whether they can be written.
    if (const auto output = open_checkpoint(search); !output) search.error = output.error().message;
  } else if (auto manifest = read_manifest(search.path); !manifest) {
    search.error = manifest.error().message;
  } else if (manifest->identity.fingerprint != search.identity.fingerprint) {
    search.error = search.path + ": holds the checkpoint " + print(manifest->identity) +
                   ", but this set is " + print(search.identity) +
                   "; valid: another folder; or remove this one if it is out of date";
  } else {
    search.found = *std::move(manifest);
  }
  return search;
}

CheckpointIdentity identity_of_iteration(CheckpointIdentity start, std::uint32_t iteration) {
  start.fingerprint = mix(start.fingerprint ^ mix(iteration));
  start.operations += " | iterate(" + std::to_string(iteration) + ")";
  return start;
}

std::string folder_of_iteration(const std::string& folder, std::uint32_t iteration) {
  return folder + "/" + std::string{iteration_prefix} + std::to_string(iteration);
}

CheckpointSearch find_last_iteration(const std::string& folder, const CheckpointIdentity& start,
                                     std::uint32_t iterations) {
  CheckpointSearch none;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder, error);
  if (folder.empty() || (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)) {
    none.error = folder.empty() ? "checkpoints without a folder; valid: a new folder, or the one "
                                  "of an earlier run"
                                : folder + ": no folder can be made: " + std::strerror(errno);
    return none;
  }
  std::uint32_t last = 0;
  for (const std::uint32_t iteration : iterations_in(path, error))
    if (iteration <= iterations) last = std::max(last, iteration);
  if (error) none.error = folder + ": cannot be read: " + error.message();
  if (error || last == 0) return none;
  CheckpointSearch search =
      find_checkpoint(folder_of_iteration(folder, last), identity_of_iteration(start, last));
  // Somebody may have removed the folder meanwhile: the program then begins with iteration 0.
  if (search.found) search.iteration = last;
  return search;
}

void remove_iterations_before(const std::string& folder, const CheckpointIdentity& start,
                              std::uint32_t iteration) {
  std::error_code ignored;
  for (const std::uint32_t earlier : iterations_in(folder, ignored)) {
    const std::string path = folder_of_iteration(folder, earlier);
    if (earlier >= iteration) continue;
    const auto manifest = read_manifest(path);
    const bool is_own = manifest ? manifest->identity.fingerprint ==
                                       identity_of_iteration(start, earlier).fingerprint
                                 : is_partly_removed(path);
    if (!is_own) continue;
    // Removes the manifest first: if only a part of the folder is removed, the rest is no
    // checkpoint.
    std::filesystem::remove(path + "/" + manifest_name, ignored);
    std::filesystem::remove_all(path, ignored);
  }
}

Result<OutputFolder> open_checkpoint(const CheckpointSearch& search) {
  return OutputFolder::shared(search.path, search.token, extension);
}

CheckpointManifest commit_checkpoint(const CheckpointSearch& search, OutputFolder& output,
                                     Part parts, std::uint64_t records) {
  // A member that has died since may have committed the checkpoint.
  if (exists(search.path))
    if (auto done = read_manifest(search.path); done && done->token == search.token)
      return *std::move(done);
  CheckpointManifest manifest{search.identity, parts, records, search.token};
  PartFile file = output.open_file(manifest_name);
  file.add(bytes_of(manifest));
  file.finish();
  if (const auto committed = output.commit(parts); !committed) throw TaskFailure{committed.error()};
  return manifest;
}

}  // namespace starling::flow
