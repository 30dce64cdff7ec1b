// The parameter engine: four workers and a parameter server compute k-means under bsp, so that each
// step of the workers is one step of Lloyd's algorithm over all points.
//
//     cmake --preset dev && cmake --build --preset dev --target 04_parameter_engine
//     build/dev/examples/04_parameter_engine
//
// prints at once the objective step by step (the same on every run) and the centres:
//
//     step  1: mean squared distance 68.4807
//     ...
//     the objective fell to 7.8082; centres (-0.1, 9.9) (10.0, 0.1) (-0.1, -0.0) (10.1, 10.1)
#include <array>
#include <cmath>
#include <cstdio>

#include "starling/actor/engines/engine.hpp"

using namespace starling;
using Point = std::array<double, 2>;

constexpr std::size_t clusters = 4;
constexpr core::Step steps = 10;

/// 2000 points around the corners of a square, corner after corner.
std::vector<Point> make_points() {
  std::vector<Point> points;
  Random random{1};
  for (const double x : {0, 10})
    for (const double y : {0, 10})
      for (int i = 0; i < 500; ++i)
        points.push_back({x + 2 * random.normal(), y + 2 * random.normal()});
  return points;
}

/// Returns the mean of cluster i from its row (sum x, sum y, number of points) of `sums`, or the
/// i-th point if the cluster is empty.
Point centre(std::span<const double> sums, std::size_t i, const std::vector<Point>& points) {
  const auto row = sums.subspan(3 * i, 3);
  return row[2] > 0 ? Point{row[0] / row[2], row[1] / row[2]} : points[i];
}

int main() {
  const auto points = make_points();
  // The sums that each worker contributed in its last step. A worker pushes the difference of its
  // new sums and these, so that the server only adds. The hooks of one worker never run
  // concurrently.
  std::array<std::vector<double>, 4> last_sums;
  last_sums.fill(std::vector<double>(3 * clusters));

  actor::Hooks<double> hooks;
  hooks.schedule = [](auto&) { return std::vector<actor::Selection>{{"sums"}}; };
  hooks.push = [&](auto& context) -> std::vector<actor::Update<double>> {
    std::vector<double> sums(3 * clusters);
    double objective = 0;
    for (std::size_t p = context.worker(); p < points.size(); p += context.workers()) {
      std::size_t best = 0;
      double nearest = INFINITY;
      for (std::size_t c = 0; c < clusters; ++c) {
        const Point at = centre(context.get("sums"), c, points);
        const double distance = std::hypot(points[p][0] - at[0], points[p][1] - at[1]);
        if (distance < nearest) best = c, nearest = distance;
      }
      sums[3 * best] += points[p][0];
      sums[3 * best + 1] += points[p][1];
      sums[3 * best + 2] += 1;
      objective += nearest * nearest / static_cast<double>(points.size());
    }
    std::vector<double> change = sums;
    for (std::size_t i = 0; i < sums.size(); ++i) change[i] -= last_sums[context.worker()][i];
    last_sums[context.worker()] = std::move(sums);
    const auto step = static_cast<std::uint32_t>(context.step());
    return {{"sums", change}, {"objective", {objective}, std::vector{step}}};
  };

  auto engine = actor::ParameterEngine<double>::make(
      {.workers = last_sums.size(), .barrier = barrier::parse("bsp").value(), .steps = steps},
      {{"sums", {clusters, 3}}, actor::Tensor<double>::by_rows("objective", {steps})}, hooks);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;
  const auto outcome = engine->run();
  if (outcome.end != actor::Outcome::End::completed)
    return std::fprintf(stderr, "%s\n", outcome.error.c_str()), 1;

  const auto objective = engine->get("objective").value();
  for (std::size_t step = 0; step < steps; ++step) {
    std::printf("step %2zu: mean squared distance %.4f\n", step + 1, objective[step]);
    if (step > 0 && objective[step] > objective[step - 1] + 1e-12) return 1;
  }
  std::printf("the objective fell to %.4f; centres", objective.back());
  for (std::size_t c = 0; c < clusters; ++c) {
    const Point at = centre(engine->get("sums").value(), c, points);
    std::printf(" (%.1f, %.1f)", at[0], at[1]);
  }
  std::printf("\n");
}
