/// Reads the description of a net from a TOML file. Blocking. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/table.hpp"

namespace starling::program {

/// Parses a file with these keys:
///
///     input = "28x28x1"                # if absent, derived from the data
///     loss = "softmax"                 # if absent, chosen by the labels
///     layers = ["conv2d 6 kernel=5", "relu", "flatten", "dense 10"]
///
/// `layers` is a string or a list of strings; in a string, `;` separates layers (description.hpp).
/// Errors name `path`, and the line if it is known.
[[nodiscard]] Result<models::NetDescription> parse_net_file(std::string_view content,
                                                            const std::string& path);

/// Reads the file at `path` and parses its content as parse_net_file() does.
[[nodiscard]] Result<models::NetDescription> read_net_file(const std::string& path);

/// Returns FILE if `spec` is `net:FILE`; else an empty string.
[[nodiscard]] std::string net_file_in(const Spec& spec);

/// Makes the net that `--model` describes: `net:FILE`, or a text that Net::parse() reads. print()
/// of a net from a file returns its layers, so that a program that parses this text does not need
/// the file.
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
