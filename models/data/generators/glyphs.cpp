#include "starling/models/data/generators/glyphs.hpp"

#include <cmath>
#include <numbers>

namespace starling::models {
namespace {

/// Returns an elliptic arc around `centre` with the half-axes `radius`, from angle `from` to angle
/// `to`, in degrees; 0 is right, 90 is down.
Stroke arc(Point centre, Point radius, double from, double to) {
  constexpr int lines = 14;
  Stroke stroke;
  for (int i = 0; i <= lines; ++i) {
    const double angle = (from + (to - from) * i / lines) * std::numbers::pi / 180;
    stroke.push_back({centre.x + radius.x * std::cos(angle),  //
                      centre.y + radius.y * std::sin(angle)});
  }
  return stroke;
}

/// Returns one stroke through the points of `head`, then of `tail`.
Stroke join(Stroke head, const Stroke& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

}  // namespace

std::vector<std::vector<Glyph>> digit_glyphs() {
  const Stroke stem{{0.5, 0.03}, {0.5, 0.35}, {0.5, 0.65}, {0.5, 0.97}};
  const Stroke flag{{0.27, 0.28}, {0.5, 0.03}};
  const Stroke foot{{0.28, 0.97}, {0.72, 0.97}};
  const Stroke two_top = arc({0.48, 0.29}, {0.28, 0.25}, 195, 395);
  const Stroke three_top = arc({0.46, 0.27}, {0.27, 0.23}, 205, 450);
  const Stroke three_bottom = arc({0.46, 0.72}, {0.32, 0.24}, 270, 505);
  const Stroke five_bowl = arc({0.45, 0.68}, {0.33, 0.27}, 230, 505);
  const Stroke seven{{0.18, 0.05}, {0.5, 0.05}, {0.82, 0.05},
                     {0.62, 0.4},  {0.45, 0.7}, {0.38, 0.97}};
  const Stroke six_back = arc({0.78, 0.7}, {0.56, 0.66}, 265, 180);
  const Stroke six_bowl = arc({0.5, 0.7}, {0.28, 0.26}, 180, 540);
  const Stroke nine_bowl = arc({0.5, 0.3}, {0.28, 0.26}, 0, 360);
  return {
      {{arc({0.5, 0.5}, {0.32, 0.46}, -90, 270)}, {arc({0.5, 0.5}, {0.24, 0.47}, -60, 300)}},
      {{stem}, {stem, flag}, {stem, flag, foot}},
      {{join(two_top, {{0.45, 0.7}, {0.2, 0.95}, {0.5, 0.95}, {0.82, 0.95}})},
       {join(two_top, {{0.45, 0.75}, {0.3, 0.95}, {0.2, 0.85}, {0.35, 0.82}, {0.8, 0.96}})}},
      {{three_top, three_bottom},
       {{{0.2, 0.05}, {0.5, 0.05}, {0.78, 0.05}, {0.48, 0.42}}, three_bottom}},
      {{{{0.6, 0.03}, {0.4, 0.35}, {0.18, 0.66}, {0.5, 0.66}, {0.86, 0.66}},
        {{0.64, 0.4}, {0.64, 0.7}, {0.64, 0.97}}},
       {{{0.28, 0.05}, {0.24, 0.3}, {0.22, 0.55}, {0.5, 0.56}, {0.82, 0.54}},
        {{0.72, 0.08}, {0.68, 0.5}, {0.64, 0.97}}}},
      {{join({{0.78, 0.04}, {0.5, 0.04}, {0.28, 0.04}, {0.25, 0.25}}, five_bowl)},
       {join({{0.3, 0.06}, {0.26, 0.25}}, five_bowl), {{0.3, 0.06}, {0.55, 0.05}, {0.8, 0.03}}}},
      {{join(six_back, six_bowl)}, {join({{0.4, 0.03}, {0.28, 0.35}}, six_bowl)}},
      {{seven}, {seven, {{0.3, 0.5}, {0.72, 0.5}}}},
      {{arc({0.5, 0.27}, {0.24, 0.23}, 90, 450), arc({0.5, 0.73}, {0.29, 0.24}, -90, 270)},
       {{{0.75, 0.1},
         {0.35, 0.1},
         {0.28, 0.3},
         {0.7, 0.68},
         {0.65, 0.92},
         {0.35, 0.93},
         {0.28, 0.7},
         {0.72, 0.3},
         {0.75, 0.1}}}},
      {{join(nine_bowl, {{0.77, 0.5}, {0.75, 0.75}, {0.7, 0.97}})},
       {join(nine_bowl, arc({0.3, 0.35}, {0.48, 0.6}, 0, 95))}},
  };
}

}  // namespace starling::models
