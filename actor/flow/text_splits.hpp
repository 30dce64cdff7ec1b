/// Text files as the parts of a data set. The functions block while they read files. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::flow {

/// A piece of a text file: the lines that begin in [begin, end).
struct TextSplit {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  /// True for a gzip file, which is read as a whole.
  bool is_gzip = false;
  /// True if the first line of the file is a header, which is no line of the data.
  bool has_header = false;
  /// When the file was changed last, in nanoseconds since the epoch of std::filesystem's file
  /// clock.
  std::int64_t modified_at_ns = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.path, m.begin, m.end, m.is_gzip, m.has_header, m.modified_at_ns);
  }
};

/// A text file that can be opened.
struct TextFileInfo {
  std::string path;
  std::uint64_t bytes = 0;
  /// As in TextSplit.
  bool is_gzip = false;
  std::int64_t modified_at_ns = 0;
};

/// Looks at text files, in the order of the paths. The first bytes of a file decide whether it is
/// gzip. Returns an Error for a file that cannot be opened, whose first bytes cannot be read or
/// whose size the system does not tell, as for files of /proc. If `skipped` is given, such a file
/// is left out instead, and its error is added there; the function then returns an Error only if
/// all files are left out.
[[nodiscard]] Result<std::vector<TextFileInfo>> find_text_files(
    const std::vector<std::string>& paths, std::vector<Error>* skipped = nullptr);

/// Splits files into pieces of about `split_bytes` bytes. A gzip file is one piece. Requires:
/// split_bytes > 0.
[[nodiscard]] std::vector<TextSplit> split_files(const std::vector<TextFileInfo>& files,
                                                 std::uint64_t split_bytes, bool have_headers);

/// Takes a line without its LF or CR LF, and returns false to stop. The sink may move from the
/// line.
using LineSink = std::function<bool(std::string& line)>;

/// Gives each line of a piece to `sink`. A file that cannot be read, and an exception of `sink`,
/// end in a TaskFailure that begins with "FILE:LINE".
void read_lines(const TextSplit& split, const LineSink& sink);

}  // namespace starling::flow
