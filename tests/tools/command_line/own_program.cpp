/// A user's program with a model over data of its own type, models over tables, data sources, a
/// barrier, own actors, and models that fail. own_program_test.cpp and tests of clusters run it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "starling/starling.hpp"
#include "starling/tools/registry/flow.hpp"
#include "tests/tools/command_line/own_actors.hpp"
#include "tests/tools/command_line/own_operations.hpp"

namespace {

using starling::Random;
using starling::SpecReader;
using starling::models::Batch;
using starling::models::ComputeContext;
using starling::models::Metrics;
using starling::models::Parameter;
using starling::models::Table;

/// Points of the plane around the centre of a ring.
struct Ring {
  struct Point {
    double x;
    double y;
  };
  std::vector<Point> points;

  [[nodiscard]] std::size_t size() const { return points.size(); }
  [[nodiscard]] Ring select(std::span<const std::uint32_t> rows) const {
    Ring chosen;
    for (const auto row : rows) chosen.points.push_back(points[row]);
    return chosen;
  }
};

Ring make_ring(SpecReader& options, std::uint64_t seed) {
  Ring ring;
  Random random{seed};
  const std::uint64_t n = options.count("n", 400, 1, 100000);
  const double radius = options.number("radius", 2, 0, 100);
  for (std::uint64_t i = 0; i < n; ++i) {
    const double angle = random.real(0, 6.283185307179586);
    ring.points.push_back({3 + radius * std::cos(angle), -1 + radius * std::sin(angle)});
  }
  return ring;
}

/// Finds a circle: minimises (|p - c|^2 - r^2)^2 / 4 over c and r^2.
struct Circle {
  using Scalar = double;

  static std::vector<Parameter> parameters() {
    return {{.name = "centre", .shape = {2}}, {.name = "square_radius"}};
  }
  static void initialise(std::span<double> w, Random&) { std::ranges::fill(w, 1.0); }

  static double gradient(std::span<const double> w, const Ring& ring, Batch batch,
                         std::span<double> g, ComputeContext&) {
    double loss = 0;
    for (const auto row : batch) {
      const double dx = ring.points[row].x - w[0];
      const double dy = ring.points[row].y - w[1];
      const double miss = (dx * dx + dy * dy - w[2]) / static_cast<double>(batch.size());
      g[0] -= miss * dx;
      g[1] -= miss * dy;
      g[2] -= miss / 2;
      loss += miss * miss * static_cast<double>(batch.size()) / 4;
    }
    return loss;
  }
  static Metrics evaluate(std::span<const double> w, const Ring& ring, Batch batch,
                          ComputeContext&) {
    double sum = 0;
    for (const auto row : batch) {
      const double dx = ring.points[row].x - w[0];
      const double dy = ring.points[row].y - w[1];
      sum += std::abs(std::sqrt(dx * dx + dy * dy) - std::sqrt(std::abs(w[2])));
    }
    return {{"loss", sum / static_cast<double>(batch.size())}};
  }
};

/// A data source that never finishes loading if there is a file `hang`. It writes a file `hanging`
/// first.
Table make_hanging(SpecReader&, std::uint64_t) {
  if (std::filesystem::exists("hang")) {
    std::ofstream{"hanging"} << "now";
    for (;;) std::this_thread::sleep_for(std::chrono::hours{1});
  }
  return Table{1, 0, Table::Dense{{1, 2, 3, 4}}, {1, 2, 3, 4}};
}

/// A model that learns the mean of a table's labels.
struct Mean {
  using Scalar = float;

  static std::vector<Parameter> parameters() { return {{.name = "mean"}}; }
  static void initialise(std::span<float> w, Random&) { w[0] = 0; }
  static double gradient(std::span<const float> w, const Table& data, Batch batch,
                         std::span<float> g, ComputeContext&) {
    for (const auto row : batch)
      g[0] += (w[0] - data.label(row)) / static_cast<float>(batch.size());
    return std::abs(g[0]);
  }
  static Metrics evaluate(std::span<const float> w, const Table& data, Batch batch,
                          ComputeContext&) {
    double sum = 0;
    for (const auto row : batch) sum += std::abs(static_cast<double>(w[0] - data.label(row)));
    return {{"error", sum / static_cast<double>(batch.size())}};
  }
};

/// Like Mean, but once the mean is above `limit`, its loss is NaN, or its gradient if
/// `is_gradient_nan`.
struct Fragile : Mean {
  float limit = 0;
  bool is_gradient_nan = false;
  double gradient(std::span<const float> w, const Table& data, Batch batch, std::span<float> g,
                  ComputeContext& context) const {
    const double loss = Mean::gradient(w, data, batch, g, context);
    if (w[0] <= limit) return loss;
    if (is_gradient_nan) g[0] = std::numeric_limits<float>::quiet_NaN();
    return is_gradient_nan ? loss : std::numeric_limits<double>::quiet_NaN();
  }
};

/// Like Mean, but its gradient throws an exception.
struct Throwing : Mean {
  static double gradient(std::span<const float>, const Table&, Batch, std::span<float>,
                         ComputeContext&) {
    throw std::runtime_error{"no gradient today"};
  }
};

/// Like Mean, but every third gradient throws an exception.
struct Flaky : Mean {
  static double gradient(std::span<const float> w, const Table& data, Batch batch,
                         std::span<float> g, ComputeContext& context) {
    static std::atomic<int> calls = 0;
    if (calls++ % 3 == 0) throw std::runtime_error{"try again"};
    return Mean::gradient(w, data, batch, g, context);
  }
};

/// Like Mean, but in a folder with a file `hang`, its gradient never returns. It writes a file
/// `hanging` first.
struct Stuck : Mean {
  static double gradient(std::span<const float> w, const Table& data, Batch batch,
                         std::span<float> g, ComputeContext& context) {
    if (std::filesystem::exists("hang")) {
      std::ofstream{"hanging"} << "now";
      for (;;) std::this_thread::sleep_for(std::chrono::hours{1});
    }
    return Mean::gradient(w, data, batch, g, context);
  }
};

/// A model that counts how often workers take each sample: with the optimizer sgd:lr=1, and under
/// other barriers than bsp, a sample adds 1 / workers to its parameter.
struct SampleCounts {
  using Scalar = float;
  std::size_t samples = 0;
  double batch_size = 1;
  /// The tenth gradient that a process computes throws once it has written the gradient. A file
  /// `thrown` says so.
  bool throws = false;

  [[nodiscard]] std::vector<Parameter> parameters() const {
    return {{.name = "counts", .shape = {samples}}};
  }
  static void initialise(std::span<float> w, Random&) { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const Table&, Batch batch, std::span<float> g,
                  ComputeContext&) const {
    // An update of fewer samples than a full batch counts less.
    for (const auto row : batch)
      g[row] -= static_cast<float>(batch_size / static_cast<double>(batch.size()));
    static std::atomic<int> calls = 0;
    if (throws && ++calls == 10) {
      std::ofstream{"thrown"} << "now";
      throw std::runtime_error{"the tenth gradient"};
    }
    return 1;
  }
  static Metrics evaluate(std::span<const float>, const Table&, Batch, ComputeContext&) {
    return {{"loss", 1}};
  }
};

/// A model that takes an hour to initialise if there is a file `hang`. It writes a file `hanging`
/// first.
struct Slow : Mean {
  static void initialise(std::span<float> w, Random& random) {
    Mean::initialise(w, random);
    if (!std::filesystem::exists("hang")) return;
    std::ofstream{"hanging"} << "now";
    std::this_thread::sleep_for(std::chrono::hours{1});
  }
};

/// A model whose parameters have names that a user chose.
struct Named : Mean {
  std::string first;
  std::string second;
  [[nodiscard]] std::vector<Parameter> parameters() const {
    return {{.name = first}, {.name = second}};
  }
};

/// A flow that keeps long lines, with their lengths.
struct LongLines {
  static constexpr std::string_view name = "long-lines";
  static constexpr std::string_view summary = "the lines of at least --bytes bytes";
  std::uint64_t bytes = 80;

  static std::vector<starling::FlowOption> flow_options() {
    return {{"bytes", "N", "the length of a long line [80]"}};
  }
  static LongLines parse(SpecReader& options) { return {.bytes = options.count("bytes", 80)}; }

  using Lengths = starling::flow::Set<std::pair<std::uint64_t, std::string>>;
  [[nodiscard]] starling::Result<Lengths> run(starling::FlowContext& context) const {
    const auto lines = context.text();
    if (!lines) return lines.error();
    const auto lengths = lines->map([](const std::string& line) {
      return std::pair{std::uint64_t{line.size()}, line};
    });
    return Lengths{lengths.filter([least = bytes](const auto& p) { return p.first >= least; })};
  }
};

/// Lets a worker pass if at least half of the workers that it sees are not behind it.
bool half(starling::barrier::Step own, std::span<const starling::barrier::Step> seen) {
  return 2 * std::ranges::count_if(seen, [&](auto step) { return step >= own; }) >=
         std::ssize(seen);
}

/// An algorithm that pushes to its tensor in each third step only.
starling::actor::Algorithm<double> make_rare(SpecReader& /*options*/, const Table& /*data*/) {
  using Update = starling::actor::Update<double>;
  return {.tensors = {starling::actor::Tensor<double>{"sum", {4}}},
          .hooks = {.push = [](auto& context) -> std::vector<Update> {
            if (context.step() % 3 != 0) return {};
            return {{"sum", std::vector<double>(4, 1.0)}};
          }},
          .evaluate = [](const auto& tensors) -> Metrics {
            return {{"sum", tensors.get("sum")[0]}};
          }};
}

/// Returns the function that spawns a Questioner; `stops` as there.
starling::actor::OnStart spawn_questioner(std::optional<starling::core::Step> stops) {
  return [stops](const starling::actor::JobActorsPtr& job, caf::actor_system& system) {
    system.spawn<starling::program::Questioner>(job, stops);
  };
}

}  // namespace

int main(int argc, char** argv) {
  return starling::main(
      argc, argv,
      starling::Registry{}
          .model<Circle, Ring>("circle", "a circle through points")
          .model<Mean>("mean", "the labels' mean")
          .model<Fragile>("fragile", "fails above a limit: fragile[:limit=0.5,gradient]",
                          [](SpecReader& options, const Table&) {
                            Fragile model;
                            model.limit = static_cast<float>(options.number("limit", 0.5, -1, 100));
                            model.is_gradient_nan = options.flag("gradient");
                            return model;
                          })
          .model<Throwing>("throwing", "throws")
          .model<Flaky>("flaky", "throws now and then")
          .model<SampleCounts>(
              "counts", "counts how often each sample is taken: counts[:batch=5,throws]",
              [](SpecReader& options, const Table& data) {
                SampleCounts model;
                model.samples = data.size();
                model.batch_size = static_cast<double>(options.count("batch", 5, 1));
                model.throws = options.flag("throws");
                return model;
              })
          .algorithm<double>("rare", "changes its tensor in each third step", make_rare)
          .model<Stuck>("stuck", "its gradient hangs if there is a file `hang`")
          .model<Slow>("slow", "hangs if there is a file `hang`")
          .model<Named>("named", "has names: named[:first=a,second=b]",
                        [](SpecReader& options, const Table&) {
                          Named model;
                          model.first = options.text("first", "a");
                          model.second = options.text("second", "b");
                          return model;
                        })
          .flow<LongLines>()
          .flow<starling::program::Operations>()
          .data("hanging", "hangs if there is a file `hang`: hanging", make_hanging)
          .data("ring", "points on a circle: ring[:n=400,radius=2]", make_ring)
          .actors("questioner", "prints what the members answer", spawn_questioner(std::nullopt))
          .actors("stopper", "stops the job after 100 steps", spawn_questioner(100))
          .barrier(starling::barrier::Predicate::make("half", half),
                   "half of those seen are not behind"));
}
