#include "starling/models/optimizer/clip.hpp"

namespace starling::models {

Result<Clip> parse_clip(std::string_view text) { return parse_alternative<Clip>("clip", text); }

std::string print(const Clip& clip) { return print_alternative(clip); }

template <class T>
double apply(const Clip& clip, std::span<T> g) {
  return apply<T>(clip, std::span<const std::span<T>>{&g, 1});
}

template <class T>
double apply(const Clip& clip, std::span<const std::span<T>> pieces) {
  return std::visit([&](const ClipRule auto& rule) { return rule.apply(pieces); }, clip);
}

template double apply(const Clip&, std::span<float>);
template double apply(const Clip&, std::span<double>);
template double apply(const Clip&, std::span<const std::span<float>>);
template double apply(const Clip&, std::span<const std::span<double>>);

}  // namespace starling::models
