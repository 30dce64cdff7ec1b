#include "starling/models/optimizer/clip.hpp"

#include <array>
#include <cmath>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::models {

Result<Clip> parse_clip(std::string_view text) {
  const auto spec = Spec::parse(text);
  if (!spec) return Error{"clip: " + spec.error().message};
  SpecReader read{*spec};
  Clip clip;
  if (spec->name == "value" || spec->name == "norm") {
    clip.kind = spec->name == "value" ? Clip::Kind::value : Clip::Kind::norm;
    const std::string written = read.positional();
    const auto limit = parse_number(written);
    if (!limit || *limit <= 0)
      read.refuse("the limit '" + written + "' must be a number above 0, e.g. " + spec->name +
                  ":1");
    clip.limit = limit ? *limit : 0;
  } else if (spec->name != "none") {
    const std::array<std::string, 3> names{"none", "value", "norm"};
    return Error{"unknown clip '" + spec->name + "'; " + suggest(spec->name, names)};
  }
  if (auto done = read.finish(); !done) return std::move(done).error();
  return clip;
}

std::string print(const Clip& clip) {
  if (clip.kind == Clip::Kind::none) return "none";
  return (clip.kind == Clip::Kind::value ? "value:" : "norm:") + print_number(clip.limit);
}

template <class T>
double apply(const Clip& clip, std::span<T> g) {
  return apply<T>(clip, std::span<const std::span<T>>{&g, 1});
}

template <class T>
double apply(const Clip& clip, std::span<const std::span<T>> pieces) {
  if (clip.kind == Clip::Kind::none) return 0;
  double squares = 0;
  for (const std::span<T> g : pieces)
    squares +=
        clip.kind == Clip::Kind::value ? clamp(static_cast<T>(clip.limit), g) : squared_norm<T>(g);
  const double norm = std::sqrt(squares);
  if (clip.kind == Clip::Kind::norm && std::isfinite(norm) && norm > clip.limit)
    for (const std::span<T> g : pieces) scale(static_cast<T>(clip.limit / norm), g);
  return norm;
}

template double apply(const Clip&, std::span<float>);
template double apply(const Clip&, std::span<double>);
template double apply(const Clip&, std::span<const std::span<float>>);
template double apply(const Clip&, std::span<const std::span<double>>);

}  // namespace starling::models
