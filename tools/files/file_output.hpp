/// Writes files so that no reader ever sees half of one. Blocking; any thread, one at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// Returns the file that `path` names after all links are followed. The file need not exist.
[[nodiscard]] std::string resolve_links(const std::string& path);

/// Refuses a path at which no file can be made or replaced. Leaves nothing behind.
[[nodiscard]] Result<void> check_writable(const std::string& path);

/// Makes `pieces`, one after the other, the content of `path`: writes a temporary file beside it,
/// syncs that to the disk and renames it. On any error the old file stays and the temporary one is
/// removed. A temporary file that a killed process left behind is removed when the same path is
/// written again.
[[nodiscard]] Result<void> replace_file(const std::string& path,
                                        std::span<const std::span<const std::byte>> pieces);
[[nodiscard]] Result<void> replace_file(const std::string& path, const std::string& content);

/// Refuses a path at which anything exists, even a broken link, or at which no file can be made.
/// Leaves nothing behind.
[[nodiscard]] Result<void> check_new(const std::string& path);

/// Makes a new file that only its owner may read (0600), by way of a temporary file too. Refuses a
/// path as check_new() does, also if another process makes the file at the same time.
[[nodiscard]] Result<void> create_secret_file(const std::string& path, const std::string& content);

/// Adds a folder that was made for outputs to those that discard_unfinished() removes if they are
/// empty.
void add_unfinished_folder(const std::string& path) noexcept;
/// Has discard_unfinished() leave the folder alone again.
void drop_unfinished_folder(const std::string& path) noexcept;

/// Removes the temporary file that is being written, if any, and the added folders that are empty.
/// Safe in a signal handler.
void discard_unfinished() noexcept;

}  // namespace starling::program
