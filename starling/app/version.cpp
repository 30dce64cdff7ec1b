#include "starling/app/version.hpp"

namespace starling::app {

std::string version() { return STARLING_VERSION; }

}  // namespace starling::app
