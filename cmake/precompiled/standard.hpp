/// What nearly every file includes of the standard library, without clocks, threads, random
/// generators, input and output, so that it serves the protocols too. Files include what they use
/// all the same: this header only spares the compiler from reading it again.
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
