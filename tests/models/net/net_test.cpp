// Tests the messages that refuse invalid nets, the plans of nets, and that a net learns.
#include "starling/models/net/net.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/evaluate.hpp"
#include "starling/models/net/named_nets.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "tests/models/model_data.hpp"

namespace starling::models {
namespace {

Result<Net<float>> parse(const std::string& text, const Table& data) {
  return Net<float>::parse(Spec::parse(text).value(), data);
}

/// Returns the error of reading a net of these layers.
std::string layers_error(const std::string& layers, const Table& data = dense_table(2, 784, 10)) {
  return parse("net:layers=" + layers, data).error().message;
}

TEST(NetRefusals, NameTheLayerAndBothShapes) {
  EXPECT_EQ(layers_error("conv2d 6 kernel=5; dense 10"),
            "net: layer 2 (dense 10): dense: reads rows of numbers, but its input is 24x24x6; put "
            "flatten before it, which gives it rows of 3456 numbers");
  EXPECT_EQ(
      layers_error("dense 10; conv2d 6 kernel=5"),
      "net: layer 2 (conv2d 6 kernel=5): conv2d: reads images, HEIGHTxWIDTHxCHANNELS, but its "
      "input is 10");
  EXPECT_EQ(layers_error("conv2d 6 kernel=29"),
            "net: layer 1 (conv2d 6 kernel=29): conv2d: its window of 29x29 is larger than its "
            "input 28x28x1");
  EXPECT_EQ(layers_error("max-pool 16; max-pool 3 padding=0"),
            "net: layer 2 (max-pool 3 padding=0): max-pool: its window of 3x3 is larger than its "
            "input 1x1x1");
  EXPECT_EQ(layers_error("max-pool 2 padding=2"),
            "net: layer 1 (max-pool 2 padding=2): max-pool: padding=2 must be less than its "
            "window's side 2");
  EXPECT_EQ(layers_error("conv2d 4 kernel=3; residual(relu; conv2d 5 kernel=3 padding=1)"),
            "net: layer 2 (residual): its branch makes 26x26x5 and its input is 26x26x4, which "
            "cannot be added");
  EXPECT_EQ(layers_error("residual(conv2d 5 kernel=1 | conv2d 5 kernel=1 stride=2)"),
            "net: layer 1 (residual): its branches make 28x28x5 and 14x14x5, which cannot be "
            "added");
  EXPECT_EQ(layers_error("dense 9"),
            "net: its last layer makes 9, but the data has 10 classes; end with dense 10");
  EXPECT_EQ(layers_error("max-pool 2"),
            "net: its last layer makes 14x14x1, but the data has 10 classes; end with dense 10");
  EXPECT_EQ(layers_error("dense 10", dense_table(2, 784, 0)),
            "net: its last layer makes 10, but the data has real targets; end with dense 1, "
            "or give the data task=class if its labels are classes");
}

TEST(NetRefusals, PreventOverflow) {
  EXPECT_EQ(layers_error("conv2d 16777216 kernel=1; relu"),
            "net: layer 1 (conv2d 16777216 kernel=1): conv2d: makes 28x28x16777216 from its input "
            "28x28x1; valid: at most 16777216 numbers for a sample");
  // oneDNN would divide by zero if it planned this layer.
  EXPECT_EQ(layers_error("conv2d 16777216 kernel=1", dense_table(2, 64 * 64, 10)),
            "net: layer 1 (conv2d 16777216 kernel=1): conv2d: makes 64x64x16777216 from its input "
            "64x64x1; valid: at most 16777216 numbers for a sample");
  EXPECT_EQ(layers_error("conv2d 16777216 kernel=4096 padding=4096"),
            "net: layer 1 (conv2d 16777216 kernel=4096 padding=4096): conv2d: would have more "
            "weights than any memory holds");
  EXPECT_EQ(layers_error("conv2d 2 kernel=4097"),
            "net: layer 1 (conv2d 2 kernel=4097): conv2d: kernel=4097 must be a whole number >= 1 "
            "and <= 4096");
  EXPECT_EQ(
      layers_error("conv2d 2 kernel=1 padding=4096"),
      "net: layer 1 (conv2d 2 kernel=1 padding=4096): conv2d: makes 8220x8220x2 from its input "
      "28x28x1; valid: at most 16777216 numbers for a sample");
}

TEST(NetRefusals, NameUnknownLayersAndBadOptions) {
  EXPECT_EQ(layers_error("conv2 6 kernel=5"),
            "net: layer 1 (conv2 6 kernel=5): unknown layer 'conv2'; did you mean 'conv2d'? valid: "
            "conv2d, max-pool, avg-pool, global-avg-pool, dense, embedding, flatten, batch-norm, "
            "dropout, random-flip, random-shift, relu, tanh, gelu, residual");
  EXPECT_EQ(layers_error("conv2d 6 kernl=5"),
            "net: layer 1 (conv2d 6 kernl=5): conv2d: unknown option 'kernl'; did you mean "
            "'kernel'? valid: kernel, stride, padding, bias");
  EXPECT_EQ(layers_error("conv2d 6"),
            "net: layer 1 (conv2d 6): conv2d: needs kernel=K, the side of its window");
  EXPECT_EQ(layers_error("conv2d 6 kernel=5 pading=1"),
            "net: layer 1 (conv2d 6 kernel=5 pading=1): conv2d: unknown option 'pading'; did you "
            "mean 'padding'? valid: kernel, stride, padding, bias");
  EXPECT_EQ(layers_error("relu 3"),
            "net: layer 1 (relu 3): relu: takes no options, but '3' is given; valid: relu");
  EXPECT_EQ(layers_error("dense ten"),
            "net: layer 1 (dense ten): dense: 'ten' must be its outputs, a whole number from 1 to "
            "16777216");
  EXPECT_EQ(layers_error("dropout 1"),
            "net: layer 1 (dropout 1): dropout: '1' must be its rate, a number of at least 0 and "
            "below 1");
  EXPECT_EQ(layers_error("dense 10(relu)"),
            "net: layer 1 (dense 10): has branches; only residual(...) may have them");
  EXPECT_EQ(layers_error("residual; dense 10"),
            "net: layer 1 (residual): needs a branch in parentheses, like residual(dense 10)");
  EXPECT_EQ(layers_error("dense 3; embedding 4 width=2"),
            "net: layer 2 (embedding 4 width=2): reads ids, so it can only be the first layer");
  EXPECT_EQ(layers_error("embedding 4"),
            "net: layer 1 (embedding 4): embedding: needs width=W, the numbers of one vector");
  EXPECT_EQ(layers_error("residual bias=0(relu)"),
            "net: layer 1 (residual bias=0): takes no options, only branches");
  EXPECT_EQ(layers_error("random-shift 28"),
            "net: layer 1 (random-shift 28): random-shift: moves images of 28x28x1 by 28 pixels; "
            "valid: fewer than 28");
}

TEST(NetRefusals, NameMismatchesOfNetAndData) {
  const Table data = dense_table(2, 784, 10);
  const auto error_of = [&](const std::string& text) { return parse(text, data).error().message; };
  EXPECT_EQ(error_of("net"),
            "net: a net needs layers; valid: names and options like dense 10, separated by ';'");
  EXPECT_EQ(error_of("net:layers=dense 10,loss=hinge"),
            "net: unknown loss 'hinge'; valid: softmax, squared, contrastive");
  EXPECT_EQ(error_of("net:layers=dense 10,loss=squared"),
            "net: loss: squared: needs real targets, but the data has 10 classes");
  EXPECT_EQ(error_of("net:layers=dense 10,loss=contrastive"),
            "net: loss: contrastive: needs 2 classes, alike or not, but the data has 10 classes");
  EXPECT_EQ(error_of("net:layers=dense 10,input=28x28"),
            "net: layer 1 (dense 10): dense: reads rows of numbers, but its input is 28x28; put "
            "flatten before it, which gives it rows of 784 numbers");
  EXPECT_EQ(error_of("net:layers=flatten; dense 10,input=28x27x1"),
            "net: its input 28x27x1 needs 756 features, but the data has 784");
  EXPECT_EQ(error_of("lenet5:input=4x196x1"),
            "lenet5: layer 4 (conv2d 16 kernel=5): conv2d: its window of 5x5 is larger than its "
            "input 2x98x6");
  EXPECT_EQ(error_of("lenet5:inputs=28x28x1"),
            "lenet5: unknown option 'inputs'; did you mean 'input'? valid: input");
  EXPECT_EQ(parse("lenet5", dense_table(2, 785, 10)).error().message,
            "lenet5: the data's 785 features are no square image; add "
            "input=HEIGHTxWIDTHxCHANNELS");
  EXPECT_EQ(parse("lenet5", sparse_table(2, 784, 10)).error().message,
            "lenet5: a net learns from dense rows, but the data has sparse ones");
}

/// 2304 is a square number, as for all images of 16:9 whose sides are 16k and 9k.
TEST(NamedNets, TakeTheShapeOfTheImagesInTheData) {
  Table wide = dense_table(2, 2304, 10);
  EXPECT_EQ(parse("lenet5", wide).value().description().input, (Shape{48, 48, 1}));
  wide.image = {36, 64, 1};
  EXPECT_EQ(parse("lenet5", wide).value().print(), "lenet5:input=36x64x1");
}

TEST(NamedNets, AcceptImagesAndPrintTheirNames) {
  for (const NamedNet& net : named_nets()) {
    const std::string name{net.name};
    const auto small = parse(name, dense_table(2, 784, 10)).value();
    EXPECT_EQ(small.print(), name);
    EXPECT_EQ(small.description().input, (Shape{28, 28, 1}));
    const auto colour = parse(name, dense_table(2, 3072, 4)).value();
    EXPECT_EQ(colour.plan().output(), Shape{4});
    EXPECT_EQ(parse(name + ":input=64x16x3", dense_table(2, 3072, 4)).value().print(),
              name + ":input=64x16x3");
  }
}

/// The number is 6 x 26 + 16 x 151 + 120 x 401 + 84 x 121 + 10 x 85, outputs x (inputs + bias).
TEST(NamedNets, LeNetHasTheKnownNumberOfParameters) {
  const auto net = parse("lenet5", dense_table(2, 784, 10)).value();
  EXPECT_EQ(total_size(net.parameters()), 61706U);
  const auto parameters = net.parameters();
  EXPECT_EQ(parameters[0].name, "layer1.conv2d.weights");
  EXPECT_EQ(parameters[0].shape, (std::vector<std::size_t>{5, 5, 1, 6}));
  EXPECT_FALSE(parameters[1].decay);
  EXPECT_TRUE(check(parameters));
}

TEST(Plans, ComputeInPlaceIfNothingReadsTheInputLater) {
  const auto plan = [](std::string_view layers, const Shape& input) {
    return Plan<float>::make(parse_layers(layers).value(), input).value();
  };
  const auto chain = plan("dense 8; relu; dense 8; dropout 0.5; tanh; dropout 0.5; dense 2", {4});
  std::vector<bool> in_place;
  for (const auto& operation : chain.operations()) in_place.push_back(operation.in_place);
  EXPECT_EQ(in_place, (std::vector<bool>{false, true, false, true, true, false, false}))
      << "the backward pass of tanh reads its output";
  EXPECT_EQ(chain.block_sizes().size(), 2U);
  const auto fork = plan("dense 8; residual(relu; dense 8); dense 2", {4});
  EXPECT_FALSE(fork.operations()[1].in_place) << "the sum reads the input of relu too";
  EXPECT_TRUE(fork.operations()[3].in_place);
}

/// Trains with batches of consecutive rows and returns the accuracy on the test data.
double accuracy_after(const AnyModel<float>& any, const TablePair& data, std::size_t steps,
                      std::size_t batch_size) {
  const auto& net = std::get<Net<float>>(any);
  std::vector<float> w(total_size(net.parameters()));
  std::vector<float> g(w.size());
  const Optimizer optimizer = parse_optimizer("adam:lr=0.002").value();
  std::vector<float> state(slot_count(optimizer) * w.size());
  Random random{1};
  net.initialise(w, random);
  Arena arena;
  std::vector<std::uint32_t> batch(batch_size);
  for (std::size_t step = 0; step < steps; ++step) {
    std::iota(batch.begin(), batch.end(),
              static_cast<std::uint32_t>(step * batch_size % (data.train.size() - batch_size)));
    arena.reset();
    std::ranges::fill(g, 0.0F);
    ComputeContext context{random, arena};
    net.gradient(w, data.train, batch, g, context);
    apply<float>(optimizer, w, g, state, {.t = step + 1});
  }
  return evaluate_all(net, std::span<const float>{w}, data.test, arena)[1].value;
}

TEST(NamedNets, LeNetLearnsDigits) {
  const auto data =
      load_pair(Source::parse("digits:n=2000").value(), Source::parse("digits:n=500").value(), 1)
          .value();
  const auto net = parse_model<float>("lenet5", data.train).value();
  EXPECT_GT(accuracy_after(net, data, 200, 32), 0.95);
}

}  // namespace
}  // namespace starling::models
