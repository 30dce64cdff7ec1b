#include "starling/actor/flow/text_splits.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "starling/base/input.hpp"
#include "starling/engine/flow/plan/failure.hpp"
#include "starling/models/data/formats/input_file.hpp"

namespace starling::flow {
namespace {

constexpr std::size_t read_bytes = std::size_t{256} << 10U;
/// The longest line; the reader of gzip files has the same limit.
constexpr std::size_t line_bytes_max = std::size_t{256} << 20U;
/// The byte order mark of UTF-8, which the reader of gzip files skips too.
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// Reads a plain file from any offset.
class TextFile {
 public:
  explicit TextFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw failure("cannot be opened");
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { ::close(descriptor_); }

  /// Returns the number of bytes read; 0 at the end of the file.
  std::size_t read(std::uint64_t offset, char* out, std::size_t size) const {
    for (;;) {
      const ssize_t n = ::pread(descriptor_, out, size, static_cast<off_t>(offset));
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) throw failure("cannot be read");
    }
  }

 private:
  [[nodiscard]] TaskFailure failure(const char* what) const {
    return TaskFailure{Error{path_ + ": " + what + ": " + std::strerror(errno)}};
  }

  std::string path_;
  int descriptor_;
};

/// Reads lines from an offset on.
class LineScanner {
 public:
  LineScanner(const TextFile& file, std::uint64_t offset) : file_(file), offset_(offset) {}

  /// Reads the next line, with its LF if it has one. Returns false at the end of the file.
  bool next(std::string& line) {
    line.clear();
    for (;;) {
      const std::string_view rest{buffer_.data() + begin_, end_ - begin_};
      const auto newline = rest.find('\n');
      const std::size_t size = newline == rest.npos ? rest.size() : newline + 1;
      line.append(rest.substr(0, size));
      begin_ += size;
      if (newline != rest.npos) break;
      if (line.size() > line_bytes_max)
        throw std::length_error{"the line is longer than 256 MiB; valid: shorter lines"};
      if (!refill()) break;
    }
    offset_ += line.size();
    return !line.empty();
  }
  /// The offset of the line that next() would read.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

 private:
  bool refill() {
    buffer_.resize(read_bytes);
    end_ = file_.read(read_offset(), buffer_.data(), buffer_.size());
    read_ += end_;
    begin_ = 0;
    return end_ > 0;
  }
  [[nodiscard]] std::uint64_t read_offset() { return started_at_ + read_; }

  const TextFile& file_;
  std::uint64_t offset_;
  const std::uint64_t started_at_ = offset_;
  std::uint64_t read_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// Returns the number, from 1, of the line that begins at `offset`. Reads the file up to there.
std::uint64_t line_number(const TextFile& file, std::uint64_t offset) {
  std::uint64_t number = 1;
  std::string part(read_bytes, '\0');
  for (std::uint64_t at = 0; at < offset;) {
    const auto size = std::min<std::uint64_t>(part.size(), offset - at);
    const std::size_t n = file.read(at, part.data(), static_cast<std::size_t>(size));
    if (n == 0) break;
    number += static_cast<std::uint64_t>(
        std::count(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(n), '\n'));
    at += n;
  }
  return number;
}

void remove_line_end(std::string& line) {
  if (line.ends_with('\n')) line.pop_back();
  if (line.ends_with('\r')) line.pop_back();
}

void read_plain(const TextSplit& split, const LineSink& sink) {
  const TextFile file{split.path};
  std::string line;
  // The line that holds the byte `begin - 1` belongs to a split before, and ends at the first LF
  // from that byte on. So reading begins with that byte, and drops everything up to that LF.
  LineScanner scanner{file, split.begin > 0 ? split.begin - 1 : 0};
  std::uint64_t line_at = 0;
  run_located(
      [&] {
        if (split.begin > 0 || split.has_header) scanner.next(line);
        while ((line_at = scanner.offset()) < split.end && scanner.next(line)) {
          if (line_at == 0 && line.starts_with(byte_order_mark))
            line.erase(0, byte_order_mark.size());
          remove_line_end(line);
          if (!sink(line)) return;
        }
        if (scanner.offset() < split.end)
          throw std::runtime_error{"the file has become shorter since the flow began"};
      },
      [&] { return split.path + ":" + std::to_string(line_number(file, line_at)); });
}

void read_gzip(const TextSplit& split, const LineSink& sink) {
  auto file = models::InputFile::open(split.path);
  if (!file) throw TaskFailure{file.error()};
  models::LineReader reader{*std::move(file)};
  std::string line;
  bool is_header = split.has_header;
  run_located(
      [&] {
        for (;;) {
          const auto next = reader.next();
          if (!next) throw TaskFailure{next.error()};
          if (!*next) return;
          if (std::exchange(is_header, false)) continue;
          line.assign(**next);
          if (!sink(line)) return;
        }
      },
      [&] { return reader.location(); });
}

Result<TextFileInfo> find_text_file(const std::string& path) {
  const ReadScope regular_files_only{{.refuses_pipes = true}};
  auto input = InputDescriptor::open(path);
  if (!input) return std::move(input).error();
  std::array<std::byte, 2> magic{};
  const auto size = input->read(magic);
  if (!size) return size.error();
  const bool is_gzip = *size == 2 && magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
  std::error_code fault;
  const std::int64_t modified_at_ns =
      std::chrono::floor<std::chrono::nanoseconds>(std::filesystem::last_write_time(path, fault))
          .time_since_epoch()
          .count();
  const std::uint64_t bytes = input->size().value_or(0);
  if (bytes < *size)
    return Error{path +
                 ": the system does not tell its size, as for files of /proc; valid: a regular "
                 "file, such as a copy of it"};
  return TextFileInfo{path, bytes, is_gzip, modified_at_ns};
}

}  // namespace

Result<std::vector<TextFileInfo>> find_text_files(const std::vector<std::string>& paths,
                                                  std::vector<Error>* skipped) {
  if (paths.empty()) return Error{"no text file was given; valid: one or more files"};
  std::vector<TextFileInfo> files;
  std::vector<Error> unreadable;
  for (const std::string& path : paths) {
    auto file = find_text_file(path);
    if (!file && skipped == nullptr) return std::move(file).error();
    if (file)
      files.push_back(*std::move(file));
    else
      unreadable.push_back(std::move(file).error());
  }
  if (files.empty()) return unreadable.front();
  if (skipped != nullptr) skipped->insert(skipped->end(), unreadable.begin(), unreadable.end());
  return files;
}

std::vector<TextSplit> split_files(const std::vector<TextFileInfo>& files,
                                   std::uint64_t split_bytes, bool have_headers) {
  std::vector<TextSplit> splits;
  for (const TextFileInfo& file : files) {
    const std::uint64_t step = file.is_gzip ? file.bytes : split_bytes;
    for (std::uint64_t begin = 0; begin < file.bytes; begin += step)
      splits.push_back({file.path, begin, std::min(begin + step, file.bytes), file.is_gzip,
                        have_headers, file.modified_at_ns});
  }
  return splits;
}

void read_lines(const TextSplit& split, const LineSink& sink) {
  if (split.is_gzip)
    read_gzip(split, sink);
  else
    read_plain(split, sink);
}

}  // namespace starling::flow
