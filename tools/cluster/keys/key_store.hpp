/// Key files on the disk: who may read them, and the folder in which a cluster's administrator
/// keeps its key and the lists of what it has issued and revoked. Blocking; any thread.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/security/key_file.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

/// The system's clock.
[[nodiscard]] security::UtcSeconds utc_now();

/// Reads a key file. An Error where it cannot be read, is damaged, or is secret and open to group
/// or others.
[[nodiscard]] Result<security::KeyFile> read_key_file(const std::string& path);

/// The same, of one kind: NodeSecrets and so on.
template <class T>
[[nodiscard]] Result<T> read_key_file_as(const std::string& path) {
  auto file = read_key_file(path);
  if (!file) return std::move(file).error();
  if (T* wanted = std::get_if<T>(&*file)) return std::move(*wanted);
  return Error{path + ": is " + security::kind_of(*file) +
               "; valid here: " + security::kind_of(T{})};
}

/// Returns the path of the revocations that a node has received, beside its key file: the node
/// reads them when it starts again.
[[nodiscard]] std::string heard_revocations_path(const std::string& key_file);
/// Reads these revocations; empty where there are none yet. An Error where they are another
/// cluster's.
[[nodiscard]] Result<security::RevocationList> read_heard_revocations(
    const std::string& key_file, const security::ClusterPublic& cluster);
[[nodiscard]] Result<void> put_heard_revocations(const std::string& key_file,
                                                 const security::RevocationList& all);

/// The folder of a cluster's key. While an object of it lives, other programs that open the folder
/// wait.
class ClusterFolder {
 public:
  /// Makes a cluster. An Error where there is one, or the remains of one.
  static Result<ClusterFolder> create(const std::string& folder);
  static Result<ClusterFolder> open(const std::string& folder);
  ClusterFolder(ClusterFolder&& other) noexcept;
  ClusterFolder& operator=(ClusterFolder&&) = delete;
  ~ClusterFolder();

  [[nodiscard]] const security::ClusterSecrets& secrets() const { return secrets_; }
  [[nodiscard]] const security::CertificateList& issued() const { return issued_; }
  [[nodiscard]] const security::RevocationList& revoked() const { return revoked_; }

  /// Replace the lists on the disk, as a whole or not at all.
  Result<void> put(security::CertificateList list);
  Result<void> put(security::RevocationList list);

  [[nodiscard]] std::string key_path() const;
  [[nodiscard]] std::string issued_path() const;
  [[nodiscard]] std::string revoked_path() const;

 private:
  explicit ClusterFolder(std::string folder) : folder_(std::move(folder)) {}
  Result<void> lock();
  Result<void> read();

  std::string folder_;
  int lock_ = -1;
  security::ClusterSecrets secrets_;
  security::CertificateList issued_;
  security::RevocationList revoked_;
};

}  // namespace starling::program
