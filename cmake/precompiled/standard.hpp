/// Precompiled for the libraries below the actors: the headers of the standard library that nearly
/// every file includes. Headers for threads, files and streams are not among them, so that a file
/// of the protocol that uses one without including it does not compile. Every file still includes
/// the headers that it uses.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
