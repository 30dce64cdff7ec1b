#include "starling/models/data/formats/input_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace starling::models {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 18U;
constexpr std::size_t line_bytes_max = std::size_t{256} << 20U;
/// One byte of deflate data expands to at most this many bytes.
constexpr std::uint64_t deflate_ratio_max = 1032;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
/// The largest window; 16 makes zlib expect the header of gzip.
constexpr int gzip_window_bits = 16 + MAX_WBITS;

}  // namespace

struct InputFile::State {
  explicit State(InputDescriptor opened) : path(opened.path()), file(std::move(opened)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (is_gzip) inflateEnd(&stream);
  }

  /// Reads the first bytes of the file and detects whether it is gzip.
  Result<void> detect_gzip();
  /// Reads the next bytes of the file if all bytes of `input` are used. Returns false at the end of
  /// the file.
  Result<bool> fill();
  /// Copies from `input` to `out` and returns the number of bytes. Requires: a plain file.
  Result<std::size_t> copy(std::span<std::byte> out);
  /// Decompresses from `input` to `out` and returns the number of bytes. Requires: a gzip file.
  Result<std::size_t> decompress(std::span<std::byte> out);
  /// Handles the end of a gzip member: begins the next member, ends the content, or returns an
  /// error.
  Result<void> end_member();

  [[nodiscard]] std::span<const std::byte> unused_input() const {
    return std::span{input}.subspan(position, filled - position);
  }
  [[nodiscard]] Error error(const std::string& what) const { return Error{path + ": " + what}; }
  /// Names the next byte of the file, for messages.
  [[nodiscard]] std::string next_byte() const {
    return "byte " + std::to_string(file_bytes_read - (filled - position)) + " of the file";
  }

  std::string path;
  InputDescriptor file;
  /// Bytes of the file. The bytes from `position` to `filled` are not used yet.
  std::array<std::byte, chunk_bytes> input{};
  std::size_t position = 0;
  std::size_t filled = 0;
  std::uint64_t file_bytes_read = 0;
  /// The number of bytes of content that read() has returned.
  std::uint64_t offset = 0;
  bool is_gzip = false;
  /// True after the last gzip member; always false for a plain file.
  bool has_ended = false;
  z_stream stream{};
};

Result<void> InputFile::State::detect_gzip() {
  // A pipe may give its first bytes one by one.
  while (filled < 2) {
    const auto got = file.read(std::span{input}.subspan(filled));
    if (!got) return got.error();
    if (*got == 0) break;
    filled += *got;
    file_bytes_read += *got;
  }
  const auto head = unused_input();
  if (head.size() < 2 || head[0] != std::byte{0x1f} || head[1] != std::byte{0x8b}) return {};
  if (inflateInit2(&stream, gzip_window_bits) != Z_OK) return error("no memory to decompress it");
  is_gzip = true;
  return {};
}

Result<bool> InputFile::State::fill() {
  if (position < filled) return true;
  position = 0;
  filled = 0;
  const auto got = file.read(input);
  if (!got) return got.error();
  filled = *got;
  file_bytes_read += filled;
  return filled > 0;
}

Result<std::size_t> InputFile::State::copy(std::span<std::byte> out) {
  const auto from = unused_input().first(std::min(out.size(), filled - position));
  std::ranges::copy(from, out.begin());
  position += from.size();
  return from.size();
}

Result<std::size_t> InputFile::State::decompress(std::span<std::byte> out) {
  const auto compressed = unused_input();
  const auto capacity = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30U));
  stream.next_in = reinterpret_cast<Bytef*>(input.data() + position);
  stream.avail_in = static_cast<uInt>(compressed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = capacity;
  const int code = inflate(&stream, Z_NO_FLUSH);
  position = filled - stream.avail_in;
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
    return error("its gzip data is damaged near " + next_byte() + ": " +
                 (stream.msg != nullptr ? stream.msg : "cannot be decompressed"));
  if (code == Z_STREAM_END)
    if (auto next = end_member(); !next) return std::move(next).error();
  return capacity - stream.avail_out;
}

Result<void> InputFile::State::end_member() {
  auto more = fill();
  if (!more) return std::move(more).error();
  has_ended = !*more;
  if (has_ended) return {};
  if (unused_input()[0] != std::byte{0x1f})
    return error("its gzip data ends at " + next_byte() + ", but other bytes follow");
  inflateReset(&stream);
  return {};
}

InputFile::InputFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
InputFile::InputFile(InputFile&&) noexcept = default;
InputFile& InputFile::operator=(InputFile&&) noexcept = default;
InputFile::~InputFile() = default;

Result<InputFile> InputFile::open(const std::string& path) {
  auto file = InputDescriptor::open(path);
  if (!file) return std::move(file).error();
  auto state = std::make_unique<State>(*std::move(file));
  if (auto detected = state->detect_gzip(); !detected) return std::move(detected).error();
  return InputFile{std::move(state)};
}

Result<std::size_t> InputFile::read(std::span<std::byte> out) {
  // Checks the limits in every call, and not only when InputDescriptor reads the file: a few
  // compressed bytes may expand to so much content that many calls read nothing from the file.
  if (auto go_on = check_reading(path()); !go_on) return std::move(go_on).error();
  std::size_t got = 0;
  while (got < out.size() && !state_->has_ended) {
    const auto more = state_->fill();
    if (!more) return more.error();
    if (!*more && state_->is_gzip)
      return state_->error("its gzip data ends too early, at " + state_->next_byte());
    if (!*more) break;
    const auto rest = out.subspan(got);
    auto added = state_->is_gzip ? state_->decompress(rest) : state_->copy(rest);
    if (!added) return std::move(added).error();
    got += *added;
    state_->offset += *added;
  }
  return got;
}

const std::string& InputFile::path() const noexcept { return state_->path; }

std::uint64_t InputFile::offset() const noexcept { return state_->offset; }

std::uint64_t InputFile::content_max() const noexcept {
  const std::uint64_t size = state_->file.size().value_or(UINT64_MAX);
  if (!state_->is_gzip) return size;
  return size > UINT64_MAX / deflate_ratio_max ? UINT64_MAX : size * deflate_ratio_max;
}

Result<bool> LineReader::refill() {
  if (has_ended_) return false;
  buffer_.erase(0, begin_);
  end_ -= std::exchange(begin_, 0);
  if (end_ > line_bytes_max)
    return Error{path() + ":" + std::to_string(line_ + 1) + ": the line is longer than " +
                 std::to_string(line_bytes_max) + " bytes; is this a text file?"};
  const std::size_t wanted = std::max(chunk_bytes, end_);
  if (auto fits = budget_.check_growth(end_ + wanted); !fits) return std::move(fits).error();
  buffer_.resize(end_ + wanted);
  auto got = file_.read(std::as_writable_bytes(std::span{buffer_}.subspan(end_)));
  if (!got) return std::move(got).error();
  end_ += *got;
  has_ended_ = *got < wanted;
  return true;
}

Result<std::optional<std::string_view>> LineReader::next() {
  std::size_t searched = 0;
  while (true) {
    const auto unread = std::string_view{buffer_}.substr(begin_, end_ - begin_);
    const auto found = unread.find('\n', searched);
    if (found == std::string_view::npos) {
      searched = unread.size();
      auto more = refill();
      if (!more) return std::move(more).error();
      if (*more) continue;
      if (unread.empty()) return std::optional<std::string_view>{};
    }
    auto line = unread.substr(0, found);
    begin_ += std::min(unread.size(), line.size() + 1);
    if (++line_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(3);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return std::optional{line};
  }
}

std::string LineReader::location() const { return path() + ":" + std::to_string(line_); }

}  // namespace starling::models
