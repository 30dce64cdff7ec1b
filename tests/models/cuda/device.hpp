/// Helpers for tests that need a CUDA device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "starling/models/cuda/device.hpp"
#include "starling/models/net/named_nets.hpp"
#include "tests/models/model_data.hpp"

// Skips the test if there is no device. Each test that computes on a device begins with it.
#define STARLING_NEEDS_DEVICE()                                                        \
  if (const std::string reason = starling::models::cuda::no_device(); !reason.empty()) \
  GTEST_SKIP() << reason

namespace starling::models::cuda {

/// Returns why there is no device to test on; empty if there is one.
inline std::string no_device() {
  const auto all = devices();
  if (!all) return "no CUDA device: " + all.error().message;
  return all->empty() ? "no CUDA device" : "";
}

/// Returns the net that `text` describes, for `data`.
inline Net<float> net_of(const std::string& text, const Table& data) {
  return Net<float>::parse(Spec::parse(text).value(), data).value();
}

/// Returns a built-in net with dropout rates of 0, because random draws on the CPU differ.
inline std::string without_dropout(const std::string& name, const std::string& input) {
  std::string layers = print_layers(named_net(name, 10).value().layers);
  for (std::size_t at = 0; (at = layers.find("dropout 0.", at)) != std::string::npos; ++at)
    layers.erase(at + 9, 2);
  return "net:input=" + input + ",layers=" + layers;
}

/// Returns the net with tanh and avg-pool instead of relu and max-pool, whose gradients are not
/// continuous.
inline std::string without_kinks(std::string net) {
  const std::vector<std::pair<std::string, std::string>> pairs{{"relu", "tanh"},
                                                               {"max-pool", "avg-pool"}};
  for (const auto& [from, to] : pairs)
    for (std::size_t at = 0; (at = net.find(from, at)) != std::string::npos; at += to.size())
      net.replace(at, from.size(), to);
  return net;
}

inline std::vector<float> initial_parameters(const Net<float>& net, std::uint64_t seed = 5) {
  std::vector<float> w(total_size(net.parameters()));
  Random random{seed};
  net.initialise(w, random);
  return w;
}

/// The loss of a batch and its gradient.
struct Gradient {
  double loss = 0;
  std::vector<float> g;
};

inline Gradient gradient_of(const Net<float>& net, const std::vector<float>& w, const Table& data,
                            Batch batch, std::uint64_t seed = 1) {
  Arena arena;
  Random random{seed};
  ComputeContext context{random, arena};
  Gradient result{0, std::vector<float>(w.size())};
  result.loss = net.gradient(w, data, batch, result.g, context);
  return result;
}

/// Returns ||a||.
inline double norm(std::span<const float> a) {
  double sum = 0;
  for (const float value : a) sum += std::pow(static_cast<double>(value), 2);
  return std::sqrt(sum);
}

/// Returns ||a - b||.
inline double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  return std::sqrt(sum);
}

/// Returns ||a - b|| / ||b||.
inline double relative_error(std::span<const float> a, std::span<const float> b) {
  return distance(a, b) / norm(b);
}

/// Compares the gradient of each parameter separately, so that errors in small gradients are found.
/// The error may be up to `within` times the parameter's norm plus a tenth of the whole norm. The
/// latter allows for gradients that are only rounding errors, such as that of a bias before batch
/// normalisation.
inline void expect_same_gradient(const Net<float>& net, const std::vector<float>& actual,
                                 const std::vector<float>& expected, double within) {
  std::size_t offset = 0;
  for (const Parameter& p : net.parameters()) {
    const auto part = [&](const std::vector<float>& all) {
      return std::span{all}.subspan(offset, p.size());
    };
    const double size = norm(part(expected)) + 0.1 * norm(expected);
    EXPECT_LE(distance(part(actual), part(expected)), within * size) << p.name;
    offset += p.size();
  }
}

}  // namespace starling::models::cuda
