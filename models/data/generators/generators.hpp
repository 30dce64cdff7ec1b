/// Data sets that are made, not read. Internal to models/data; users call load(). Row i is drawn
/// from its own stream of (seed, part, i): it does not depend on how many rows there are.
#pragma once

#include <cstdint>

#include "starling/models/data/source/raw.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// Two parts of one seed share their truth and no sample.
enum class Part : std::uint64_t { train = 0, test = 1 };

RawTable make_digits(const DigitsSource& source, std::uint64_t seed, Part part);
RawTable make_linear(const LinearSource& source, std::uint64_t seed, Part part);
RawTable make_ratings(const RatingsSource& source, std::uint64_t seed, Part part);

}  // namespace starling::models
