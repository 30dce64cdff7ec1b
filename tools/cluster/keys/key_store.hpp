/// Reads and writes key files, and the folder in which the administrator of a cluster keeps the
/// cluster's key and the lists of issued and revoked certificates. Blocking; thread-safe.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/security/key_file.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

/// Returns the time of the system's clock, in seconds since 1970, UTC.
[[nodiscard]] security::UtcSeconds utc_now();

/// Reads a key file of any kind. Returns an Error if it cannot be read or is damaged, or if it has
/// secrets and its mode lets other users read or write it.
[[nodiscard]] Result<security::KeyFile> read_key_file(const std::string& path);

/// Reads a key file of the kind `T`, such as NodeSecrets. Returns an Error if it is of another
/// kind.
template <class T>
[[nodiscard]] Result<T> read_key_file_as(const std::string& path) {
  auto file = read_key_file(path);
  if (!file) return std::move(file).error();
  if (T* wanted = std::get_if<T>(&*file)) return std::move(*wanted);
  return Error{path + ": is " + security::kind_of(*file) +
               "; valid here: " + security::kind_of(T{})};
}

/// Returns the path of the file beside `key_file` in which a node stores the revocations that it
/// receives. The node reads them when it starts.
[[nodiscard]] std::string received_revocations_path(const std::string& key_file);
/// Reads the file at received_revocations_path(key_file); returns an empty list if there is no such
/// file yet. Returns an Error if its revocations are of another cluster.
[[nodiscard]] Result<security::RevocationList> read_received_revocations(
    const std::string& key_file, const security::ClusterPublic& cluster);
/// Replaces the file at received_revocations_path(key_file).
[[nodiscard]] Result<void> write_received_revocations(const std::string& key_file,
                                                      const security::RevocationList& all);

/// The folder of a cluster's key. While an object that open() returned lives, it holds a lock:
/// another open() of the same folder waits, in this program or another one.
class ClusterFolder {
 public:
  /// Makes the key of a new cluster in `folder`, and the folder if there is none. Returns an Error
  /// if the folder has any of the files of a cluster.
  static Result<ClusterFolder> create(const std::string& folder);
  /// Locks the folder and reads its files. Returns an Error if it has no key.
  static Result<ClusterFolder> open(const std::string& folder);
  ClusterFolder(ClusterFolder&& other) noexcept;
  ClusterFolder& operator=(ClusterFolder&&) = delete;
  ~ClusterFolder();

  [[nodiscard]] const security::ClusterSecrets& secrets() const { return secrets_; }
  [[nodiscard]] const security::CertificateList& issued() const { return issued_; }
  [[nodiscard]] const security::RevocationList& revoked() const { return revoked_; }

  /// Replaces the list of issued or of revoked certificates, on the disk as a whole or not at all.
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
  /// The descriptor of the key file, which holds the lock; -1 without a lock.
  int lock_ = -1;
  security::ClusterSecrets secrets_;
  security::CertificateList issued_;
  security::RevocationList revoked_;
};

}  // namespace starling::program
