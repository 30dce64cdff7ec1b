/// Reads a data file, gzip or plain, from its beginning to its end. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "starling/base/input.hpp"
#include "starling/base/result.hpp"

namespace starling::models {

/// An open file, whose content is decompressed if it is gzip. The first bytes decide whether it is,
/// never the file's name. Damaged gzip data, an early end and bytes after the last gzip member are
/// errors.
class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);

  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();

  /// Reads content into `out` and returns the number of bytes; fewer than out.size() only at the
  /// end of the content.
  Result<std::size_t> read(std::span<std::byte> out);

  [[nodiscard]] const std::string& path() const noexcept;
  /// Returns the number of bytes of content that were read so far.
  [[nodiscard]] std::uint64_t offset() const noexcept;
  /// Returns an upper bound on the bytes of content in the file: its size, or for gzip 1032 times
  /// its size, which is deflate's highest compression ratio. UINT64_MAX for pipes.
  [[nodiscard]] std::uint64_t content_max() const noexcept;

 private:
  struct State;
  explicit InputFile(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

/// Reads a text file line by line and skips UTF-8's byte order mark. Refuses lines of more than 256
/// MiB, and lines for which a ReadBudget allows too little memory.
class LineReader {
 public:
  explicit LineReader(InputFile file) : file_(std::move(file)), budget_(file_.path()) {}

  /// Returns the next line without its LF or CR LF, valid until the next call; nullopt at the end.
  Result<std::optional<std::string_view>> next();

  /// Returns "FILE:LINE" of the line that next() returned last.
  [[nodiscard]] std::string location() const;
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  /// Appends bytes of the file to the buffer. Returns false if an earlier call has reached the end
  /// of the file.
  Result<bool> refill();

  InputFile file_;
  ReadBudget budget_;
  std::string buffer_;
  /// The bytes of buffer_ that next() has not returned yet lie from begin_ to end_.
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  /// The number, from 1, of the line that next() returned last.
  std::size_t line_ = 0;
  bool has_ended_ = false;
};

}  // namespace starling::models
