/// Generates data sets. Internal to models/data; users call load(). Each row has its own random
/// stream, which depends on the seed, the part and the row's index, so that a row does not depend
/// on the number of rows.
#pragma once

#include <cstdint>

#include "starling/models/data/source/raw_table.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// Says whether to generate training or test rows. For one seed both have the same true parameters,
/// but other samples.
enum class Part : std::uint64_t { train = 0, test = 1 };

RawTable make_digits(const DigitsSource& source, std::uint64_t seed, Part part);
RawTable make_linear(const LinearSource& source, std::uint64_t seed, Part part);
RawTable make_ratings(const RatingsSource& source, std::uint64_t seed, Part part);

}  // namespace starling::models
