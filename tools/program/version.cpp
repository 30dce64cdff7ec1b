#include "starling/tools/program/version.hpp"

namespace starling::app {

std::string version() { return STARLING_VERSION; }

std::string commit() { return STARLING_COMMIT; }

}  // namespace starling::app
