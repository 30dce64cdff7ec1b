#include "starling/tools/program/program_name.hpp"

#include <filesystem>

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

}  // namespace starling::program
