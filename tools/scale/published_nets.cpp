#include "starling/tools/scale/published_nets.hpp"

#include <algorithm>

#include "starling/base/text.hpp"
#include "starling/models/net/named_nets.hpp"
#include "starling/tools/registry/net_file.hpp"

namespace starling::program {
namespace {

Result<models::NetDescription> unknown_net(const std::string& name) {
  std::vector<std::string> names;
  for (const PublishedNet& net : published_nets()) names.emplace_back(net.name);
  for (const models::NamedNet& net : models::named_nets()) names.emplace_back(net.name);
  return Error{"unknown net " + quote(name) + "; " + suggest(name, names) + ", net:FILE"};
}

}  // namespace

const std::vector<PublishedNet>& published_nets() {
  static const std::vector<PublishedNet> nets{
      // Simonyan, Zisserman, ICLR 2015, table 1, column A.
      {"vgg-a", "VGG with 11 layers", "224x224x3",
       "conv2d 64 kernel=3 padding=1; relu; max-pool 2; "
       "conv2d 128 kernel=3 padding=1; relu; max-pool 2; "
       "conv2d 256 kernel=3 padding=1; relu; conv2d 256 kernel=3 padding=1; relu; max-pool 2; "
       "conv2d 512 kernel=3 padding=1; relu; conv2d 512 kernel=3 padding=1; relu; max-pool 2; "
       "conv2d 512 kernel=3 padding=1; relu; conv2d 512 kernel=3 padding=1; relu; max-pool 2; "
       "flatten; dense 4096; relu; dense 4096; relu; dense 1000"},
      // Sermanet et al., ICLR 2014, table 1, the fast model.
      {"overfeat", "OverFeat, the fast model", "231x231x3",
       "conv2d 96 kernel=11 stride=4; relu; max-pool 2; "
       "conv2d 256 kernel=5; relu; max-pool 2; "
       "conv2d 512 kernel=3 padding=1; relu; conv2d 1024 kernel=3 padding=1; relu; "
       "conv2d 1024 kernel=3 padding=1; relu; max-pool 2; "
       "flatten; dense 3072; relu; dense 4096; relu; dense 1000"},
  };
  return nets;
}

Result<models::NetDescription> find_net(const std::string& name, const std::string& input) {
  models::NetDescription net;
  std::string shape = input;
  const auto published = std::ranges::find(published_nets(), name, &PublishedNet::name);
  if (name.starts_with("net:")) {
    auto read = read_net_file(name.substr(4));
    if (!read) return read;
    net = *std::move(read);
  } else if (published != published_nets().end()) {
    net.layers = models::parse_layers(published->layers).value();
    if (shape.empty()) shape = published->input;
  } else if (auto built_in = models::named_net(name, 10)) {
    net = *std::move(built_in);
    if (shape.empty())
      shape = std::ranges::find(models::named_nets(), name, &models::NamedNet::name)->input;
  } else {
    return unknown_net(name);
  }
  if (!shape.empty()) {
    auto parsed = models::parse_shape(shape);
    if (!parsed) return std::move(parsed).error().within("--input");
    net.input = *std::move(parsed);
  }
  if (net.input.empty())
    return Error{name + ": the file has no key input; valid: with --input, as in --input 28x28x1"};
  return net;
}

}  // namespace starling::program
