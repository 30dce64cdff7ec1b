/// What the program includes of other libraries.
#pragma once

#include "cmake/precompiled/actors.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
