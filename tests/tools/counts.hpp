/// How often a job of the model `counts` (own_program.cpp) has taken each sample. For tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "starling/tools/files/safetensors.hpp"
#include "tests/tools/folder.hpp"

namespace starling::program {

/// Returns the parameters of the model file, in 60ths; none if the file cannot be read. A sample
/// that one of P workers takes adds 60 / P.
inline std::vector<int> count_values(const Folder& folder, const std::string& file) {
  const auto read = safetensors::read((folder.path() / file).string());
  const safetensors::Tensor* tensor = read ? read->find("counts") : nullptr;
  if (tensor == nullptr) return {};
  std::vector<float> floats(tensor->size());
  std::memcpy(floats.data(), tensor->bytes.data(), tensor->bytes.size());
  std::vector<int> values;
  for (const float value : floats) values.push_back(static_cast<int>(std::lround(60 * value)));
  return values;
}

/// How many samples have each value.
using Counts = std::map<int, int>;

inline Counts counts_in(const Folder& folder, const std::string& file) {
  Counts counts;
  for (const int value : count_values(folder, file)) ++counts[value];
  return counts;
}

}  // namespace starling::program
