#include "starling/models/data/formats/npy_header.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// The most axes of an array in NumPy 1.
constexpr std::size_t axes_max = 32;
constexpr std::string_view spaces = " \t\r\n";

/// Reads text in Python's notation token by token, and skips spaces between tokens.
class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : rest_(text) {}

  /// Skips `word` and returns true if it comes next; else returns false.
  bool take(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  /// Skips the quoted string that comes next and returns its text; nullopt if something else comes.
  std::optional<std::string_view> take_text() {
    skip_spaces();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const auto end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const auto text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  /// Skips the whole number that comes next and returns it; nullopt if something else comes.
  std::optional<std::uint64_t> take_count() {
    skip_spaces();
    const auto digits = rest_.substr(0, rest_.find_first_not_of("0123456789"));
    const auto count = parse_count(digits);
    if (!count) return std::nullopt;
    rest_.remove_prefix(digits.size());
    // Python 2 writes long integers with this suffix, as in 28L.
    take("L");
    return *count;
  }
  [[nodiscard]] bool at_end() {
    skip_spaces();
    return rest_.empty();
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  void skip_spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(spaces), rest_.size()));
  }

  std::string_view rest_;
};

Error damaged_header(std::string_view rest) {
  return Error{"its header is damaged at " + quote(rest) +
               "; valid: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"};
}

/// Returns the error for a type that cannot be read; it names a NumPy call that converts the
/// elements.
Error wrong_type(std::string_view name) {
  // The letter of the kind follows the byte order, if there is one.
  const char kind = name.find_first_of("<>=|") == 0 && name.size() > 1 ? name[1]
                    : name.empty()                                     ? ' '
                                                                       : name[0];
  const std::string problem = "its elements are of type " + quote(name) + "; valid: ";
  if (kind == 'U' || kind == 'S')
    return Error{problem + "numbers, as numpy.unique(y, return_inverse=True)[1] makes of text"};
  if (kind == 'O')
    return Error{problem + "numbers, as numpy.array(x.tolist(), dtype='float32') makes of objects"};
  if (kind == 'c') return Error{problem + "real numbers, as numpy.abs(x) makes of complex ones"};
  return Error{problem + "float16, float32, float64, int8 to int64, uint8 to uint64 and bool, as " +
               "x.astype('float32') makes"};
}

/// Parses a type such as `<f4`: byte order, kind, bytes.
Result<NpyType> parse_type(std::string_view name) {
  if (name.size() < 3 || std::string_view{"<>=|"}.find(name[0]) == std::string_view::npos)
    return wrong_type(name);
  const auto bytes = parse_count(name.substr(2));
  if (!bytes) return wrong_type(name);
  struct KnownKind {
    char kind;
    /// In bytes. The last one fills the array up.
    std::array<std::uint64_t, 4> sizes;
  };
  static constexpr std::array<KnownKind, 4> known_kinds{
      KnownKind{'f', {2, 4, 8, 8}}, {'i', {1, 2, 4, 8}}, {'u', {1, 2, 4, 8}}, {'b', {1, 1, 1, 1}}};
  const auto* const at = std::ranges::find(known_kinds, name[1], &KnownKind::kind);
  if (at == known_kinds.end() || std::ranges::find(at->sizes, *bytes) == at->sizes.end())
    return wrong_type(name);
  return NpyType{name[1], *bytes, name[0] == '>'};
}

class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : tokens_(text) {}

  Result<NpyHeader> read() {
    if (!tokens_.take("{")) return damaged_header(tokens_.rest());
    while (!tokens_.take("}")) {
      if (auto entry = read_entry(); !entry) return std::move(entry).error();
      if (!tokens_.take(",") && !tokens_.rest().starts_with('}'))
        return damaged_header(tokens_.rest());
    }
    if (!tokens_.at_end() || !has_type_ || !has_order_ || !has_shape_)
      return damaged_header(tokens_.rest());
    return std::move(header_);
  }

 private:
  Result<void> read_entry() {
    const auto before = tokens_.rest();
    const auto key = tokens_.take_text();
    if (!key || !tokens_.take(":")) return damaged_header(before);
    if (*key == "descr" && !has_type_) return read_type();
    if (*key == "fortran_order" && !has_order_) return read_order();
    if (*key == "shape" && !has_shape_) return read_shape();
    return damaged_header(before);
  }

  Result<void> read_type() {
    const auto name = tokens_.take_text();
    if (!name && tokens_.take("["))
      return Error{
          "its elements are records of several fields; valid: numbers, as "
          "numpy.lib.recfunctions.structured_to_unstructured(x) makes of them"};
    if (!name) return damaged_header(tokens_.rest());
    const auto type = parse_type(*name);
    if (!type) return type.error();
    header_.type = *type;
    has_type_ = true;
    return {};
  }

  Result<void> read_order() {
    header_.is_fortran = tokens_.take("True");
    if (!header_.is_fortran && !tokens_.take("False")) return damaged_header(tokens_.rest());
    has_order_ = true;
    return {};
  }

  Result<void> read_shape() {
    if (!tokens_.take("(")) return damaged_header(tokens_.rest());
    while (!tokens_.take(")")) {
      const auto extent = tokens_.take_count();
      if (!extent || header_.shape.size() == axes_max) return damaged_header(tokens_.rest());
      header_.shape.push_back(*extent);
      if (!tokens_.take(",") && !tokens_.rest().starts_with(')'))
        return damaged_header(tokens_.rest());
    }
    has_shape_ = true;
    return {};
  }

  Tokenizer tokens_;
  NpyHeader header_;
  bool has_type_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text) { return HeaderReader{text}.read(); }

}  // namespace starling::models
