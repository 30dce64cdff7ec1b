/// Trains on tables with the default settings, and checks hints and notes about settings.
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/models/data/numpy.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// Returns a CSV file with `rows` rows of three features, which differ by orders of magnitude, and
/// a target. `target` computes the target from the standardised features and a normal random
/// number.
template <class Target>
std::string table(std::size_t rows, unsigned seed, Target target) {
  std::mt19937 random{seed};
  std::normal_distribution<double> normal;
  std::ostringstream out;
  out << "size,weight,price,target\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const double a = normal(random);
    const double b = normal(random);
    const double c = normal(random);
    out << 1e6 + 1e5 * a << ',' << 1e-3 * b << ',' << 40 + c << ','
        << target(a, b, c, normal(random)) << '\n';
  }
  return out.str();
}

nlohmann::json json_of(const ProgramResult& ran) {
  EXPECT_EQ(ran.code, 0) << ran.err;
  return nlohmann::json::parse(ran.out, nullptr, false);
}

class Defaults : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(In, Defaults, testing::Values("peer", "central", "hybrid"),
                         [](const auto& chosen) { return std::string{chosen.param}; });

TEST_P(Defaults, LearnARegressionAndReportItInTheUnitOfTheTargets) {
  const Folder folder;
  const auto target = [](double a, double b, double c, double noise) {
    return 50'000 + 1000 * (3 * a - 2 * b + c) + 100 * noise;
  };
  folder.write("a.csv", table(300, 1, target));
  folder.write("b.csv", table(100, 2, target));
  const std::string mode = std::string{" --mode "} + GetParam();
  const auto trained = json_of(
      starling(folder, "train --data csv:a.csv --test csv:b.csv --json --quiet --save m" + mode));
  // The noise's variance is 10,000; a constant prediction has an mse of 14 million.
  EXPECT_LT(trained["test_mse"], 12'500);
  EXPECT_FALSE(trained.contains("notes")) << trained["notes"];
  const auto evaluated = json_of(starling(folder, "evaluate m --data csv:b.csv --json"));
  EXPECT_DOUBLE_EQ(evaluated["mse"], trained["test_mse"]);
  const auto evaluated_by_default = json_of(starling(folder, "evaluate m --json"));
  EXPECT_DOUBLE_EQ(evaluated_by_default["mse"], trained["test_mse"]);
  const ProgramResult predicted = starling(folder, "predict m --data csv:b.csv");
  std::istringstream lines{predicted.out};
  std::string line;
  std::getline(lines, line);
  double squared_error_sum = 0;
  std::size_t rows = 0;
  while (std::getline(lines, line)) {
    const auto first_comma = line.find(',');
    const auto second_comma = line.find(',', first_comma + 1);
    squared_error_sum += std::pow(
        std::stod(line.substr(first_comma + 1)) - std::stod(line.substr(second_comma + 1)), 2);
    ++rows;
  }
  ASSERT_EQ(rows, 100U);
  EXPECT_NEAR(squared_error_sum / 100, trained["test_mse"].get<double>(), 1);
}

TEST(Quorum, IsNotedIfItNeedsAllWorkers) {
  const Folder folder;
  const std::string job = "train --data digits:n=100 --model softmax --mode central --steps 1 ";
  const std::string note =
      "starling: --barrier: quorum:q=0.9 waits for all 4 workers, as bsp does; a q of 0.75 or less "
      "waits for fewer\n";
  EXPECT_NE(starling(folder, job + "--barrier quorum").err.find(note), std::string::npos);
  EXPECT_NE(
      starling(folder, job + "--barrier pquorum:beta=2")
          .err.find(": pquorum:q=0.9,beta=2 waits for all 3 workers that it sees, as pbsp:beta=2 "
                    "does; a q of 0.66 or less waits for fewer\n"),
      std::string::npos);
  for (const char* silent : {"--barrier quorum --quiet", "--barrier quorum:q=0.75",
                             "--barrier quorum:q=1", "--barrier quorum --workers 10"})
    EXPECT_EQ(starling(folder, job + silent).err.find("waits for"), std::string::npos) << silent;
}

/// Bytes are divided by 255 when they are read, so they lie between 0 and 1, too.
TEST(Scale, DoesNotScaleArraysWithFeaturesBetween0And1) {
  const Folder folder;
  const std::vector<float> reals{0, 0.5F, 1, 0.25F, 0.75F, 1, 0, 0};
  folder.write("reals.npy", models::npy("<f4", "4, 2", models::little(reals)));
  folder.write(
      "bytes.npy",
      models::npy("|u1", "4, 2", models::little<std::uint8_t>({0, 255, 3, 7, 9, 1, 0, 200})));
  std::vector<float> wider;
  std::vector<float> negative;
  for (const float value : reals) wider.push_back(2 * value), negative.push_back(value - 0.5F);
  folder.write("wider.npy", models::npy("<f4", "4, 2", models::little(wider)));
  folder.write("negative.npy", models::npy("<f4", "4, 2", models::little(negative)));
  folder.write("y.npy", models::npy("<i8", "4,", models::little<std::int64_t>({0, 1, 0, 1})));
  const auto scale = [&](const std::string& x) {
    const auto trained =
        json_of(starling(folder, "train --data npy:" + x +
                                     ",y.npy --model softmax --workers 1 --steps 1 "
                                     "--json --quiet"));
    return trained.value("scale", "none");
  };
  EXPECT_EQ(scale("reals.npy"), "none");
  EXPECT_EQ(scale("bytes.npy"), "none");
  EXPECT_EQ(scale("wider.npy"), "standard");
  EXPECT_EQ(scale("negative.npy"), "standard");
}

TEST_P(Defaults, LearnClasses) {
  const Folder folder;
  const auto target = [](double a, double b, double c, double noise) {
    return a + b - c + 0.1 * noise > 0 ? 1 : 0;
  };
  folder.write("a.csv", table(300, 3, target));
  folder.write("b.csv", table(200, 4, target));
  const auto trained =
      json_of(starling(folder, "train --data csv:a.csv --test csv:b.csv --json --quiet --mode " +
                                   std::string{GetParam()}));
  EXPECT_GT(trained["test_accuracy"], 0.96);
}

TEST(Scale, IsStoredInTheModelFile) {
  const Folder folder;
  const auto target = [](double a, double b, double, double) { return 7 * a + b; };
  folder.write("a.csv", table(200, 5, target));
  const auto mse = [&](const std::string& method) {
    const auto trained = json_of(
        starling(folder, "train --data csv:a.csv --json --quiet --save m --scale " + method));
    const auto evaluated = json_of(starling(folder, "evaluate m --json"));
    EXPECT_DOUBLE_EQ(evaluated["mse"], trained["test_mse"]) << method;
    return trained["test_mse"].get<double>();
  };
  EXPECT_LT(mse("standard"), 0.1);
  EXPECT_LT(mse("minmax"), 5);
  (void)mse("none");  // the loss may be anything, but `evaluate` must agree with it
}

TEST(Scale, RefusesToScaleIds) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, "train --data ratings:users=20,items=20,n=300 --scale standard --quiet");
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_NE(ran.err.find("--scale"), std::string::npos) << ran.err;
}

TEST(Hints, NameAValidAlternative) {
  const Folder folder;
  folder.write("bare.toml", "barrier = bsp\n");
  folder.write("scale.toml", "scale = \"big\"\n");
  struct Case {
    const char* line;
    std::vector<std::string> error_parts;
  };
  for (const Case& bad : std::vector<Case>{
           {"train bare.toml",
            {"bare.toml:1: is not valid TOML", "text stands in quotes, as in barrier"}},
           {"train scale.toml", {"scale.toml:1: scale: 'big' is not a scaling method"}},
           {"train --scale maxmin",
            {"--scale: 'maxmin' is not a scaling method", "none, standard, minmax"}},
           {"train --data csv:x,y.csv", {"--data: csv: 'x,y.csv' is not a name of a file"}},
           {"train --data t.npy",
            {"'t.npy' is a file; data is named with its format: npy:t.npy,LABELS"}}}) {
    const ProgramResult ran = starling(folder, bad.line);
    EXPECT_EQ(ran.code, 2) << bad.line;
    for (const std::string& part : bad.error_parts)
      EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  }
}

TEST(Notes, WarnOfAModelThatIsNoBetterThanGuessing) {
  const Folder folder;
  const auto chance = [](double, double, double, double draw) { return draw > 0 ? 1 : 0; };
  folder.write("a.csv", table(60, 6, chance));
  const ProgramResult ran =
      starling(folder,
               "train --data csv:a.csv --scale none --optimizer sgd:lr=0.000001 "
               "--steps 20 --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("is no better than always predicting the commonest class"),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("--scale standard"), std::string::npos) << ran.out;
}

/// The note does not need a long job: 20 epochs are enough. The delay keeps the workers from going
/// on by many steps while a model is read, so that the losses belong to their steps.
TEST(Notes, WarnOfALossThatWasStillFalling) {
  const Folder folder;
  const auto target = [](double a, double, double, double) { return a > 0 ? 1 : 0; };
  folder.write("a.csv", table(400, 7, target));
  const ProgramResult ran =
      starling(folder,
               "train --data csv:a.csv --optimizer adam:lr=0.005 --epochs 20 --delay const:10ms "
               "--quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("the test loss was still falling"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("--epochs 40"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace starling::program
