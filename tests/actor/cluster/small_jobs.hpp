/// Data sets and models for tests that train.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "starling/actor/train/train.hpp"
#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/data/load.hpp"

namespace starling::actor {

/// Loads a data set. An invalid source ends the test program.
inline models::Table load(const std::string& source, std::uint64_t seed = 1) {
  return models::load(models::Source::parse(source).value(), seed).value();
}

/// Makes the model that `text` names, for `data`.
inline models::AnyModel<float> model_for(const std::string& text, const models::Table& data) {
  return models::parse_model<float>(text, data).value();
}

/// Trains the model that `text` names. Invalid options end the test program.
inline Outcome train_text(const std::string& text, const models::Table& data,
                          const models::Table* test, const TrainOptions& options) {
  return std::visit([&](const auto& model) { return train(model, data, test, options).value(); },
                    model_for(text, data));
}

/// Returns the metric with this name. Throws if there is none.
inline double metric(const models::Metrics& metrics, const std::string& name) {
  for (const auto& metric : metrics)
    if (metric.name == name) return metric.value;
  throw std::runtime_error{"no metric called " + name};
}

}  // namespace starling::actor
