#include "starling/tools/program/version.hpp"

namespace starling::program {

std::string version() { return STARLING_VERSION; }

std::string commit() { return STARLING_COMMIT; }

}  // namespace starling::program
