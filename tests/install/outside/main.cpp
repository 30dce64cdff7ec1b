/// A user's program that calls some functions of every installed library. Exits with 0 if all calls
/// succeed.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "starling/engine/sim/steps/steps.hpp"
#include "starling/starling.hpp"

namespace {

using starling::models::Table;

/// A model of the user's own: the mean of the labels.
struct Mean {
  using Scalar = float;

  std::vector<starling::models::Parameter> parameters() const { return {{.name = "mean"}}; }
  void initialise(std::span<float> w, starling::Random) const { w[0] = 0; }
  double gradient(std::span<const float> w, const Table& data, starling::models::Batch batch,
                  std::span<float> g, starling::models::ComputeContext) const {
    double loss = 0;
    for (const std::uint32_t row : batch) {
      const float error = w[0] - data.label(row);
      g[0] += error / static_cast<float>(batch.size());
      loss += 0.5 * static_cast<double>(error * error) / static_cast<double>(batch.size());
    }
    return loss;
  }
  starling::models::Metrics evaluate(std::span<const float>, const Table&, starling::models::Batch,
                                     starling::models::ComputeContext) const {
    return {{"loss", 0}};
  }
};
static_assert(starling::models::Model<Mean, Table>);

}  // namespace

int main() {
  const auto spec = starling::Spec::parse("pssp:s=4,beta=2");
  if (!spec || spec->name != "pssp") return 1;

  const Table table{1, 0, Table::Dense{{1.0F, 2.0F}}, {0.0F, 1.0F}};
  const std::vector<std::uint32_t> rows{1};
  if (table.select(rows).label(0) != 1.0F) return 2;

  starling::sim::StepOptions simulated;
  simulated.barrier = starling::barrier::parse("bsp").value();
  if (starling::sim::simulate(simulated).max_lag != 1) return 3;

  const std::array arguments{"outside", "train", "--data",  "linear:d=3,n=200", "--model", "mean",
                             "--steps", "3",     "--quiet", "--workers",        "3"};
  return starling::main(static_cast<int>(arguments.size()), arguments.data(),
                        starling::Registry{}.model<Mean>("mean", "the labels' mean"));
}
