#include "starling/models/net/description.hpp"

#include <gtest/gtest.h>

#include "starling/models/net/layers/shape.hpp"

namespace starling::models {
namespace {

/// Parses `text` and returns the printed layers.
std::string reprint(std::string_view text) { return print_layers(parse_layers(text).value()); }
std::string error_of(std::string_view text) { return parse_layers(text).error().message; }

TEST(LayersText, PrintsTheTextThatItParses) {
  EXPECT_EQ(reprint("relu"), "relu");
  EXPECT_EQ(reprint("  conv2d  16\tkernel=3\n padding=1 ;relu"),
            "conv2d 16 kernel=3 padding=1; relu");
  EXPECT_EQ(reprint("a;residual( b 1;c|d );e"), "a; residual(b 1; c | d); e");
  EXPECT_EQ(reprint("residual(a | )"), "residual(a | )");
  EXPECT_EQ(reprint("residual()"), "residual()");
  EXPECT_EQ(reprint("residual(residual(a|b)|c)"), "residual(residual(a | b) | c)");
  EXPECT_TRUE(parse_layers("").value().empty());
  for (const char* text : {"a 1 k=2; residual(b | residual(c; d) | ); e", "residual( | | )"})
    EXPECT_EQ(reprint(reprint(text)), reprint(text));
}

TEST(LayersText, IsParsedIntoLayersOptionsAndBranches) {
  const auto layers = parse_layers("conv2d 16 kernel=3; residual(relu | )").value();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].spec.name, "conv2d");
  EXPECT_EQ(layers[0].spec.options[0].second, "16");
  EXPECT_EQ(layers[0].spec.options[1], (std::pair<std::string, std::string>{"kernel", "3"}));
  ASSERT_EQ(layers[1].branches.size(), 2U);
  EXPECT_EQ(layers[1].branches[0].size(), 1U);
  EXPECT_TRUE(layers[1].branches[1].empty());
}

TEST(LayersText, NamesTheLayerOfAnError) {
  EXPECT_EQ(error_of("a;;b"),
            "layer 2: is empty; valid: a layer between two ';', no ';' after the last");
  EXPECT_EQ(error_of("a; b;"),
            "layer 3: is empty; valid: a layer between two ';', no ';' after the last");
  EXPECT_EQ(error_of("a; residual(b; c"), "layer 2: its '(' is not closed");
  EXPECT_EQ(error_of("a; residual(b) c; d"),
            "layer 2: something follows its ')'; valid: ';' and the next layer");
  EXPECT_EQ(error_of("a; b)"), "layer 2: ')' closes nothing");
  EXPECT_EQ(error_of("a; b | c"), "layer 2: '|' is outside of parentheses");
  for (const char* trailing : {"residual(b;)", "residual(b; | c)"})
    EXPECT_EQ(error_of(trailing),
              "layer 3: is empty; valid: a layer between two ';', no ';' after the last")
        << trailing;
  EXPECT_EQ(error_of("a; (b)"),
            "layer 2: has no name; valid: a name and its options between spaces, like conv2d 16 "
            "kernel=3");
  EXPECT_EQ(error_of("dense:10"),
            "layer 1: 'dense:10' holds a ',' or ':'; valid: a name and its options between spaces, "
            "like conv2d 16 kernel=3");
  EXPECT_EQ(error_of("a k=1 k=2"), "layer 1: a: 'k' is given twice; valid: once");
  EXPECT_EQ(error_of("a k="), "layer 1: a: 'k=' has no value; valid: KEY=VALUE");
}

TEST(LayersText, HasMaximumLengthAndDepth) {
  std::string many = "a";
  for (int i = 0; i < 999; ++i) many += ";a";
  EXPECT_TRUE(parse_layers(many));
  EXPECT_EQ(error_of(many + ";a"), "layer 1001: a net has at most 1000 layers");
  std::string deep = "a";
  for (int i = 0; i < 8; ++i) deep.insert(0, "residual(").append(")");
  EXPECT_TRUE(parse_layers(deep));
  EXPECT_EQ(error_of("residual(" + deep + ")"), "layer 9: is nested more than 8 parentheses deep");
  EXPECT_FALSE(parse_layers(std::string(100000, '(')));
}

TEST(Shapes, AreParsedPrintedAndGuessed) {
  EXPECT_EQ(parse_shape("32x16x3").value(), (Shape{32, 16, 3}));
  EXPECT_EQ(parse_shape("7").value(), Shape{7});
  EXPECT_EQ(print_shape({32, 16, 3}), "32x16x3");
  EXPECT_EQ(volume({32, 16, 3}), 1536U);
  for (const char* text :
       {"", "x", "3x", "0x3", "3x-1", "1x2x3x4", "16777216x2", "2642247x2657638x2626942", "a"})
    EXPECT_FALSE(parse_shape(text)) << text;
  EXPECT_EQ(guess_image(784), (Shape{28, 28, 1}));
  EXPECT_EQ(guess_image(3072), (Shape{32, 32, 3}));
  EXPECT_EQ(guess_image(64), (Shape{8, 8, 1}));
  EXPECT_EQ(guess_image(785), Shape{});
}

}  // namespace
}  // namespace starling::models
