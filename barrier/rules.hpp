/// The closed set of rules. A new rule is one file in rules/, included and named here.
#pragma once

#include <variant>

#include "starling/barrier/rules/asp.hpp"
#include "starling/barrier/rules/bsp.hpp"
#include "starling/barrier/rules/predicate.hpp"
#include "starling/barrier/rules/ssp.hpp"

namespace starling::barrier {

using AnyRule = std::variant<Bsp, Ssp, Asp, Predicate>;

}  // namespace starling::barrier
