#include "starling/actor/security/key_file.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "starling/base/text.hpp"

namespace starling::security {
namespace {

/// The values of the field `kind`, in the order of KeyFile's alternatives.
const std::array<std::string, 4> kinds{"cluster-key", "node-key", "certificates", "revocations"};
/// The value of the field `format`.
constexpr std::string_view format = "1";
constexpr int base64_variant = sodium_base64_VARIANT_ORIGINAL;

template <class Bytes>
std::string encode_base64(const Bytes& bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), base64_variant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), base64_variant);
  text.pop_back();  // the terminating null character
  return text;
}

std::optional<wire::Bytes> decode_base64(std::string_view text) {
  if (text.empty()) return wire::Bytes{};  // libsodium takes no null pointer
  wire::Bytes bytes(text.size());
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, nullptr, base64_variant) != 0)
    return std::nullopt;
  bytes.resize(size);
  return bytes;
}

/// Writes a key file, line by line. The fields `gate-...` are those of the handshake keys.
class Writer {
 public:
  void comment(const std::string& line) { text_ += "# " + line + "\n"; }
  void text(std::string_view field, std::string_view value) {
    (text_.append(field) += " = ").append(value) += "\n";
  }
  template <class Bytes>
  void bytes(std::string_view field, const Bytes& value) {
    text(field, encode_base64(value));
  }
  void pair(const std::string& field, const KeyPair& keys) {
    bytes(field + "-public", keys.public_key);
    bytes(field + "-secret", keys.secret_key);
  }
  /// Writes a line `field = ...` for each value.
  template <class T>
  void repeated(std::string_view field, const std::vector<T>& values) {
    for (const T& value : values) bytes(field, encode(value));
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

/// Reads the fields of a file, by name. Keeps the first error, which finish() returns.
class Reader {
 public:
  Reader(std::string_view text, std::string path) : path_(std::move(path)) {
    std::size_t number = 0;
    for (const std::string_view whole : split(text, '\n')) {
      ++number;
      const std::string_view line = trim(whole);
      if (line.empty() || line.starts_with('#')) continue;
      const auto equals = line.find('=');
      if (equals == std::string_view::npos) {
        fail(number, "is not a line of a key file; valid: `field = value`, or # and a comment");
        return;
      }
      lines_.push_back({number, trim(line.substr(0, equals)), trim(line.substr(equals + 1))});
    }
  }

  std::string_view text(std::string_view field) {
    const Line line = take_line(field);
    return line.value;
  }
  /// Reads a field with bytes into a std::array or a SecretBytes.
  template <class Array>
  void bytes(std::string_view field, Array& into) {
    const Line line = take_line(field);
    if (fault_) return;
    auto found = decode_base64(line.value);
    if (!found || found->size() != into.size())
      return fail(line.number, std::string{field} + ": is not " + std::to_string(into.size()) +
                                   " bytes in base64: the file is damaged");
    std::memcpy(into.data(), found->data(), into.size());
    wire::wipe(found->data(), found->size());
  }
  void pair(const std::string& field, KeyPair& keys) {
    bytes(field + "-public", keys.public_key);
    bytes(field + "-secret", keys.secret_key);
    require(is_pair(keys),
            field + "-public and " + field + "-secret do not belong together: the file is damaged");
  }
  /// Reads every line `field = ...`: certificates or revocations that `cluster` has signed.
  template <class T>
  void repeated(std::string_view field, const ClusterPublic& cluster, std::vector<T>& into) {
    for (Line& line : lines_) {
      if (fault_) return;
      if (line.field != field || std::exchange(line.is_taken, true)) continue;
      into.emplace_back();
      decode_field(line, cluster, into.back());
    }
  }
  void certificate(std::string_view field, const ClusterPublic& cluster, Certificate& into) {
    const Line line = take_line(field);
    if (!fault_) decode_field(line, cluster, into);
  }
  /// Fails with `message` unless `condition` is true.
  void require(bool condition, const std::string& message) {
    if (!fault_ && !condition) fault_ = Error{path_ + ": " + message};
  }

  /// Returns `file`, or the first error in it.
  Result<KeyFile> finish(KeyFile file) {
    for (const Line& line : lines_)
      if (!fault_ && !line.is_taken)
        fail(line.number,
             "'" + std::string{line.field} + "' is unknown or given twice in " + kind_of(file));
    if (fault_) return *std::move(fault_);
    return file;
  }
  [[nodiscard]] bool has_failed() const noexcept { return fault_.has_value(); }
  /// Requires: has_failed().
  [[nodiscard]] Error error() const { return *fault_; }

 private:
  struct Line {
    std::size_t number = 0;
    std::string_view field;
    std::string_view value;
    bool is_taken = false;
  };

  void fail(std::size_t number, const std::string& message) {
    fault_ = Error{path_ + ":" + std::to_string(number) + ": " + message};
  }

  /// Returns the first line `field = ...` that was not taken before, and marks it as taken.
  Line take_line(std::string_view field) {
    if (fault_) return {};
    const auto found = std::ranges::find_if(
        lines_, [&](const Line& line) { return line.field == field && !line.is_taken; });
    require(found != lines_.end(),
            "has no line `" + std::string{field} + " = ...`: it is not a whole key file");
    if (fault_) return {};
    found->is_taken = true;
    return *found;
  }

  static Result<Certificate> decode(std::span<const std::byte> bytes, const Certificate&) {
    return decode_certificate(bytes);
  }
  static Result<Revocation> decode(std::span<const std::byte> bytes, const Revocation&) {
    return decode_revocation(bytes);
  }

  template <class T>
  void decode_field(const Line& line, const ClusterPublic& cluster, T& into) {
    const std::string field{line.field};
    const auto bytes = decode_base64(line.value);
    if (!bytes) return fail(line.number, field + ": is not base64: the file is damaged");
    auto decoded = decode(*bytes, into);
    if (!decoded) return fail(line.number, field + ": " + decoded.error().message);
    into = *std::move(decoded);
    if (const auto valid = check_signature(into, cluster); !valid)
      fail(line.number, field + ": " + valid.error().message);
  }

  std::string path_;
  std::vector<Line> lines_;
  std::optional<Error> fault_;
};

void write(Writer& out, const ClusterSecrets& file) {
  out.comment("The key of the Starling cluster " + short_id(id_of(file.key.public_key)) + ".");
  out.comment(
      "SECRET. Anyone who has this file decides who belongs to the cluster: keep it with the");
  out.comment("administrator and not on a node, and keep a copy in a safe place.");
  out.text("kind", kinds[0]);
  out.text("format", format);
  out.bytes("cluster-public", file.key.public_key);
  out.bytes("cluster-secret", file.key.secret_key);
  out.pair("gate", file.handshake_keys);
}

void write(Writer& out, const NodeSecrets& file) {
  const Certificate& own = file.certificate;
  const char* role = own.role == Role::node ? "node " : "client ";
  out.comment("The key file of the " + std::string{role} + own.name + " of the Starling cluster " +
              short_id(id_of(file.cluster)) + ",");
  out.comment("serial " + print_serial(own.serial) + ", valid until " + print_utc(own.not_after) +
              ".");
  out.comment("SECRET. Anyone who has this file is " + own.name +
              " to the cluster: keep it on that");
  out.comment("machine only. If it may have leaked: starling keys revoke " +
              print_serial(own.serial));
  out.text("kind", kinds[1]);
  out.text("format", format);
  out.bytes("cluster-public", file.cluster);
  out.pair("gate", file.handshake_keys);
  out.pair("own", file.keys);
  out.bytes("own-certificate", encode(own));
  out.repeated("certificate", file.known);
  out.repeated("revocation", file.revocations);
}

void write(Writer& out, const CertificateList& file) {
  out.comment("All certificates that the Starling cluster " + short_id(id_of(file.cluster)) +
              " has issued, oldest first. Not secret.");
  out.text("kind", kinds[2]);
  out.text("format", format);
  out.bytes("cluster-public", file.cluster);
  out.repeated("certificate", file.certificates);
}

void write(Writer& out, const RevocationList& file) {
  out.comment("All certificates that the Starling cluster " + short_id(id_of(file.cluster)) +
              " has revoked. Not secret: give it to any node.");
  out.text("kind", kinds[3]);
  out.text("format", format);
  out.bytes("cluster-public", file.cluster);
  out.repeated("revocation", file.revocations);
}

void read(Reader& in, ClusterSecrets& file) {
  in.bytes("cluster-public", file.key.public_key);
  in.bytes("cluster-secret", file.key.secret_key);
  in.require(is_pair(file.key),
             "cluster-public and cluster-secret do not belong together: the file is damaged");
  in.pair("gate", file.handshake_keys);
}

void read(Reader& in, NodeSecrets& file) {
  in.bytes("cluster-public", file.cluster);
  in.pair("gate", file.handshake_keys);
  in.pair("own", file.keys);
  in.certificate("own-certificate", file.cluster, file.certificate);
  in.require(file.certificate.key == file.keys.public_key,
             "own-certificate is not for own-public: the file is damaged");
  in.repeated("certificate", file.cluster, file.known);
  in.repeated("revocation", file.cluster, file.revocations);
}

void read(Reader& in, CertificateList& file) {
  in.bytes("cluster-public", file.cluster);
  in.repeated("certificate", file.cluster, file.certificates);
}

void read(Reader& in, RevocationList& file) {
  in.bytes("cluster-public", file.cluster);
  in.repeated("revocation", file.cluster, file.revocations);
}

KeyFile empty_of(std::size_t kind) {
  switch (kind) {
    case 0:
      return ClusterSecrets{};
    case 1:
      return NodeSecrets{};
    case 2:
      return CertificateList{};
    default:
      return RevocationList{};
  }
}

}  // namespace

std::string kind_of(const KeyFile& file) {
  static const std::array<std::string, 4> texts{"a cluster's key file",
                                                "the key file of a node or a client",
                                                "a list of certificates", "a list of revocations"};
  return texts.at(file.index());
}

bool is_secret(const KeyFile& file) {
  return std::holds_alternative<ClusterSecrets>(file) || std::holds_alternative<NodeSecrets>(file);
}

std::string print(const KeyFile& file) {
  Writer out;
  std::visit([&](const auto& f) { write(out, f); }, file);
  return std::move(out).take();
}

Result<KeyFile> parse_key_file(std::string_view text, const std::string& path) {
  Reader in{text, path};
  const std::string_view kind = in.text("kind");
  const std::string_view version = in.text("format");
  if (in.has_failed()) return in.error();
  const auto known = std::ranges::find(kinds, kind);
  if (known == kinds.end())
    return Error{path + ": kind: '" + std::string{kind} + "' is unknown; " + valid_names(kinds)};
  if (version != format)
    return Error{path + ": format: '" + std::string{version} +
                 "' is unknown; valid here: " + std::string{format}};
  KeyFile file = empty_of(static_cast<std::size_t>(known - kinds.begin()));
  std::visit([&](auto& f) { read(in, f); }, file);
  return in.finish(std::move(file));
}

}  // namespace starling::security
