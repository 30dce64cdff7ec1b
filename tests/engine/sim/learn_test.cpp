/// Tests that simulated jobs train models in every mode, also over a lossy network.
#include "starling/engine/sim/protocol/learn.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/data/load.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::Mode;
using models::Table;

Table load(const char* source) {
  return models::load(models::Source::parse(source).value(), 1).value();
}

template <class M>
M make(const char* spec, const Table& data) {
  return M::parse(Spec::parse(spec).value(), data).value();
}

double metric_value(const models::Metrics& metrics, const std::string& name) {
  for (const auto& metric : metrics)
    if (metric.name == name) return metric.value;
  throw std::runtime_error{"no metric called " + name};
}

const Table& digits() {
  static const Table rows = load("digits:n=600");
  return rows;
}

LearnOptions options_for(Mode mode, const char* barrier) {
  LearnOptions options;
  options.protocol.mode = mode;
  options.protocol.barrier = barrier::parse(barrier).value();
  options.protocol.workers = 4;
  options.protocol.shards = 2;
  options.protocol.step_time = {laws::Gamma{20ms, 2}};
  options.protocol.slowness = {1, 1, 1, 3};
  options.protocol.link.latency = {laws::Exponential{1ms}};
  options.batch = 25;
  return options;
}

std::vector<float> parameters(const ProtocolResult& result) {
  std::vector<float> all;
  for (const core::RangeState& state : result.model)
    for (const float value : state.value.as<float>()) all.push_back(value);
  return all;
}

struct LearnCase {
  Mode mode;
  const char* barrier;
};

void PrintTo(const LearnCase& c, std::ostream* out) {
  *out << core::print(c.mode) << " " << c.barrier;
}

class EveryMode : public testing::TestWithParam<LearnCase> {};

TEST_P(EveryMode, LearnsToTellDigitsApart) {
  LearnOptions options = options_for(GetParam().mode, GetParam().barrier);
  options.optimizer = models::Sgd{.lr = 0.5};
  options.epochs = 20;
  options.protocol.point_every = 500ms;
  const auto model = make<models::Softmax<float>>("softmax", digits());
  const auto result = learn(model, digits(), nullptr, options).value();
  EXPECT_EQ(result.error, "");
  ASSERT_GT(result.curve.size(), 5U);
  EXPECT_LT(metric_value(result.curve.front().metrics, "accuracy"), 0.3);
  EXPECT_GT(metric_value(result.curve.back().metrics, "accuracy"), 0.95);
  EXPECT_EQ(result.updates, 4 * 20 * 6U) << "4 workers make 20 epochs of 6 batches";
  EXPECT_EQ(result.curve.back().updates, result.updates);
}

/// The noise has a standard deviation of 0.1, so the smallest mean squared error is 0.01. The loss
/// is half of that.
TEST_P(EveryMode, FitsALinearModelUpToItsNoiseOverALossyNetwork) {
  const Table data = load("linear:d=20,n=2000,noise=0.1");
  LearnOptions options = options_for(GetParam().mode, GetParam().barrier);
  options.optimizer = models::Sgd{.lr = 0.1};
  options.protocol.link.loss = 0.3;
  options.protocol.horizon = 30s;
  options.protocol.point_every = 5s;
  const auto model = make<models::Linear<double>>("linear", data);
  const auto result = learn(model, data, nullptr, options).value();
  EXPECT_EQ(result.elapsed, 30s);
  EXPECT_GT(metric_value(result.curve.front().metrics, "loss"), 1);
  EXPECT_LT(metric_value(result.curve.back().metrics, "loss"), 0.006);
  EXPECT_GT(result.packets.lost, 0U);
}

TEST_P(EveryMode, RepeatsBitwise) {
  LearnOptions options = options_for(GetParam().mode, GetParam().barrier);
  options.protocol.link.loss = 0.1;
  options.protocol.horizon = 500ms;
  const auto model = make<models::Softmax<float>>("softmax", digits());
  const auto once = learn(model, digits(), nullptr, options).value();
  const auto again = learn(model, digits(), nullptr, options).value();
  EXPECT_EQ(parameters(once), parameters(again));
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_EQ(once.packets.sent, again.packets.sent);
  ASSERT_EQ(once.curve.size(), again.curve.size());
  for (std::size_t i = 0; i < once.curve.size(); ++i) {
    EXPECT_EQ(static_cast<const Point&>(once.curve[i]), again.curve[i]);
    EXPECT_EQ(once.curve[i].metrics, again.curve[i].metrics);
  }
  options.protocol.seed = 2;
  EXPECT_NE(parameters(learn(model, digits(), nullptr, options).value()), parameters(once));
}

INSTANTIATE_TEST_SUITE_P(Of, EveryMode,
                         testing::Values(LearnCase{Mode::central, "bsp"},
                                         LearnCase{Mode::central, "ssp:s=2"},
                                         LearnCase{Mode::hybrid, "pbsp:beta=2"},
                                         LearnCase{Mode::peer, "pssp:s=2,beta=2"}));

/// Owners apply the pushes of a round in worker order, no matter when and how often a push arrives.
TEST(Learn, UnderBspALossyNetworkChangesNoParameter) {
  LearnOptions options = options_for(Mode::central, "bsp");
  options.optimizer = models::Sgd{.lr = 0.1, .momentum = 0.9};
  options.protocol.steps = 30;
  const auto model = make<models::Softmax<float>>("softmax", digits());
  const auto clean = learn(model, digits(), nullptr, options).value();
  EXPECT_EQ(clean.packets.lost, 0U);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    // The job's seed, which orders the data, stays the same. Different latencies cause different
    // losses.
    options.protocol.link = {.latency = {laws::Exponential{seed * 1ms}},
                             .loss = 0.3,
                             .duplication = 0.1,
                             .reordering = 0.1,
                             .delay = {laws::Constant{20ms}}};
    const auto lossy = learn(model, digits(), nullptr, options).value();
    EXPECT_GT(lossy.packets.lost, lossy.packets.sent / 4);
    EXPECT_GT(lossy.elapsed, clean.elapsed);
    EXPECT_EQ(parameters(lossy), parameters(clean));
  }
}

TEST(Learn, ReadsAndPushesOnlyTheRowsThatABatchTouches) {
  const Table data = load("ratings:users=200,items=150,rank=4,n=3000,noise=0.1");
  const auto model = make<models::Factorization<float>>("mf:rank=4", data);
  LearnOptions options = options_for(Mode::peer, "pssp:s=2,beta=2");
  options.optimizer = models::Adagrad{.lr = 0.2};
  options.epochs = 20;
  options.protocol.point_every = 10s;
  const auto result = learn(model, data, nullptr, options).value();
  EXPECT_LT(metric_value(result.curve.back().metrics, "loss"),
            0.5 * metric_value(result.curve.front().metrics, "loss"));
  // The bytes of all updates if each push contained all parameters, of four bytes each.
  const std::uint64_t whole = result.updates * 4 * 4 * (200 + 150);
  EXPECT_LT(traffic_of<core::Push>(result.traffic).bytes, whole);
}

TEST(Learn, CompressionChangesTheBytesOfPushesAndNotWhatIsAddedUp) {
  LearnOptions options = options_for(Mode::central, "bsp");
  options.optimizer = models::Sgd{.lr = 0.1};
  options.protocol.steps = 20;
  options.protocol.point_every = 200ms;
  const auto model = make<models::Softmax<float>>("softmax", digits());
  const auto run = [&](const char* compression) {
    options.compression = models::parse_compression(compression).value();
    return learn(model, digits(), nullptr, options).value();
  };
  const auto push_bytes = [](const ProtocolResult& result) {
    return static_cast<double>(traffic_of<core::Push>(result.traffic).bytes);
  };
  const auto whole = run("none");
  // All that is not 0 is sent.
  EXPECT_EQ(parameters(run("threshold:t=0")), parameters(whole));
  const auto top = run("topk:share=1%");
  EXPECT_LT(push_bytes(top), 0.05 * push_bytes(whole));
  EXPECT_LT(push_bytes(run("bf16")), 0.51 * push_bytes(whole));
  EXPECT_LT(metric_value(top.curve.back().metrics, "loss"),
            metric_value(top.curve.front().metrics, "loss"));
}

TEST(Learn, SumsAndModelsTakeHalfTheBytesAsBfloat16) {
  const auto model = make<models::Softmax<float>>("softmax", digits());
  const auto run = [&]<class Message>(const char* exchange, const char* compression,
                                      const char* barrier, Message) {
    LearnOptions options = options_for(Mode::peer, barrier);
    options.protocol.exchange = exchange;
    options.optimizer = models::Sgd{.lr = 0.2};
    options.protocol.steps = 40;
    options.protocol.point_every = 400ms;
    options.compression = models::parse_compression(compression).value();
    const auto result = learn(model, digits(), nullptr, options).value();
    return std::pair{static_cast<double>(traffic_of<Message>(result.traffic).bytes),
                     metric_value(result.curve.back().metrics, "loss")};
  };
  const auto expect_half = [&](const char* exchange, const char* barrier, auto message) {
    SCOPED_TRACE(exchange);
    const auto [whole_bytes, whole_loss] = run(exchange, "none", barrier, message);
    const auto [bytes, loss] = run(exchange, "bf16", barrier, message);
    EXPECT_LT(bytes, 0.53 * whole_bytes);
    EXPECT_NEAR(loss, whole_loss, 0.02 * whole_loss);
  };
  expect_half("allreduce:ring", "bsp", core::SumPiece{});
  expect_half("average:every=2", "bsp", core::SumPiece{});
  expect_half("gossip", "asp", core::PushSum{});
}

TEST(Learn, RefusesOptionsThatCannotWork) {
  const auto model = make<models::Softmax<float>>("softmax", digits());
  const auto refusal = [&](auto change) {
    LearnOptions options = options_for(Mode::central, "bsp");
    options.protocol.steps = 10;
    change(options);
    const auto result = learn(model, digits(), nullptr, options);
    return result ? std::string{} : result.error().message;
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_EQ(refusal([](auto& o) { o.batch = 0; }), "batch=0: a batch holds at least 1 sample");
  EXPECT_EQ(refusal([](auto& o) { o.protocol.steps = barrier::unlimited; }),
            "a job needs a number of steps or a horizon: else it never ends");
  EXPECT_EQ(refusal([](auto& o) { o.protocol.horizon = 0s; }), "horizon=0s: valid: more than 0s");
  EXPECT_EQ(refusal([](auto& o) { o.protocol.link.loss = 1; }),
            "link: loss=1; valid: 0 to below 1");
  EXPECT_EQ(refusal([](auto& o) {
              o.protocol.link.loss = 0.1;
              o.protocol.channels = false;
            }),
            "loss=0.1: a job does not survive lost messages without channels");
  EXPECT_EQ(refusal([](auto& o) { o.protocol.replication_factor = 0; }),
            "copies=0: a range needs at least 1 owner");
  EXPECT_EQ(refusal([](auto& o) {
              o.protocol.slowness = {1, 2};
            }),
            "2 slowness factors for 4 workers; valid: one for each, or none");
  EXPECT_EQ(refusal([](auto& o) { o.protocol.shards = 0; }),
            "shards=0: a job needs at least 1 server shard");
  EXPECT_EQ(refusal([](auto& o) { o.epochs = -1; }), "epochs=-1; valid: a finite number >= 0");
  EXPECT_EQ(refusal([](auto& o) {
              o.compression = models::TopK{};
              o.protocol.barrier = barrier::parse("tuned:progress").value();
            }).substr(0, 62),
            "compression topk:share=1%: barrier tuned:progress measures the");
  EXPECT_EQ(refusal([](auto& o) { o.protocol.mode = Mode::peer; }).substr(0, 12), "barrier bsp ");
  const Table no_rows{digits().features(), digits().classes(), Table::Dense{}, {}};
  EXPECT_EQ(learn(model, no_rows, nullptr, options_for(Mode::central, "bsp")).error().message,
            "the training data has no samples");
}

TEST(Learn, FailsIfTheLossIsNotANumber) {
  LearnOptions options = options_for(Mode::central, "asp");
  options.optimizer = models::Sgd{.lr = 1e30};
  options.protocol.steps = 50;
  options.protocol.point_every = 1s;
  const Table data = load("linear:d=5,n=100,noise=0.1");
  const auto model = make<models::Linear<float>>("linear", data);
  const auto result = learn(model, data, nullptr, options).value();
  EXPECT_NE(result.error.find("the loss is"), std::string::npos) << result.error;
}

}  // namespace
}  // namespace starling::sim
