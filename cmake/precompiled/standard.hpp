/// Precompiled for the libraries below the actors: headers of the standard library that nearly
/// every file includes, none for threads, files or streams, so that a protocol's file cannot use
/// those without including them. Files include the headers that they use all the same.
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
