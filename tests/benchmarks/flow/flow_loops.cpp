/// Two flows as a programmer would write them by hand for one file and two threads. The file is
/// read as a whole, so it must fit into memory.
///
///   flow_loops wordcount FILE COUNT     prints the COUNT most frequent words
///   flow_loops sort FILE OUTPUT         writes the lines of FILE, sorted, to OUTPUT and to the
///   disk
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Counts = std::unordered_map<std::string_view, std::uint64_t>;
using Lines = std::vector<std::string_view>;

int open_file(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags, 0644);
  if (file < 0) throw std::runtime_error{path + ": cannot be opened"};
  return file;
}

/// Calls f(0) and f(1) on a thread each.
template <class F>
void on_two_threads(const F& f) {
  std::jthread other{[&f] { f(1); }};
  f(0);
}

std::string read_file(const std::string& path) {
  const int file = open_file(path, O_RDONLY);
  struct stat state {};
  ::fstat(file, &state);
  const auto size = static_cast<std::size_t>(state.st_size);
  std::string text(size, '\0');
  on_two_threads([&](std::size_t i) {
    const std::size_t end = i == 0 ? size / 2 : size;
    for (std::size_t at = i == 0 ? 0 : size / 2; at < end;) {
      const ssize_t n = ::pread(file, text.data() + at, end - at, static_cast<off_t>(at));
      if (n <= 0) throw std::runtime_error{path + ": cannot be read"};
      at += static_cast<std::size_t>(n);
    }
  });
  ::close(file);
  return text;
}

/// Divides a text at the end of a line near its middle.
std::array<std::string_view, 2> halves(std::string_view text) {
  const std::size_t middle = std::min(text.find('\n', text.size() / 2), text.size() - 1) + 1;
  return {text.substr(0, middle), text.substr(middle)};
}

void count_words(std::string_view text, Counts& counts) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n'; };
  for (auto end = text.begin();;) {
    const auto begin = std::find_if_not(end, text.end(), is_space);
    if (begin == text.end()) return;
    end = std::find_if(begin, text.end(), is_space);
    ++counts[std::string_view{begin, end}];
  }
}

void word_count(const std::string& path, std::size_t top) {
  const std::string text = read_file(path);
  const auto parts = halves(text);
  std::array<Counts, 2> counts;
  on_two_threads([&](std::size_t i) { count_words(parts[i], counts[i]); });
  for (const auto& [word, count] : counts[1]) counts[0][word] += count;
  std::vector<std::pair<std::string_view, std::uint64_t>> sorted{counts[0].begin(),
                                                                 counts[0].end()};
  top = std::min(top, sorted.size());
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(top);
  std::partial_sort(sorted.begin(), end, sorted.end(), [](const auto& a, const auto& b) {
    return a.second > b.second || (a.second == b.second && a.first < b.first);
  });
  for (std::size_t i = 0; i < top; ++i)
    std::cout << sorted[i].first << '\t' << sorted[i].second << '\n';
}

Lines lines_of(std::string_view text) {
  Lines lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Merges lines and writes them at `offset`.
void write_merged(int file, std::uint64_t offset, std::span<const std::string_view> a,
                  std::span<const std::string_view> b) {
  constexpr std::size_t write_bytes = std::size_t{1} << 20U;
  std::string buffer;
  const auto write = [&] {
    if (::pwrite(file, buffer.data(), buffer.size(), static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(buffer.size()))
      throw std::runtime_error{"the output cannot be written"};
    offset += buffer.size();
    buffer.clear();
  };
  while (!a.empty() || !b.empty()) {
    auto& next = b.empty() || (!a.empty() && !(b.front() < a.front())) ? a : b;
    buffer += next.front();
    buffer += '\n';
    next = next.subspan(1);
    if (buffer.size() >= write_bytes) write();
  }
  write();
}

std::uint64_t bytes_of(std::span<const std::string_view> lines) {
  std::uint64_t bytes = lines.size();
  for (const std::string_view line : lines) bytes += line.size();
  return bytes;
}

void sort_lines(const std::string& path, const std::string& output) {
  const std::string text = read_file(path);
  const auto parts = halves(text);
  std::array<Lines, 2> lines;
  on_two_threads([&](std::size_t i) {
    lines[i] = lines_of(parts[i]);
    std::ranges::sort(lines[i]);
  });
  // One thread merges the lines before the middle line, the other one the rest.
  const std::string_view middle = lines[0].empty() ? "" : lines[0][lines[0].size() / 2];
  std::array<std::array<std::span<const std::string_view>, 2>, 2> pieces;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::span<const std::string_view> all = lines[i];
    const auto before =
        static_cast<std::size_t>(std::ranges::lower_bound(all, middle) - all.begin());
    pieces[0][i] = all.first(before);
    pieces[1][i] = all.subspan(before);
  }
  const std::uint64_t middle_offset = bytes_of(pieces[0][0]) + bytes_of(pieces[0][1]);
  const int file = open_file(output, O_WRONLY | O_CREAT | O_TRUNC);
  on_two_threads([&](std::size_t i) {
    write_merged(file, i == 0 ? 0 : middle_offset, pieces[i][0], pieces[i][1]);
  });
  if (::fsync(file) != 0) throw std::runtime_error{output + ": cannot be written to the disk"};
  ::close(file);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words{argv + 1, argv + argc};
  try {
    if (words.at(0) == "wordcount")
      word_count(words.at(1), std::stoul(words.at(2)));
    else
      sort_lines(words.at(1), words.at(2));
  } catch (const std::exception& fault) {
    std::cerr << "flow_loops: " << fault.what() << "; valid: see the head of flow_loops.cpp\n";
    return 1;
  }
}
