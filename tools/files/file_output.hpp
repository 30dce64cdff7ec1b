/// Writes files so that no reader ever sees half of one. Blocking; any thread, one at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// The file that `path` names, links followed; it need not exist.
[[nodiscard]] std::string resolved(const std::string& path);

/// Refuses a path where no file can be made or replaced; leaves nothing behind.
[[nodiscard]] Result<void> check_writable(const std::string& path);

/// Makes `pieces`, one after the other, the content of `path`: written to a temporary file beside
/// it, brought to the disk, then renamed. On any error the old file stays and no other is left; a
/// temporary file that a killed process left is removed when the same path is written again.
[[nodiscard]] Result<void> replace_file(const std::string& path,
                                        std::span<const std::span<const std::byte>> pieces);
[[nodiscard]] Result<void> replace_file(const std::string& path, const std::string& content);

/// Refuses a path where anything is, a link that leads nowhere too, or no file can be made; leaves
/// nothing behind.
[[nodiscard]] Result<void> check_new(const std::string& path);

/// Makes a new file that only its owner may read (0600), in the same way; refuses as check_new
/// does, whoever else made it meanwhile.
[[nodiscard]] Result<void> create_secret_file(const std::string& path, const std::string& content);

/// A folder that was made for outputs: discard_unfinished() removes it where it is empty.
void add_unfinished_folder(const std::string& path) noexcept;
void drop_unfinished_folder(const std::string& path) noexcept;

/// Removes the temporary file that is being written, if any, and folders for outputs into which
/// nothing was written. For signal handlers.
void discard_unfinished() noexcept;

}  // namespace starling::program
