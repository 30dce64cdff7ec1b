#include "starling/tools/command_line/main.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <new>
#include <utility>

#include "starling/tools/command_line/command_line.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling {
namespace {

/// Opens /dev/null in place of each closed one of stdin, stdout and stderr. Otherwise the next file
/// or socket that is opened would get its number, and the program's output would go there. The
/// modes are the wrong ones, so that reading and writing still fail.
void occupy_closed_descriptors() {
  const std::array<int, 3> modes{O_WRONLY, O_RDONLY, O_RDONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", modes.at(static_cast<std::size_t>(fd)));
}

/// Checks what the user's program defines, even if the command does not use it, and then runs the
/// command. The built-in entries are added after the check: those of the user may hide them.
Result<int> run(int argc, const char* const* argv, Registry registry) {
  if (auto valid = registry.check(); !valid) return std::move(valid).error();
  return program::run_command_line(argc, argv, program::with_built_in(std::move(registry)));
}

}  // namespace

int main(int argc, const char* const* argv, Registry registry) {
  try {
    occupy_closed_descriptors();
    if (argc > 0) program::set_program_name(argv[0]);
    program::install_signal_handlers();
    const auto code = run(argc, argv, std::move(registry));
    if (code) return *code;
    program::print_error(code.error().message);
    return program::bad_input;
  } catch (const std::bad_alloc&) {
    program::print_error("out of memory; valid: less data, a smaller model, fewer workers");
    return program::job_failed;
  } catch (const std::exception& fault) {
    program::print_error(std::string{"an unexpected error: "} + fault.what());
    return program::job_failed;
  } catch (...) {
    program::print_error("an exception of unknown type");
    return program::job_failed;
  }
}

}  // namespace starling
