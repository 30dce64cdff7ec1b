/// Reads and writes key files, and the folder in which the administrator of a cluster keeps its key
/// and the lists of issued and revoked certificates. Blocking; any thread.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/security/key_file.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

/// Returns the time of the system's clock.
[[nodiscard]] security::UtcSeconds utc_now();

/// Reads a key file. Returns an Error if it cannot be read, is damaged, or is secret while its
/// mode lets other users at it.
[[nodiscard]] Result<security::KeyFile> read_key_file(const std::string& path);

/// Reads a key file of the kind `T`, like NodeSecrets. Returns an Error if it is of another kind.
template <class T>
[[nodiscard]] Result<T> read_key_file_as(const std::string& path) {
  auto file = read_key_file(path);
  if (!file) return std::move(file).error();
  if (T* wanted = std::get_if<T>(&*file)) return std::move(*wanted);
  return Error{path + ": is " + security::kind_of(*file) +
               "; valid here: " + security::kind_of(T{})};
}

/// Returns the path of the file beside `key_file` in which a node keeps the revocations that it has
/// received: it reads them at its next start.
[[nodiscard]] std::string received_revocations_path(const std::string& key_file);
/// Reads these revocations; the list is empty if there is no such file yet. Returns an Error if
/// they are of another cluster.
[[nodiscard]] Result<security::RevocationList> read_received_revocations(
    const std::string& key_file, const security::ClusterPublic& cluster);
[[nodiscard]] Result<void> write_received_revocations(const std::string& key_file,
                                                      const security::RevocationList& all);

/// The folder of a cluster's key. While an opened object lives, it holds a lock, and other programs
/// that open the folder wait.
class ClusterFolder {
 public:
  /// Makes the key of a new cluster in `folder`. Returns an Error if the folder has any of a
  /// cluster's files.
  static Result<ClusterFolder> create(const std::string& folder);
  static Result<ClusterFolder> open(const std::string& folder);
  ClusterFolder(ClusterFolder&& other) noexcept;
  ClusterFolder& operator=(ClusterFolder&&) = delete;
  ~ClusterFolder();

  [[nodiscard]] const security::ClusterSecrets& secrets() const { return secrets_; }
  [[nodiscard]] const security::CertificateList& issued() const { return issued_; }
  [[nodiscard]] const security::RevocationList& revoked() const { return revoked_; }

  /// Replaces a list on the disk, as a whole or not at all.
  Result<void> replace(security::CertificateList list);
  Result<void> replace(security::RevocationList list);

  [[nodiscard]] std::string key_path() const;
  [[nodiscard]] std::string issued_path() const;
  [[nodiscard]] std::string revoked_path() const;

 private:
  explicit ClusterFolder(std::string folder) : folder_(std::move(folder)) {}
  Result<void> lock();
  Result<void> read();

  std::string folder_;
  /// The descriptor of the locked key file; -1 without a lock.
  int lock_ = -1;
  security::ClusterSecrets secrets_;
  security::CertificateList issued_;
  security::RevocationList revoked_;
};

}  // namespace starling::program
