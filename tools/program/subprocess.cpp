#include "starling/tools/program/subprocess.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace starling::program {

Result<int> run_program(std::vector<std::string> command, std::optional<StandardFiles> files) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int fault = 0;
  std::vector<int> copies;  // above 2, so that no dup2 of the child overwrites one
  for (int standard = 0; files && standard < 3 && fault == 0; ++standard) {
    const int copy =
        ::fcntl(files->at(static_cast<std::size_t>(standard)), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0)
      fault = errno;
    else
      fault = posix_spawn_file_actions_adddup2(&actions, copies.emplace_back(copy), standard);
  }
  pid_t child = 0;
  if (fault == 0)
    fault = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  for (const int copy : copies) ::close(copy);
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) return Error{command[0] + ": " + std::strerror(fault)};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return Error{command[0] + ": " + std::strerror(errno)};
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace starling::program
