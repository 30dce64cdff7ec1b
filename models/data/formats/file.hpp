/// Reading a data file front to back, gzip or plain alike. One thread at a time.
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

/// An open file whose content is handed out decompressed. Gzip is known by its magic bytes, never
/// by the file's name; damage, an early end and bytes behind the last member are errors.
class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);

  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();

  /// Fills `out` as far as the content goes and returns how far; less than all of it means the end.
  Result<std::size_t> read(std::span<std::byte> out);

  [[nodiscard]] const std::string& path() const noexcept;
  /// Content bytes handed out so far.
  [[nodiscard]] std::uint64_t offset() const noexcept;
  /// Returns a bound on the bytes of content in the file: its size, or for gzip 1032 times its
  /// size, deflate's highest ratio. UINT64_MAX for pipes.
  [[nodiscard]] std::uint64_t content_max() const noexcept;

 private:
  struct State;
  explicit InputFile(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

/// The lines of a text file, without UTF-8's byte order mark. A line is at most 256 MiB, and less
/// where a ReadBudget says so.
class LineReader {
 public:
  explicit LineReader(InputFile file) : file_(std::move(file)), budget_(file_.path()) {}

  /// The next line without its LF or CR LF, nullopt behind the last. Valid until the next call.
  Result<std::optional<std::string_view>> next();

  /// "FILE:LINE" of the line last returned.
  [[nodiscard]] std::string place() const;
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  /// Reads more bytes behind those already held; false at the end of the file.
  Result<bool> refill();

  InputFile file_;
  ReadBudget budget_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t line_ = 0;
  bool at_end_ = false;
};

}  // namespace starling::models
