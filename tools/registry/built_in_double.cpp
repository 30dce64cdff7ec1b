#include "starling/tools/registry/built_in_models.hpp"

template void starling::program::add_models<double>(Registry&);
