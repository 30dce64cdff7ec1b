#include "starling/app/metrics_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace starling::app {

Result<MetricsFile> MetricsFile::create(const std::string& path) {
  MetricsFile metrics;
  metrics.path_ = path;
  if (path.empty()) return metrics;
  metrics.file_.reset(std::fopen(path.c_str(), "wbe"));
  if (!metrics.file_) return Error{path + ": cannot be written: " + std::strerror(errno)};
  std::setvbuf(metrics.file_.get(), nullptr, _IONBF, 0);
  return metrics;
}

Result<void> MetricsFile::append(const std::string& line) {
  if (!file_) return {};
  const std::string whole = line + "\n";
  if (std::fwrite(whole.data(), 1, whole.size(), file_.get()) == whole.size()) {
    size_ += static_cast<long>(whole.size());
    return {};
  }
  const Error error{path_ + ": cannot be written: " + std::strerror(errno)};
  if (::ftruncate(::fileno(file_.get()), size_) != 0) std::clearerr(file_.get());
  file_.reset();
  return error;
}

}  // namespace starling::app
