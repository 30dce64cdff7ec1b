/// A job trained on a set of samples, compared with the same job on files.
#include <filesystem>
#include <set>

#include "starling/actor/flow/predictor.hpp"
#include "starling/actor/flow/sample_table.hpp"
#include "starling/actor/flow/save_text.hpp"
#include "tests/actor/cluster/small_jobs.hpp"
#include "tests/actor/flow/flow_cases.hpp"
#include "tests/models/data/files.hpp"

namespace starling::flow {
namespace {

using models::Table;
using Model = models::Softmax<float>;

/// Draws a sample of one of three classes.
Sample draw_sample(std::uint64_t i) {
  Random random = Random::stream(11, i);
  const auto kind = random.below(3);
  Sample sample{{}, static_cast<float>(kind + 1)};
  for (std::uint64_t j = 0; j < 5; ++j)
    sample.features.push_back(static_cast<float>(random.normal() + (j == kind ? 1.5 : 0)));
  return sample;
}

/// Returns the sample with its features as multiples of the largest absolute value of the set.
auto normalise(const Set<Sample>& set) {
  const auto largest = set.map([](const Sample& sample) {
                            float most = 0;
                            for (const float x : sample.features)
                              most = std::max(most, std::abs(x));
                            return most;
                          })
                           .reduce([](float a, float b) { return std::max(a, b); })
                           .value()
                           .value();
  return set.map([largest](Sample sample) {
    for (float& x : sample.features) x /= largest;
    return sample;
  });
}

std::string csv_line(const Sample& sample) {
  std::string line;
  for (const float x : sample.features) line += print_number(double{x}) + ",";
  return line + print_number(double{sample.label});
}

struct Trained {
  Model model;
  std::vector<float> parameters;
  models::Metrics test;
};

/// Trains with three workers under bsp.
Trained train_on(const Table& train, const Table& test) {
  auto model = Model::parse(Spec::parse("softmax").value(), train).value();
  actor::TrainOptions options;
  options.job.mode = core::Mode::central;
  options.job.barrier = barrier::parse("bsp").value();
  options.job.workers = 3;
  options.optimizer = models::parse_optimizer("sgd:lr=0.5,momentum=0.9").value();
  options.epochs = 4;
  options.batch = 20;
  const auto outcome = actor::train(model, train, &test, options).value();
  auto parameters = actor::parameters_of(model, options, outcome);
  return {std::move(model), std::move(parameters), outcome.last.test};
}

/// Returns the names of all files and folders in a folder.
std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    names.insert(entry.path().filename().string());
  return names;
}

TEST(FlowTraining, SamplesTrainTheModelThatTheirFileTrains) {
  const models::TemporaryFolder files;
  const models::TemporaryFolder spill;
  const auto make = [&](std::size_t threads, Part parts) {
    return MapReduce::make({.threads = threads, .parts = parts, .spill_folder = spill.path("")})
        .value();
  };
  const auto features = [&](std::size_t threads, Part parts) {
    return normalise(make(threads, parts).generate(900, draw_sample));
  };
  // The file has one part, so that it is one CSV file.
  for (const bool is_test : {false, true}) {
    const auto chosen = features(1, 1).zip_with_index().filter(
        [is_test](const auto& record) { return (record.second % 4 == 0) == is_test; });
    const auto lines = chosen.map([](const auto& record) { return csv_line(record.first); });
    ASSERT_TRUE(save_text(lines, files.path(is_test ? "test" : "train")));
  }
  const auto from_files =
      models::load_pair(models::Source::parse("csv:" + files.path("train/part-00000.txt")).value(),
                        models::Source::parse("csv:" + files.path("test/part-00000.txt")).value(),
                        1)
          .value();
  const Trained expected = train_on(from_files.train, from_files.test);

  const auto names = names_in(std::filesystem::current_path());
  for (const Part parts : {Part{1}, Part{7}}) {
    const auto engine = make(4, parts);
    const auto all = normalise(engine.generate(900, draw_sample)).zip_with_index();
    const auto sample_of = [](const auto& record) { return record.first; };
    const auto is_test = [](const auto& record) { return record.second % 4 == 0; };
    const Table train = to_table(all.filter(std::not_fn(is_test)).map(sample_of)).value();
    const auto test_samples = all.filter(is_test).map(sample_of);
    const Table test = to_table(test_samples, TableOptions::like(train)).value();
    const Trained direct = train_on(train, test);
    EXPECT_EQ(direct.parameters, expected.parameters);
    EXPECT_EQ(direct.test, expected.test);
    EXPECT_GT(actor::metric(direct.test, "accuracy"), 0.7);

    const Predictor predictor{direct.model, direct.parameters, train};
    const auto right = predict(test_samples, predictor)
                           .filter([](const auto& pair) { return pair.first.label == pair.second; })
                           .count()
                           .value();
    EXPECT_NEAR(static_cast<double>(right), 225 * actor::metric(expected.test, "accuracy"), 1e-6);
    EXPECT_EQ(engine.spilled_bytes(), 0U);
  }
  EXPECT_EQ(names_in(std::filesystem::current_path()), names);
  EXPECT_TRUE(names_in(spill.path("")).empty());
}

}  // namespace
}  // namespace starling::flow
