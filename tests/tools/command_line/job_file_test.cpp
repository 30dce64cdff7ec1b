#include "starling/tools/command_line/job_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/tools/job/job.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

Result<Settings> read(const std::string& content) {
  const Folder folder;
  folder.write("job.toml", content);
  return read_job_file((folder.path() / "job.toml").string());
}

TEST(JobFile, GivesSettingsInTheOrderOfLines) {
  const auto settings = read(
      "# a comment\n"
      "workers = 8\n"
      "\n"
      "data = \"digits:n=300\"  # another\n"
      "holdout = 0.25\n"
      "straggler = [\"1:4x\", \"5%:2x\"]\n"
      "json = false\n");
  ASSERT_TRUE(settings) << settings.error().message;
  std::vector<std::string> lines;
  for (const auto& setting : *settings) lines.push_back(setting.key + "=" + setting.text);
  EXPECT_EQ(lines, (std::vector<std::string>{"workers=8", "data=digits:n=300", "holdout=0.25",
                                             "straggler=1:4x", "straggler=5%:2x", "json=false"}));
  EXPECT_TRUE((*settings)[1].location.ends_with("job.toml:4: data"));
}

TEST(JobFile, MayBeEmpty) {
  const auto settings = read("");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(settings->empty());
}

TEST(JobFile, IsRefusedWithTheLineIfItIsNotUtf8) {
  EXPECT_TRUE(read("save = \"\u00e4 \u20ac \U0001f426\"\n"));
  for (const char* bytes : {"\x94", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                            "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff"})
    for (const char* quote : {"'", "\"", "'''", "\"\"\""}) {
      const auto refused =
          read("seed = 1\ndata = " + std::string{quote} + "digits" + bytes + quote + "\n");
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.error().message.find("job.toml:2: is not valid TOML: "), std::string::npos)
          << refused.error().message;
    }
}

TEST(JobFile, IsRefusedIfItIsNestedTooDeeply) {
  for (const char* open : {"[", "{a=", "[{a="}) {
    std::string deep = "barrier = ";
    for (int i = 0; i < 100'000; ++i) deep += open;
    const auto refused = read(deep);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("depth"), std::string::npos) << refused.error().message;
  }
  EXPECT_FALSE(read("barrier = " + std::string(256, '[') + std::string(256, ']')));
}

TEST(JobFile, IsRefusedIfAKeyHasTooManyParts) {
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "a.";
  const auto refused = read("seed = 1\n" + deep + "a = 1\n");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("job.toml:2: holds more than 200 dots"), std::string::npos)
      << refused.error().message;
  // The deepest nesting that is allowed does not exhaust the stack when it is freed.
  const std::string key = "{" + deep.substr(0, 2 * 200) + "a=[\n";
  std::string nested = "barrier = [\n";
  for (int i = 0; i < 127; ++i) nested += key;
  for (int i = 0; i < 127; ++i) nested += "]}\n";
  EXPECT_FALSE(read(nested + "]\n"));
}

TEST(JobFile, TakesAWholeNumberForANumber) {
  EXPECT_EQ(read("epochs = 3\n").value()[0].text, "3");
  EXPECT_EQ(read("seconds = 3\n").value()[0].text, "3");
  EXPECT_EQ(read("seconds = \"200ms\"\n").value()[0].text, "200ms");
  EXPECT_EQ(read("epochs = 2.5\n").value()[0].text, "2.5");
}

/// For each key, a value that is not the key's default. A key with several values has several
/// lines.
const std::vector<std::pair<std::string, std::string>> key_values{
    {"data", "digits:n=200"},
    {"test", "digits:n=50"},
    {"split", "100"},
    {"holdout", "0.25"},
    {"scale", "minmax"},
    {"seed", "9223372036854775807"},
    {"model", "mlp:784-16-10"},
    {"dtype", "float64"},
    {"device", "cuda:1"},
    {"optimizer", "sgd:lr=0.1,momentum=0.9,nesterov"},
    {"l2", "0.001"},
    {"clip", "norm:1"},
    {"compression", "topk:share=2%"},
    {"schedule", "step:every=200,gamma=0.5"},
    {"init", "first model.safetensors"},
    {"batch", "dynamic:total=8"},
    {"epochs", "2.5"},
    {"steps", "70"},
    {"seconds", "200ms"},
    {"until", "accuracy>=0.95"},
    {"patience", "3"},
    {"workers", "6"},
    {"mode", "central"},
    {"shards", "2"},
    {"name", "a-job"},
    {"copies", "3"},
    {"exchange", "broadcast"},
    {"cache", "true"},
    {"wait-for-nodes", "2min"},
    {"barrier", "pssp:s=3,beta=1"},
    {"recheck", "interval:5ms"},
    {"delay", "exp:20ms"},
    {"straggler", "1:4x"},
    {"straggler", "25%:2x"},
    {"threads", "3"},
    {"actors", "watchers"},
    {"actors", "loggers"},
    {"attempts", "5"},
    {"save", "a model.safetensors"},
    {"keep", "best"},
    {"checkpoint", "c"},
    {"checkpoint-every", "9"},
    {"resume", "before"},
    {"trust-file", "true"},
    {"eval-every", "11"},
    {"metrics", "m.jsonl"},
    {"report", "r.html"},
    {"trace", "t.json"},
    {"json", "true"},
    {"quiet", "true"},
};

/// Returns `key` at the end, and before it the key without which a job with `key` is refused, if
/// any.
std::vector<std::string> with_required_keys(const std::string& key) {
  if (key == "shards" || key == "cache") return {"mode", key};
  if (key == "checkpoint-every") return {"checkpoint", key};
  if (key == "trust-file") return {"resume", key};
  return {key};
}

/// Returns a job file that sets `keys` to their `key_values`.
std::string job_file_text(const std::vector<std::string>& keys) {
  std::string content;
  for (const std::string& name : keys) {
    const ValueType type = find_key(name)->type;
    const bool is_quoted = type == ValueType::text || type == ValueType::texts ||
                           type == ValueType::duration || type == ValueType::count_or_text;
    std::string value;
    for (const auto& [key, text] : key_values)
      if (key == name)
        value += (value.empty() ? "" : ", ") + (is_quoted ? "\"" + text + "\"" : text);
    content += name + " = " + (type == ValueType::texts ? "[" + value + "]" : value) + "\n";
  }
  return content;
}

/// Returns the flags that set `keys` to their `key_values`.
std::vector<std::string> flags_of(const std::vector<std::string>& keys) {
  std::vector<std::string> flags;
  for (const std::string& name : keys)
    for (const auto& [key, text] : key_values)
      if (key == name) {
        flags.push_back("--" + key);
        if (find_key(name)->type != ValueType::flag) flags.push_back(text);
      }
  return flags;
}

/// Returns the job that `starling train` makes of these arguments.
Job job_of_arguments(std::vector<std::string> arguments) {
  CLI::App program;
  const JobFileCommand train{program, "train", "", job_keys(), read_job_file, ""};
  arguments.insert(arguments.begin(), "train");
  std::ranges::reverse(arguments);  // CLI11 takes them in reverse order
  program.parse(arguments);
  Registry registry;
  for (const char* name : {"watchers", "loggers"})
    registry.actors(name, "", [](const auto&, auto&) {});
  const auto job = make_job(train.settings().value(), registry);
  EXPECT_TRUE(job) << job.error().message;
  return job.value();
}
Job job_of_file(const std::vector<std::string>& keys) {
  const Folder folder;
  folder.write("job.toml", job_file_text(keys));
  return job_of_arguments({(folder.path() / "job.toml").string()});
}

/// Returns all fields of a job that keys set, to compare jobs.
auto fields_set_by_keys(const Job& job) {
  const actor::TrainOptions& train = job.train;
  const actor::JobOptions& options = train.job;
  const actor::Target until = options.until.value_or(actor::Target{});
  return std::tuple{
      std::tuple{job.data.data, job.data.test, job.data.split, job.data.holdout, job.data.scale,
                 job.data.seed, options.seed},
      std::tuple{job.model, job.element_type, job.device, train.optimizer, train.l2, train.clip,
                 train.compression, train.schedule, job.init, train.batch, train.dynamic_batches},
      std::tuple{job.epochs, job.has_default_length, options.steps, options.time, until.metric,
                 until.value, until.at_least, job.patience},
      std::tuple{options.workers, options.mode, options.exchange, options.cache, options.shards,
                 job.name, options.replication_factor, options.wait_for_nodes, options.barrier,
                 options.recheck, options.delay, options.stragglers, options.compute_threads,
                 options.attempts, static_cast<bool>(options.on_start)},
      std::tuple{job.save, job.keep, job.checkpoint, options.checkpoint_every, job.resume,
                 job.accepts_missing_checksum, job.evaluate_every, job.metrics, job.report,
                 job.trace, job.json, job.quiet}};
}

TEST(JobFile, GivesTheSameJobAsTheFlagForAnyKey) {
  for (const std::string& key : key_names()) {
    SCOPED_TRACE(key);
    ASSERT_GT(std::ranges::count(key_values, key, [](const auto& v) { return v.first; }), 0)
        << "key_values has no value for the key";
    std::vector<std::string> keys = with_required_keys(key);
    const Job job = job_of_file(keys);
    EXPECT_TRUE(fields_set_by_keys(job) == fields_set_by_keys(job_of_arguments(flags_of(keys))));
    keys.pop_back();
    EXPECT_FALSE(fields_set_by_keys(job) == fields_set_by_keys(job_of_arguments(flags_of(keys))))
        << "the key changes no field";
  }
}

/// All keys but `init`, which excludes `resume`, and `exchange`, whose other value excludes
/// servers.
TEST(JobFile, GivesTheSameJobAsTheFlagsForAllKeys) {
  std::vector<std::string> keys = key_names();
  ASSERT_EQ(std::erase(keys, "init"), 1U);
  ASSERT_EQ(std::erase(keys, "exchange"), 1U);
  EXPECT_TRUE(fields_set_by_keys(job_of_file(keys)) ==
              fields_set_by_keys(job_of_arguments(flags_of(keys))));
}

/// `test`, `split` and `holdout` choose the test data; a flag for one replaces all of them in the
/// file.
TEST(OverrideSettings, ReplacesEachKeyAndAllKeysThatChooseTestData) {
  const Settings file{{"workers", "1", "a"}, {"holdout", "0.5", "b"}, {"straggler", "1:2x", "c"}};
  const Settings flags{{"test", "digits", "--test"}, {"straggler", "2:2x", "--straggler"}};
  const Settings overridden = override_settings(file, flags);
  ASSERT_EQ(overridden.size(), 3U);
  EXPECT_EQ(overridden[0].key, "workers");
  EXPECT_EQ(overridden[1].key, "test");
  EXPECT_EQ(overridden[2].text, "2:2x");
}

}  // namespace
}  // namespace starling::program
