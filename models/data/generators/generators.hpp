/// Generates data sets. Internal to models/data; users call load(). Row i is drawn from a random
/// stream of its own, (seed, part, i), and does not depend on the number of rows.
#pragma once

#include <cstdint>

#include "starling/models/data/source/raw_table.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// The parts of one seed have the same true parameters, but no sample in common.
enum class Part : std::uint64_t { train = 0, test = 1 };

RawTable make_digits(const DigitsSource& source, std::uint64_t seed, Part part);
RawTable make_linear(const LinearSource& source, std::uint64_t seed, Part part);
RawTable make_ratings(const RatingsSource& source, std::uint64_t seed, Part part);

}  // namespace starling::models
