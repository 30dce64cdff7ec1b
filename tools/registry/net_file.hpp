/// Reads the layers of a net from a TOML file. Blocking. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/table.hpp"

namespace starling::program {

/// Reads the keys:
///
///     input = "28x28x1"                # if absent, derived from the data
///     loss = "softmax"                 # if absent, chosen by the labels
///     layers = ["conv2d 6 kernel=5", "relu", "flatten", "dense 10"]
///
/// `layers` is a string, or a list of strings, of layers that `;` separates (description.hpp).
/// Errors name `path`, and the line if it is known.
[[nodiscard]] Result<models::NetDescription> parse_net_file(std::string_view content,
                                                            const std::string& path);

[[nodiscard]] Result<models::NetDescription> read_net_file(const std::string& path);

/// Returns FILE if the model is `net:FILE`; empty for another model.
[[nodiscard]] std::string net_file_in(const Spec& spec);

/// Makes the net that `--model` describes: `net:FILE`, or a text that Net::parse() reads. A net
/// from a file prints its layers, so that whatever reads that text does not need the file.
template <class T>
[[nodiscard]] Result<models::Net<T>> make_net(const Spec& spec, const models::Table& data) {
  const std::string file = net_file_in(spec);
  if (file.empty()) return models::Net<T>::parse(spec, data);
  auto description = read_net_file(file);
  if (!description) return std::move(description).error();
  auto net = models::Net<T>::make(*description, data);
  if (!net) return std::move(net).error().within(file);
  return net;
}

}  // namespace starling::program
