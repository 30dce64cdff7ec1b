#include "starling/tools/registry/built_in_models.hpp"

template void starling::app::add_models<float>(Registry&);
