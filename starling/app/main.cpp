#include "starling/app/main.hpp"

#include <exception>

#include "starling/app/built_in.hpp"
#include "starling/app/command_line.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/interrupt.hpp"

namespace starling {

int main(int argc, const char* const* argv, Contents contents) {
  try {
    app::watch_interrupts();
    const auto code = app::run_command_line(argc, argv, app::with_built_in(std::move(contents)));
    if (code) return *code;
    app::complain(code.error().message);
    return app::bad_input;
  } catch (const std::exception& fault) {
    app::complain(std::string{"an unexpected error: "} + fault.what());
    return app::job_failed;
  }
}

}  // namespace starling
