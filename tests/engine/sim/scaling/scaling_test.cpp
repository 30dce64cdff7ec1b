/// Tests of the scaling model: against hand-made layers whose steps can be computed by hand, and
/// of the prediction against the simulation.
#include "starling/engine/sim/scaling/scaling.hpp"

#include <gtest/gtest.h>

namespace starling::scaling {
namespace {

std::vector<LayerLoad> loads(const char* layers, models::Shape input) {
  return layer_loads({.input = std::move(input), .layers = models::parse_layers(layers).value()})
      .value();
}

/// A small net whose convolutions compute long and whose dense layers send much.
std::vector<LayerLoad> net() {
  return loads(
      "conv2d 64 kernel=3 padding=1; relu; max-pool 2; conv2d 128 kernel=3 padding=1; relu; "
      "max-pool 2; flatten; dense 1024; relu; dense 1000",
      {64, 64, 3});
}

/// A layer of which a pass takes a second on one node with a batch of 1, and whose gradient has
/// `bytes`.
LayerLoad layer(double bytes) {
  return {.name = "layer1.dense",
          .features = 1,
          .weights = 0.5,
          .positions = 1,
          .parameters = bytes / element_bytes,
          .inputs = 1e9};
}

/// Nodes that make one operation a second, with a latency of 0.
Job job_of(std::vector<LayerLoad> layers, std::size_t nodes, double bytes_per_second) {
  return {.layers = std::move(layers),
          .batch = nodes,
          .nodes = nodes,
          .machine = {.flops_per_second = 1,
                      .network = {.latency_s = 0, .bytes_per_second = bytes_per_second}}};
}

TEST(LayerLoads, AreThoseOfTheLayersWithParameters) {
  const auto found =
      loads("conv2d 6 kernel=5 padding=2 bias=0; batch-norm; relu; max-pool 2; flatten; dense 10",
            {28, 28, 1});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "layer1.conv2d");
  EXPECT_EQ(found[0].weights, 150);
  EXPECT_EQ(found[0].positions, 28 * 28);
  EXPECT_EQ(found[0].inputs, 28 * 28);
  EXPECT_EQ(found[0].pass_flops(), 2 * 150 * 28 * 28);
  EXPECT_DOUBLE_EQ(found[0].flops_per_byte(), 1.5 * 28 * 28) << "as published: 1.5 ow oh";
  EXPECT_EQ(found[1].name, "layer2.batch-norm");
  EXPECT_EQ(found[1].parameters, 12) << "a scale and a shift each; the statistics are not trained";
  EXPECT_EQ(found[1].pass_flops(), 0);
  EXPECT_EQ(found[2].weights, 14 * 14 * 6 * 10);
  EXPECT_EQ(found[2].parameters, 14 * 14 * 6 * 10 + 10);
  EXPECT_EQ(found[2].positions, 1);
  EXPECT_EQ(found[2].features, 10U);
}

TEST(LayerLoads, RefuseNetsWithoutParameters) {
  const auto none = layer_loads({.input = {4}, .layers = models::parse_layers("relu").value()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "the net has no layer with parameters; valid: one at least");
  const auto unfit =
      layer_loads({.input = {4}, .layers = models::parse_layers("conv2d 3 kernel=3").value()});
  ASSERT_FALSE(unfit);
  EXPECT_NE(unfit.error().message.find("layer 1 (conv2d"), std::string::npos)
      << unfit.error().message;
}

/// The gradient with respect to the weights takes a second, and so does that with respect to the
/// inputs, during which half of the exchange is hidden. Then the forward pass waits for the rest.
TEST(Scaling, HidesAnExchangeBehindTheLayersBelow) {
  for (const double exchange_seconds : {0.5, 2.0}) {
    // Each of two nodes sends half of the gradient, and the sum of the other half.
    Job job = job_of({layer(1e5)}, 2, 1e5 / exchange_seconds);
    job.is_data_parallel = true;
    const auto plans = plan_layers(job);
    EXPECT_DOUBLE_EQ(plans[0].gradient.seconds, exchange_seconds);
    const StepTime step = predict(job, plans);
    EXPECT_DOUBLE_EQ(step.compute_seconds, 3);
    EXPECT_DOUBLE_EQ(step.seconds, 3 + std::max(0.0, exchange_seconds - 1));
    EXPECT_NEAR(simulate(job, plans), step.seconds, 1e-9);
  }
}

/// The lower layer's exchange begins later, but the next step needs it first.
TEST(Scaling, SendsTheLowestLayerFirst) {
  Job job = job_of({layer(1e7), layer(4e7)}, 2, 1e7);
  job.is_data_parallel = true;
  const auto plans = plan_layers(job);
  // The upper exchange has 1 s behind its own layer and 2 s behind the lower one; 1 s of it is
  // left when the lower exchange interrupts it for 1 s, which the lower layer's last pass hides.
  // During the next second, the lower layer's pass, it ends.
  EXPECT_DOUBLE_EQ(plans[1].gradient.seconds, 4);
  EXPECT_DOUBLE_EQ(predict(job, plans).seconds, 7);
  EXPECT_NEAR(simulate(job, plans), 7, 0.05) << "messages are not interrupted";
}

TEST(Scaling, IsPerfectOnAnInstantNetwork) {
  Job job = job_of(net(), 8, 1e18);
  job.batch = 64;
  const auto plans = plan_layers(job);
  const StepTime step = predict(job, plans);
  Job alone = job;
  alone.nodes = 1;
  EXPECT_NEAR(predict(alone, plan_layers(alone)).seconds / step.seconds, 8, 1e-6);
  EXPECT_NEAR(simulate(job, plans) / step.seconds, 1, 1e-6);
}

TEST(Scaling, ComputesTheSamplesOfTheNodeWithMost) {
  Job job = job_of({layer(1)}, 3, 1e18);
  job.batch = 7;
  EXPECT_NEAR(predict(job, plan_layers(job)).compute_seconds, 3 * 3, 1e-9);
}

TEST(Scaling, NeedsFewestBytesWithTheGroupsOfTheFormula) {
  // VGG-A's first dense layer: sqrt(64 256 25088 / 102764544).
  Job job{.layers = loads("dense 4096", {25088}), .batch = 256, .nodes = 64};
  EXPECT_NEAR(groups_by_bytes(job, job.layers[0]), 2, 0.01);
  job.nodes = 1;
  EXPECT_EQ(groups_by_bytes(job, job.layers[0]), 1);
  job.layers = loads("conv2d 64 kernel=3 padding=1", {224, 224, 3});
  job.nodes = 64;
  EXPECT_EQ(groups_by_bytes(job, job.layers[0]), 64) << "not more than the nodes";
}

TEST(Scaling, DividesLayersWhereThatIsFaster) {
  Job job{.layers = net(), .batch = 256, .nodes = 32};
  job.machine.flops_per_second = 5e12;
  const auto plans = plan_layers(job);
  const double divided = predict(job, plans).seconds;
  EXPECT_LT(plans[2].groups, job.nodes) << "the first dense layer";
  EXPECT_EQ(plans[0].groups, job.nodes) << "the first convolution";
  job.is_data_parallel = true;
  const auto whole = plan_layers(job);
  for (const LayerPlan& plan : whole) EXPECT_EQ(plan.groups, job.nodes);
  EXPECT_LT(divided, 0.8 * predict(job, whole).seconds);
  EXPECT_LT(simulate(job, plans), 0.85 * simulate(job, whole));
}

TEST(Scaling, GivesEachNodeOfAGroupAFeature) {
  Job job{.layers = loads("dense 3", {100000}), .batch = 8, .nodes = 8};
  job.machine.network.bytes_per_second = 1e6;
  EXPECT_GE(plan_layers(job)[0].groups, 4U) << "groups of at most three nodes, which divide eight";
}

TEST(Scaling, PredictsTheSimulation) {
  for (const double flops : {2e11, 5e12})
    for (const bool is_data_parallel : {false, true})
      for (const std::size_t nodes : {2U, 6U, 16U, 48U}) {
        Job job{.layers = net(), .batch = 200, .nodes = nodes};
        job.machine.flops_per_second = flops;
        job.is_data_parallel = is_data_parallel;
        const auto plans = plan_layers(job);
        EXPECT_NEAR(simulate(job, plans) / predict(job, plans).seconds, 1, 0.1)
            << nodes << " nodes, " << flops << " FLOP/s, " << is_data_parallel;
      }
}

}  // namespace
}  // namespace starling::scaling
