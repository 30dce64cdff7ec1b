/// Precompiled for the program: the standard library, CAF, fmt, toml++ and nlohmann-json.
#pragma once

#include "cmake/precompiled/actors.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <nlohmann/json.hpp>
