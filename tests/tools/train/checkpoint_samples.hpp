/// How many samples the updates of a checkpoint had. For tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace starling::program {

/// Returns the number of samples that each range of a checkpoint has counted.
inline std::vector<std::uint64_t> samples_of(const std::string& file) {
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), sizeof header_size);
  const auto header = nlohmann::json::parse(file.substr(8, header_size));
  const auto& ranges = header.at("starling.ranges");
  std::vector<std::uint64_t> counters(3 * ranges.at("shape").at(0).get<std::size_t>());
  std::memcpy(counters.data(),
              file.data() + 8 + header_size + ranges.at("data_offsets").at(0).get<std::size_t>(),
              counters.size() * sizeof(std::uint64_t));
  std::vector<std::uint64_t> all;
  for (std::size_t i = 1; i < counters.size(); i += 3) all.push_back(counters[i]);
  return all;
}

}  // namespace starling::program
