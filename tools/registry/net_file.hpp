/// Nets described in TOML files. Blocking; any thread.
#pragma once

#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/table.hpp"

namespace starling::program {

/// Reads the keys
///
///     input = "28x28x1"                # else what the data may be
///     loss = "softmax"                 # else what suits the labels
///     layers = ["conv2d 6 kernel=5", "relu", "flatten", "dense 10"]
///
/// where `layers` is one text, or a list of texts, of layers between `;` (description.hpp). `path`
/// is for messages, which name its line where it is known.
[[nodiscard]] Result<models::NetDescription> parse_net_file(std::string_view content,
                                                            const std::string& path);

[[nodiscard]] Result<models::NetDescription> read_net_file(const std::string& path);

/// Returns the file in `net:FILE`; empty for another model.
[[nodiscard]] std::string net_file_in(const Spec& spec);

/// Makes the net that `--model` names: `net:FILE`, or a text that Net::parse reads. A net that came
/// from a file prints its layers, so that a reader of that text needs no file.
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
