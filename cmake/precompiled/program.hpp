/// Precompiled for the program: the standard library, CAF, fmt, toml++, CLI11 and nlohmann-json.
#pragma once

#include "cmake/precompiled/actors.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
