/// The notes that nodes send to the programs that follow a job.
#include "starling/tools/cluster/follow/job_notes.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "starling/tools/registry/algorithm_of.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "tests/tools/folder.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

Settings settings_of(const std::vector<std::pair<std::string, std::string>>& texts) {
  Settings settings;
  for (const auto& [key, text] : texts) settings.push_back({key, text, "--" + key});
  return settings;
}

class JobNotesTest : public testing::Test {
 protected:
  PreparedRun prepared(const Settings& settings) {
    auto ready = prepare(registry_, settings, "");
    EXPECT_TRUE(ready) << (ready ? "" : ready.error().message);
    return *std::move(ready);
  }
  /// Returns the run of `settings` as a follower reads it from the notes that a node writes.
  RecordedRun followed(const Settings& settings) {
    auto notes = read_job_notes(write_job_notes(prepared(settings)));
    EXPECT_TRUE(notes) << (notes ? "" : notes.error().message);
    auto run = describe_run(make_job(settings, registry_).value(), settings, *std::move(notes));
    EXPECT_TRUE(run) << (run ? "" : run.error().message);
    return *std::move(run);
  }
  /// Returns the error of a follower with `own` settings beside `settings`.
  std::string error_of(Settings settings, const Settings& own) {
    auto notes = read_job_notes(write_job_notes(prepared(settings)));
    settings.insert(settings.end(), own.begin(), own.end());
    auto run = describe_run(make_job(settings, registry_).value(), settings, notes.value());
    return run ? "" : run.error().message;
  }

  Folder folder_;
  Registry registry_ = with_built_in({});
};

/// The settings of the jobs below, whose defaults depend on the data and on the model.
std::vector<Settings> jobs(const Folder& folder) {
  return {settings_of({{"data", "digits:n=300"}, {"quiet", "true"}}),
          settings_of({{"data", "linear:d=3,n=200"}, {"dtype", "float64"}, {"quiet", "true"}}),
          settings_of({{"data", "digits:n=300"},
                       {"model", "mlp:784-8-10"},
                       {"workers", "3"},
                       {"mode", "central"},
                       {"shards", "2"},
                       {"checkpoint", folder.path() / "c"},
                       {"epochs", "2"},
                       {"quiet", "true"}}),
          settings_of({{"data", "csv:" + (folder.path() / "rows.csv").string()},
                       {"model", "linear"},
                       {"quiet", "true"}}),
          settings_of(
              {{"data", "digits:n=300"}, {"model", "svm"}, {"batch", "10000"}, {"quiet", "true"}})};
}

TEST_F(JobNotesTest, GiveAFollowerTheRunOfTheNodes) {
  folder_.write("rows.csv",
                "size,colour,price\n1,red,10\n2,blue,20.5\n3,red,30\n4,blue,41\n5,red,50\n");
  for (const Settings& settings : jobs(folder_)) {
    SCOPED_TRACE(text_of(settings, "data") + " " + text_of(settings, "model"));
    const PreparedRun on_node = prepared(settings);
    const RecordedRun here = followed(settings);
    EXPECT_EQ(here.description->print(), on_node.model->print());
    EXPECT_EQ(here.description->element_type(), on_node.model->element_type());
    EXPECT_EQ(here.description->learns_by_gradients(), on_node.model->learns_by_gradients());
    const auto& job = on_node.resolved.options.job;
    const core::Layout layout = here.description->layout(job);
    const core::Layout expected = on_node.model->layout(job);
    ASSERT_EQ(layout.ranges.size(), expected.ranges.size());
    for (std::size_t r = 0; r < layout.ranges.size(); ++r) {
      EXPECT_EQ(layout.ranges[r].offset, expected.ranges[r].offset);
      EXPECT_EQ(layout.ranges[r].count, expected.ranges[r].count);
      EXPECT_EQ(layout.ranges[r].row_size, expected.ranges[r].row_size);
    }
    EXPECT_EQ(to_metadata(here.notes), to_metadata(on_node.notes));
    ASSERT_EQ(here.notes.shape.has_value(), on_node.notes.shape.has_value());
    EXPECT_EQ(here.notes.shape->scaling, on_node.notes.shape->scaling);
    EXPECT_EQ(here.identity, on_node.identity);
    EXPECT_EQ(here.job.data.scale, on_node.job.data.scale);
    const ResolvedJob& a = here.resolved;
    const ResolvedJob& b = on_node.resolved;
    EXPECT_EQ(a.options.job.steps, b.options.job.steps);
    EXPECT_EQ(a.options.job.evaluate_every, b.options.job.evaluate_every);
    EXPECT_EQ(a.options.job.shards, b.options.job.shards);
    EXPECT_EQ(a.options.batch, b.options.batch);
    EXPECT_EQ(a.options.l2, b.options.l2);
    EXPECT_EQ(models::print(a.options.optimizer), models::print(b.options.optimizer));
    EXPECT_EQ(models::print(a.options.schedule), models::print(b.options.schedule));
    EXPECT_EQ(a.has_default_schedule, b.has_default_schedule);
    EXPECT_EQ(a.steps_per_epoch, b.steps_per_epoch);
    EXPECT_EQ(a.train_samples, b.train_samples);
    EXPECT_EQ(a.test_samples, b.test_samples);
    EXPECT_EQ(a.data_shape, b.data_shape);
    EXPECT_EQ(a.scale, b.scale);
    ASSERT_EQ(here.data_advice.baseline.has_value(), on_node.data_advice.baseline.has_value());
    if (here.data_advice.baseline) {
      EXPECT_EQ(here.data_advice.baseline->figure, on_node.data_advice.baseline->figure);
      EXPECT_EQ(here.data_advice.baseline->loss, on_node.data_advice.baseline->loss);
    }
    EXPECT_EQ(here.data_advice.labels_hint, on_node.data_advice.labels_hint);
  }
}

TEST_F(JobNotesTest, DivideTheTensorsOfAnAlgorithmAsNodesDo) {
  registry_ = with_built_in(
      Registry{}.algorithm<double>("pair", "two tensors", [](SpecReader&, const models::Table&) {
        actor::Algorithm<double> made{{{"one", {10}}, {"two", {10}}}, {}, {}};
        made.hooks.push = [](auto&) { return std::vector<actor::Update<double>>{}; };
        return made;
      }));
  const Settings settings =
      settings_of({{"data", "digits:n=300"}, {"model", "pair"}, {"steps", "5"}, {"quiet", "true"}});
  const PreparedRun on_node = prepared(settings);
  const RecordedRun here = followed(settings);
  EXPECT_FALSE(here.description->learns_by_gradients());
  const auto& job = on_node.resolved.options.job;
  const core::Layout layout = here.description->layout(job);
  const core::Layout expected = on_node.model->layout(job);
  ASSERT_EQ(layout.ranges.size(), expected.ranges.size());
  EXPECT_GE(layout.ranges.size(), 2U);
  for (std::size_t r = 0; r < layout.ranges.size(); ++r)
    EXPECT_EQ(layout.ranges[r].offset, expected.ranges[r].offset);
}

TEST_F(JobNotesTest, LetAFollowerCheckItsOwnSettings) {
  const Settings job = settings_of({{"data", "digits:n=300"}, {"quiet", "true"}});
  EXPECT_EQ(error_of(job, settings_of({{"until", "accuracy=0.5"}, {"eval-every", "0"}})),
            "--until: has no effect with eval-every 0; valid: eval-every of 1 or more");
  EXPECT_EQ(error_of(job, settings_of({{"patience", "3"}})), "");
  EXPECT_EQ(error_of(job, settings_of({{"until", "recall=0.9"}})), "");
  EXPECT_NE(error_of(job, settings_of({{"until", "recall<=0.9"}})).find("by getting worse"),
            std::string::npos);
  EXPECT_NE(error_of(job, settings_of({{"until", "r2=0.9"}})).find("has no metric 'r2'"),
            std::string::npos);
}

TEST_F(JobNotesTest, AreRefusedIfTheyAreMalformed) {
  const Settings settings = settings_of({{"data", "digits:n=300"}, {"quiet", "true"}});
  const std::string text = write_job_notes(prepared(settings));
  const Json valid = Json::parse(text);
  ASSERT_TRUE(read_job_notes(text));
  EXPECT_FALSE(read_job_notes(""));
  EXPECT_FALSE(read_job_notes(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(read_job_notes("[]"));
  for (const auto& [key, value] : valid.items()) {
    Json changed = valid;
    changed.erase(key);
    EXPECT_FALSE(read_job_notes(changed.dump())) << key << " is missing";
    changed[key] = Json::array({Json::object()});
    EXPECT_FALSE(read_job_notes(changed.dump())) << key << " is of another type";
  }
  Json changed = valid;
  changed["parameters"].push_back(changed["parameters"][0]);
  EXPECT_FALSE(read_job_notes(changed.dump())) << "one name twice";
  changed = valid;
  changed["parameters"][0]["shape"] = {1ULL << 40U, 1ULL << 40U};
  EXPECT_FALSE(read_job_notes(changed.dump())) << "a parameter that is too large";
  changed = valid;
  changed["train_samples"] = 0;
  EXPECT_FALSE(read_job_notes(changed.dump())) << "no samples";
  changed = valid;
  changed["recipe"]["optimizer"] = "none";
  EXPECT_FALSE(read_job_notes(changed.dump())) << "no such optimizer";
}

}  // namespace
}  // namespace starling::program
