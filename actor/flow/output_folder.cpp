#include "starling/actor/flow/output_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "starling/engine/flow/plan/failure.hpp"

namespace starling::flow {
namespace {

constexpr std::size_t buffer_bytes_max = std::size_t{256} << 10U;

TaskFailure system_failure(const std::string& path, const char* what) {
  return TaskFailure{Error{path + ": " + what + ": " + std::strerror(errno)}};
}

}  // namespace

Result<OutputFolder> OutputFolder::make(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::error_code fault;
  if (std::filesystem::symlink_status(path, fault).type() != std::filesystem::file_type::not_found)
    return Error{path + ": exists already; valid: the name of a new folder"};
  std::string temporary = path + ".starling-XXXXXX";
  if (::mkdtemp(temporary.data()) == nullptr)
    return Error{path + ": no folder can be made: " + std::strerror(errno)};
  return OutputFolder{std::move(path), std::move(temporary)};
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

std::string OutputFolder::part_path(Part part) const {
  const std::string number = std::to_string(part);
  const std::string zeros(number.size() < 5 ? 5 - number.size() : 0, '0');
  return (temporary_.empty() ? path_ : temporary_) + "/part-" + zeros + number + ".txt";
}

Result<void> OutputFolder::commit() {
  std::error_code fault;
  // Other users may read the result if they may read a new folder.
  const ::mode_t mask = ::umask(0);
  ::umask(mask);
  std::filesystem::permissions(temporary_, static_cast<std::filesystem::perms>(0777 & ~mask),
                               fault);
  // rename() would replace an empty folder that someone has made meanwhile.
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0)
    return Error{path_ +
                 ": the finished folder cannot be given this name: " + std::strerror(errno)};
  temporary_.clear();
  return {};
}

PartFile::PartFile(std::string path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) throw system_failure(path_, "cannot be written");
}

PartFile::~PartFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartFile::add_line(const std::string& line) {
  buffer_ += line;
  buffer_ += '\n';
  if (buffer_.size() >= buffer_bytes_max) flush();
}

void PartFile::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t n = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno != EINTR) throw system_failure(path_, "cannot be written");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

void PartFile::finish() {
  flush();
  if (::fsync(descriptor_) != 0 || ::close(std::exchange(descriptor_, -1)) != 0)
    throw system_failure(path_, "cannot be written");
}

}  // namespace starling::flow
