/// Writes files so that no reader ever sees an incomplete one. Blocking; any thread, one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// Returns the path of the file that `path` names once all symbolic links are followed. The file
/// need not exist.
[[nodiscard]] std::string resolve_links(const std::string& path);

/// Returns an Error if no file can be created or replaced at `path`. Leaves nothing behind.
[[nodiscard]] Result<void> check_writable(const std::string& path);

/// Replaces the content of `path` by `pieces`, one after the other: writes them to a temporary file
/// in the same folder, syncs it to the disk and renames it to `path`. The new file has the
/// permissions of the old one. On any error the old file stays and the temporary one is removed.
/// Also removes temporary files that killed processes left behind when they wrote the same path.
[[nodiscard]] Result<void> replace_file(const std::string& path,
                                        std::span<const std::span<const std::byte>> pieces);
[[nodiscard]] Result<void> replace_file(const std::string& path, const std::string& content);

/// Returns the next piece of a file's content, and an empty one after the last. A piece is valid
/// until the next call.
using NextPiece = std::function<std::span<const std::byte>()>;

/// Like the other replace_file(), for content that is made while it is written, because it takes
/// much memory as a whole.
[[nodiscard]] Result<void> replace_file(const std::string& path, const NextPiece& next);

/// Returns an Error if anything exists at `path`, even a broken symbolic link, or if no file can be
/// created there. Leaves nothing behind.
[[nodiscard]] Result<void> check_new(const std::string& path);

/// Creates a file that only its owner may read (mode 0600). Writes a temporary file first, and
/// removes the temporary files of killed processes, as replace_file() does. Returns an Error as
/// check_new() does, even if another process creates the file at the same time.
[[nodiscard]] Result<void> create_secret_file(const std::string& path, const std::string& content);

/// Lets discard_unfinished() remove this folder, which was created for outputs, if it is empty.
/// Does nothing if four folders are registered already, or if the path has 4096 bytes or more.
void add_unfinished_folder(const std::string& path) noexcept;
/// Undoes add_unfinished_folder().
void forget_unfinished_folder(const std::string& path) noexcept;

/// Removes the temporary file that is being written, if there is one, and those folders of
/// add_unfinished_folder() that are empty. Safe in a signal handler.
void discard_unfinished() noexcept;

}  // namespace starling::program
