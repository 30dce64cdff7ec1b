/// Nets described in TOML files. Blocking; any thread.
#pragma once

#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/table.hpp"

namespace starling::app {

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

/// What `--model` names: `net:FILE`, or what Net::parse reads. A net that came from a file prints
/// its layers, so that whoever reads that needs no file.
template <class T>
[[nodiscard]] Result<models::Net<T>> make_net(const Spec& spec, const models::Table& data) {
  const bool is_file =
      spec.name == "net" && spec.options.size() == 1 && spec.options[0].first.empty();
  if (!is_file) return models::Net<T>::parse(spec, data);
  auto description = read_net_file(spec.options[0].second);
  if (!description) return std::move(description).error();
  auto net = models::Net<T>::make(*std::move(description), data);
  if (!net) return std::move(net).error().within(spec.options[0].second);
  return net;
}

}  // namespace starling::app
