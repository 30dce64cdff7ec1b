#include "starling/tools/files/safetensors.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "starling/base/input.hpp"
#include "starling/base/json_text.hpp"
#include "starling/tools/files/file_output.hpp"

namespace starling::program::safetensors {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they are in memory");

/// The largest header, in bytes; the reference implementation has the same limit.
constexpr std::uint64_t header_max = 100'000'000;
constexpr std::size_t length_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";
constexpr const char* checksum_key = "crc32";

/// Returns the CRC-32 of the metadata in the order of the keys, followed by the tensors in the
/// order of their names. It does not depend on the order in the file.
template <class T>
std::string checksum_of(const Metadata& metadata, const std::vector<T>& tensors) {
  uLong crc = 0;
  const auto add = [&](std::span<const std::byte> bytes) {
    if (bytes.empty()) return;  // given a null pointer, zlib would start a new checksum
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  };
  const auto add_text = [&](const Json& json) {
    const std::string text = json_text(json);
    add(std::as_bytes(std::span{text}));
  };
  add_text(metadata);
  std::map<std::string_view, const T*> sorted;
  for (const T& tensor : tensors) sorted.emplace(tensor.name, &tensor);
  for (const auto& [name, tensor] : sorted) {
    add_text({name, print(tensor->dtype), tensor->shape});
    add(tensor->bytes);
  }
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08lx", crc);
  return text.data();
}

std::vector<View> largest_elements_first(std::span<const View> tensors) {
  std::vector<View> sorted(tensors.begin(), tensors.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const View& tensor) { return size_of(tensor.dtype); });
  return sorted;
}

/// Returns the JSON header, padded with spaces to a multiple of 8 bytes.
std::string header_of(const Metadata& metadata, std::span<const View> tensors) {
  Json header = Json::object();
  header[std::string{metadata_key}] = metadata;
  std::uint64_t begin = 0;
  for (const View& tensor : tensors) {
    const std::uint64_t end = begin + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", print(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = json_text(header);
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  return text;
}

/// The header's entry for one tensor.
struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  /// The tensor's first byte and the byte behind its last one, counted from the end of the header.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Thrown if the file's content is wrong. The message does not name the file. Never leaves this
/// source file.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Thrown if the file cannot be read. The message names the file. Never leaves this source file.
struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws if an object of the header has a name twice, or if values are nested deeper than in a
/// valid header. Invalid JSON ends the check without an exception.
class HeaderCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return begin_level(); }
  bool end_object() override { return end_level(); }
  bool start_array(std::size_t) override { return begin_level(); }
  bool end_array() override { return end_level(); }
  bool key(string_t& name) override {
    if (!names_by_level_.back().insert(name).second)
      throw Malformed{"the header names '" + name + "' twice"};
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool begin_level() {
    names_by_level_.emplace_back();
    if (names_by_level_.size() > 3) throw Malformed{"the header is nested too deeply"};
    return true;
  }
  bool end_level() {
    names_by_level_.pop_back();
    return true;
  }

  /// The names so far in each object or array that has begun and not ended, from the outermost on.
  std::vector<std::set<std::string>> names_by_level_;
};

/// Parses the header. Throws what HeaderCheck throws, and if the text is no JSON. (A callback of
/// Json::parse() could check the names too, but takes time in the square of their number.)
Json parse_header(const std::string& text) {
  HeaderCheck check;
  (void)Json::sax_parse(text, &check);
  Json header = Json::parse(text);
  if (!header.is_object()) throw Malformed{"the header is no JSON object"};
  return header;
}

/// Moves the metadata out of the header.
Metadata extract_metadata(Json& header) {
  const auto at = header.find(metadata_key);
  if (at == header.end()) return {};
  if (!at->is_object()) throw Malformed{"__metadata__ is no JSON object"};
  Metadata metadata;
  for (const auto& [key, value] : at->items()) {
    if (!value.is_string()) throw Malformed{"__metadata__ '" + key + "' is no string"};
    metadata[key] = value.get<std::string>();
  }
  header.erase(at);
  return metadata;
}

std::uint64_t count_in(const Json& value, const std::string& what) {
  if (!value.is_number_unsigned()) throw Malformed{what + " holds no whole numbers >= 0"};
  return value.get<std::uint64_t>();
}

const Json& field(const Json& tensor, const char* key, const std::string& label) {
  const auto at = tensor.find(key);
  if (at == tensor.end()) throw Malformed{label + " has no '" + key + "'"};
  return *at;
}

Dtype dtype_in(const Json& value, const std::string& label) {
  if (value.is_string())
    for (const Dtype dtype :
         {Dtype::f32, Dtype::f64, Dtype::u64, Dtype::u8, Dtype::i32, Dtype::i64})
      if (value.get_ref<const std::string&>() == print(dtype)) return dtype;
  throw Malformed{label + " has the dtype " + json_text(value) +
                  "; valid: F32, F64, U64, U8, I32, I64"};
}

/// Throws unless the shape of a tensor, which is an Entry or a View, needs `bytes` bytes.
template <class T>
void check_size(const T& tensor, std::uint64_t bytes, const std::string& label) {
  std::uint64_t needed = size_of(tensor.dtype);
  for (const std::uint64_t extent : tensor.shape)
    if (__builtin_mul_overflow(needed, extent, &needed))
      throw Malformed{label + " has a shape of more bytes than can be counted"};
  if (needed != bytes)
    throw Malformed{label + " has " + std::to_string(bytes) + " bytes, but its shape needs " +
                    std::to_string(needed)};
}

Entry entry_in(const std::string& name, const Json& tensor, std::uint64_t body_bytes) {
  const std::string label = "tensor '" + name + "'";
  if (!tensor.is_object()) throw Malformed{label + " is no JSON object"};
  Entry entry{.name = name, .dtype = dtype_in(field(tensor, "dtype", label), label), .shape = {}};
  const Json& shape = field(tensor, "shape", label);
  const Json& offsets = field(tensor, "data_offsets", label);
  if (!shape.is_array()) throw Malformed{label + " has a shape that is no list"};
  for (const Json& extent : shape) entry.shape.push_back(count_in(extent, label + ": shape"));
  if (!offsets.is_array() || offsets.size() != 2)
    throw Malformed{label + " needs two data_offsets"};
  entry.begin = count_in(offsets[0], label + ": data_offsets");
  entry.end = count_in(offsets[1], label + ": data_offsets");
  if (entry.begin > entry.end || entry.end > body_bytes)
    throw Malformed{label + " lies at bytes " + std::to_string(entry.begin) + " to " +
                    std::to_string(entry.end) + ", but the file holds " +
                    std::to_string(body_bytes) + " bytes of tensors"};
  check_size(entry, entry.end - entry.begin, label);
  return entry;
}

/// Returns the header's entries in the order of their offsets. Throws unless they cover the
/// `body_bytes` bytes after the header without a gap or an overlap.
std::vector<Entry> entries_in(const Json& header, std::uint64_t body_bytes) {
  std::vector<Entry> entries;
  for (const auto& [name, tensor] : header.items())
    entries.push_back(entry_in(name, tensor, body_bytes));
  std::ranges::stable_sort(entries, {}, [](const Entry& e) { return std::pair{e.begin, e.end}; });
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != covered)
      throw Malformed{"tensor '" + entry.name + "' starts at byte " + std::to_string(entry.begin) +
                      (entry.begin < covered ? ", inside another" : ", behind a gap") +
                      "; valid there: " + std::to_string(covered)};
    covered = entry.end;
  }
  if (covered != body_bytes)
    throw Malformed{"holds " + std::to_string(body_bytes - covered) +
                    " bytes behind its last tensor"};
  return entries;
}

/// An open file whose size is known.
class Input {
 public:
  /// Returns an Error for a pipe, because reading needs the size of the whole file beforehand.
  static Result<Input> open(const std::string& path) {
    ReadLimits limits = ReadScope::limits();
    limits.refuses_pipes = true;
    const ReadScope scope{std::move(limits)};
    auto file = InputDescriptor::open(path);
    if (!file) return std::move(file).error();
    return Input{*std::move(file)};
  }

  [[nodiscard]] std::uint64_t size() const { return file_.size().value_or(0); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  /// Fills `out`; throws if the file ends earlier or cannot be read.
  void read_exactly(std::span<std::byte> out) {
    while (!out.empty()) {
      const auto got = file_.read(out);
      if (!got) throw Unreadable{got.error().message};
      if (*got == 0) throw Malformed{"ends too early"};
      out = out.subspan(*got);
    }
  }

 private:
  explicit Input(InputDescriptor file) : file_(std::move(file)) {}

  InputDescriptor file_;
};

/// The most memory that parsed JSON takes for each byte of its text, in bytes: that of an object
/// with the shortest possible members.
constexpr std::uint64_t parsed_bytes_per_byte = 128;

/// Reads the length of the header and returns its text. `size` is the size of the file, in bytes.
std::string read_header(Input& input, std::uint64_t size) {
  if (size < length_bytes)
    throw Malformed{"is not a safetensors file: it has " + std::to_string(size) + " bytes"};
  std::uint64_t length = 0;
  input.read_exactly(std::as_writable_bytes(std::span{&length, 1}));
  if (length > header_max)
    throw Malformed{"is not a safetensors file: its header would have " + std::to_string(length) +
                    " bytes, at most " + std::to_string(header_max) + " are valid"};
  if (length > size - length_bytes)
    throw Malformed{"ends too early: its header has " + std::to_string(length) +
                    " bytes, the file " + std::to_string(size)};
  const std::uint64_t bytes = size - length + parsed_bytes_per_byte * length;
  if (auto fits = ReadBudget{input.path()}.check_total(bytes); !fits)
    throw Unreadable{fits.error().message};
  std::string text(length, '\0');
  input.read_exactly(std::as_writable_bytes(std::span{text}));
  if (text.empty() || text[0] != '{')
    throw Malformed{"is not a safetensors file: its header does not start with '{'"};
  return text;
}

File read_file(Input& input, std::uint64_t size) {
  const std::string text = read_header(input, size);
  Json header = parse_header(text);
  File file{.metadata = extract_metadata(header), .tensors = {}};
  for (Entry& entry : entries_in(header, size - length_bytes - text.size())) {
    Tensor tensor{std::move(entry.name), entry.dtype, std::move(entry.shape),
                  std::vector<std::byte>(entry.end - entry.begin)};
    input.read_exactly(tensor.bytes);
    file.tensors.push_back(std::move(tensor));
  }
  const auto stored = file.metadata.extract(checksum_key);
  if (const std::string sum = checksum_of(file.metadata, file.tensors);
      stored && stored.mapped() != sum)
    throw Malformed{"is damaged: its content has the CRC-32 " + sum + ", but it says " +
                    stored.mapped() + "; valid: the file as it was written"};
  file.has_checksum = !stored.empty();
  return file;
}

}  // namespace

std::string_view print(Dtype dtype) {
  constexpr std::array<std::string_view, 6> names{"F32", "F64", "U64", "U8", "I32", "I64"};
  return names[static_cast<std::size_t>(dtype)];
}

std::size_t size_of(Dtype dtype) {
  if (dtype == Dtype::u8) return 1;
  return dtype == Dtype::f32 || dtype == Dtype::i32 ? 4 : 8;
}

std::string Tensor::describe() const {
  std::string text{print(dtype)};
  text += " [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

const Tensor* File::find(std::string_view name) const {
  const auto at = std::ranges::find(tensors, name, &Tensor::name);
  return at == tensors.end() ? nullptr : &*at;
}

Result<void> write(const std::string& path, const Metadata& metadata,
                   std::span<const View> tensors) {
  if (metadata.contains(checksum_key))
    return Error{path + ": metadata '" + checksum_key + "': is the name of the file's checksum; " +
                 "valid: any other"};
  try {
    for (const View& tensor : tensors)
      check_size(tensor, tensor.bytes.size(), "tensor '" + tensor.name + "'");
  } catch (const Malformed& fault) {
    return Error{path + ": is not written: " + fault.what()};
  }
  const auto sorted = largest_elements_first(tensors);
  Metadata with_checksum = metadata;
  with_checksum[checksum_key] = checksum_of(metadata, sorted);
  const std::string header = header_of(with_checksum, sorted);
  const std::uint64_t length = header.size();
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span{&length, 1}),
                                                 std::as_bytes(std::span{header})};
  for (const View& tensor : sorted) pieces.push_back(tensor.bytes);
  return replace_file(path, pieces);
}

bool is_valid_tensor_name(std::string_view name) {
  return !name.empty() && name != metadata_key && Json::parse(json_text(Json(name))) == name;
}

bool has_safetensors_header(const std::string& path) {
  auto input = Input::open(path);
  if (!input) return false;
  std::uint64_t length = 0;
  std::array<std::byte, 1> first_byte{};
  try {
    input->read_exactly(std::as_writable_bytes(std::span{&length, 1}));
    input->read_exactly(first_byte);
  } catch (const std::runtime_error&) {
    return false;
  }
  return length <= header_max && first_byte[0] == std::byte{'{'};
}

Result<File> read(const std::string& path) {
  auto input = Input::open(path);
  if (!input) return std::move(input).error();
  try {
    return read_file(*input, input->size());
  } catch (const Unreadable& unreadable) {
    return Error{unreadable.what()};
  } catch (const Malformed& malformed) {
    return Error{path + ": " + malformed.what()};
  } catch (const std::bad_alloc&) {
    return Error{path + ": does not fit in the free memory"};
  } catch (const std::exception& invalid_json) {
    return Error{path + ": the header is no valid JSON: " + invalid_json.what()};
  }
}

}  // namespace starling::program::safetensors
