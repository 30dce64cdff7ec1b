#include "starling/tools/program/program_name.hpp"

#include <cstdio>
#include <filesystem>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

std::string& stored_name() {
  static std::string name = "starling";
  return name;
}

}  // namespace

void set_program_name(const char* argv0) {
  if (argv0 == nullptr) return;
  const std::string name = std::filesystem::path{argv0}.filename().string();
  if (!name.empty()) stored_name() = name;
}

const std::string& program_name() { return stored_name(); }

void print_error(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_name().c_str(), printable(message).c_str());
}

}  // namespace starling::program
