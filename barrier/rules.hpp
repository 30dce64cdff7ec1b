/// The closed set of rules. To add a rule, write one file in rules/ and add it to AnyRule.
#pragma once

#include <variant>

#include "starling/barrier/rules/absp.hpp"
#include "starling/barrier/rules/asp.hpp"
#include "starling/barrier/rules/bsp.hpp"
#include "starling/barrier/rules/dssp.hpp"
#include "starling/barrier/rules/ebsp.hpp"
#include "starling/barrier/rules/fluent.hpp"
#include "starling/barrier/rules/predicate.hpp"
#include "starling/barrier/rules/quorum.hpp"
#include "starling/barrier/rules/ssp.hpp"
#include "starling/barrier/rules/tuned.hpp"

namespace starling::barrier {

/// A rule as a value; rules/step.hpp lists the functions that each has.
using AnyRule = std::variant<Bsp, Ssp, Asp, Dssp, Ebsp, Absp, Fluent, Quorum, Tuned, Predicate>;

}  // namespace starling::barrier
