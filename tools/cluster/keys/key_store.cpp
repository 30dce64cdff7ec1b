#include "starling/tools/cluster/keys/key_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "starling/base/input.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/program/process_limits.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {
namespace {

/// 256 MiB: enough for lists of some hundred thousand nodes.
constexpr std::size_t file_bytes_max = std::size_t{256} << 20U;

/// Returns an Error with the text of errno.
Error errno_error(const std::string& path, const char* what) {
  return Error{path + ": " + what + ": " + std::strerror(errno)};
}

/// The content of a file, and what stat() returns for it.
struct Content {
  std::string text;
  struct stat info {};
};

/// Reads the open file `fd`. Errors name `path`.
Result<Content> read_open(const std::string& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno_error(path, "cannot be read");
  if (!S_ISREG(info.st_mode))
    return Error{path + ": is not a regular file; valid: the name of a key file"};
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > file_bytes_max)
    return Error{path + ": has " + std::to_string(size) + " bytes; valid: at most " +
                 std::to_string(file_bytes_max)};
  Content content{std::string(size, '\0'), info};
  for (std::size_t filled = 0; filled < size;) {
    const ssize_t count = ::read(fd, content.text.data() + filled, size - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(path, "cannot be read");
    if (count == 0) return Error{path + ": has become shorter while it was read"};
    filled += static_cast<std::size_t>(count);
  }
  return content;
}

Result<Content> read_content(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe could block.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno_error(path, "cannot be opened");
  auto content = read_open(path, fd);
  ::close(fd);
  return content;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

std::string path_inside(const std::string& folder, const char* name) {
  return (std::filesystem::path{folder} / name).string();
}

/// Reads the list at `path` into `into`, if there is such a file. The list must be of this cluster.
template <class List>
Result<void> read_list(const std::string& path, const security::ClusterPublic& cluster,
                       List& into) {
  into.cluster = cluster;
  if (!exists(path)) return {};
  auto list = read_key_file_as<List>(path);
  if (!list) return std::move(list).error();
  if (list->cluster != cluster)
    return Error{path +
                 ": is of another cluster than the key beside it; valid: the list that was "
                 "written with it"};
  into = *std::move(list);
  return {};
}

}  // namespace

security::UtcSeconds utc_now() {
  using namespace std::chrono;
  return floor<seconds>(system_clock::now()).time_since_epoch().count();
}

Result<security::KeyFile> read_key_file(const std::string& path) {
  protect_process_memory();
  auto content = read_content(path);
  if (!content) return std::move(content).error();
  auto file = security::parse_key_file(content->text, path);
  wire::wipe(content->text);
  if (file && security::is_secret(*file)) withhold_file(content->info.st_dev, content->info.st_ino);
  if (file && security::is_secret(*file) && (content->info.st_mode & 0077U) != 0)
    return Error{
        fmt::format("{0}: is secret, but its mode {1:04o} lets other users read or write it; "
                    "valid: chmod 600 {0}",
                    path, content->info.st_mode & 07777U)};
  return file;
}

std::string received_revocations_path(const std::string& key_file) {
  return key_file + ".revocations";
}

Result<security::RevocationList> read_received_revocations(const std::string& key_file,
                                                           const security::ClusterPublic& cluster) {
  security::RevocationList all;
  if (auto read = read_list(received_revocations_path(key_file), cluster, all); !read)
    return std::move(read).error();
  return all;
}

Result<void> write_received_revocations(const std::string& key_file,
                                        const security::RevocationList& all) {
  return replace_file(received_revocations_path(key_file), security::print(all));
}

Result<ClusterFolder> ClusterFolder::create(const std::string& folder) {
  protect_process_memory();
  ClusterFolder cluster{folder};
  const bool is_new = ::mkdir(folder.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return errno_error(folder, "cannot be made");
  for (const std::string& path :
       {cluster.key_path(), cluster.issued_path(), cluster.revoked_path()})
    if (exists(path))
      return Error{path + ": is there already: keys are never overwritten; valid: another folder"};
  cluster.secrets_ = {security::make_cluster_key(), wire::make_key_pair()};
  cluster.issued_.cluster = cluster.revoked_.cluster = cluster.secrets_.key.public_key;
  auto written = create_secret_file(cluster.key_path(), security::print(cluster.secrets_));
  if (!written) {
    if (is_new) ::rmdir(folder.c_str());
    return std::move(written).error();
  }
  return cluster;
}

Result<ClusterFolder> ClusterFolder::open(const std::string& folder) {
  ClusterFolder cluster{folder};
  if (!exists(cluster.key_path()))
    return Error{"'" + folder + "' holds no cluster's key: there is no " + cluster.key_path() +
                 "; `" + program_name() + " keys init-cluster` makes a cluster"};
  if (auto locked = cluster.lock(); !locked) return std::move(locked).error();
  if (auto read = cluster.read(); !read) return std::move(read).error();
  return cluster;
}

ClusterFolder::ClusterFolder(ClusterFolder&& other) noexcept
    : folder_(std::move(other.folder_)),
      lock_(std::exchange(other.lock_, -1)),
      secrets_(other.secrets_),
      issued_(std::move(other.issued_)),
      revoked_(std::move(other.revoked_)) {}

ClusterFolder::~ClusterFolder() {
  if (lock_ >= 0) ::close(lock_);
}

Result<void> ClusterFolder::lock() {
  // NFS locks only files that are open for writing.
  lock_ = ::open(key_path().c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (lock_ < 0) lock_ = ::open(key_path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (lock_ < 0) return errno_error(key_path(), "cannot be opened");
  while (::flock(lock_, LOCK_EX) != 0)
    if (errno != EINTR) return errno_error(key_path(), "cannot be locked");
  return {};
}

Result<void> ClusterFolder::read() {
  auto secrets = read_key_file_as<security::ClusterSecrets>(key_path());
  if (!secrets) return std::move(secrets).error();
  secrets_ = *std::move(secrets);
  const security::ClusterPublic& cluster = secrets_.key.public_key;
  if (auto read = read_list(issued_path(), cluster, issued_); !read) return read;
  return read_list(revoked_path(), cluster, revoked_);
}

Result<void> ClusterFolder::replace(security::CertificateList list) {
  issued_ = std::move(list);
  return replace_file(issued_path(), security::print(issued_));
}

Result<void> ClusterFolder::replace(security::RevocationList list) {
  revoked_ = std::move(list);
  return replace_file(revoked_path(), security::print(revoked_));
}

std::string ClusterFolder::key_path() const { return path_inside(folder_, "cluster.key"); }
std::string ClusterFolder::issued_path() const { return path_inside(folder_, "certificates"); }
std::string ClusterFolder::revoked_path() const { return path_inside(folder_, "revocations"); }

}  // namespace starling::program
