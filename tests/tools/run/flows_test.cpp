/// The list of flows, and flows of a user's own.
#include "tests/tools/run/flow_runner.hpp"

namespace starling::program {
namespace {

/// A flow that hides the built-in `sort`, and writes one line.
struct OwnSort {
  static constexpr std::string_view name = "sort";
  static constexpr std::string_view summary = "one line";
  static std::vector<FlowOption> flow_options() { return {{"loud", "", "in capitals"}}; }
  bool is_loud = false;

  static OwnSort parse(SpecReader& options) { return {.is_loud = options.flag("loud")}; }
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const {
    const std::string line = is_loud ? "SORTED" : "sorted";
    return flow::Set<std::string>{context.engine().collection(std::vector{line})};
  }
};

/// A flow with options that a test chooses.
struct OptionsFlow : OwnSort {
  static inline std::string_view name;
  static inline std::vector<FlowOption> options;
  static std::vector<FlowOption> flow_options() { return options; }
  static OptionsFlow parse(SpecReader&) { return {}; }
};

TEST(Flows, OwnOnesHideThoseBuiltIn) {
  const auto flows = all_flows(Registry{}.flow<OwnSort>());
  EXPECT_EQ(flows.size(), std::variant_size_v<BuiltInFlows>);
  EXPECT_EQ(std::ranges::count(flows, "sort", &FlowEntry::name), 1);
  EXPECT_EQ(flows.front().summary, "one line");
  FlowContext context{flow::MapReduce::make({}).value(), {"unread"}, nullptr, 5};
  const Spec spec{.name = "sort", .options = {{"", "loud"}}};
  SpecReader options{spec};
  ASSERT_TRUE(flows.front().run(options, context));
  EXPECT_EQ(context.first_lines(), Lines{"SORTED"});
}

TEST(Flows, ChecksOptionsWithoutRunning) {
  const auto flows = all_flows(Registry{});
  const auto error = [&](const std::string& name, const Options& options) {
    const auto flow = std::ranges::find(flows, name, &FlowEntry::name);
    const Spec spec{.name = name, .options = options};
    SpecReader reader{spec};
    const auto valid = flow->check(reader);
    return valid ? std::string{} : valid.error().message;
  };
  EXPECT_EQ(error("wordcount", {{"top", "3"}, {"", "spaces"}}), "");
  EXPECT_EQ(error("kmeans", {{"k", "0"}}), "kmeans: k=0 must be a whole number >= 1 and <= 10000");
  EXPECT_EQ(error("join", {}), "join: the right table is missing; valid: --with FILE");
}

TEST(Flows, KeepFirstLinesUpToALimitOfBytes) {
  const auto engine = flow::MapReduce::make({.threads = 2, .parts = 3}).value();
  const auto set = engine.collection(Lines{"aaaa", "bb", "cccc", "d", "e", "f"});
  for (const auto& [bytes, kept] : {std::pair{std::size_t{0}, std::size_t{0}},
                                    {3, 0},
                                    {4, 1},
                                    {9, 2},
                                    {10, 3},
                                    {13, 6},
                                    {1000, 6}}) {
    FlowContext context{engine, {"unread"}, nullptr, 100, bytes};
    ASSERT_TRUE(context.write(set));
    EXPECT_EQ(context.first_lines().size(), kept) << bytes;
    EXPECT_EQ(context.lines(), 6U);
  }
}

TEST(Flows, RefusesNamesThatNobodyCanWrite) {
  const auto error = [](std::string_view name, std::vector<FlowOption> options) {
    OptionsFlow::name = name;
    OptionsFlow::options = std::move(options);
    const auto valid = Registry{}.flow<OptionsFlow>().check();
    return valid ? std::string{} : valid.error().message;
  };
  EXPECT_EQ(error("mine", {{"depth", "N", ""}, {"deep-2", "", ""}}), "");
  const std::string valid = "; valid: a word of small letters, digits and '-'";
  EXPECT_EQ(error("My flow", {}), "the name 'My flow' of your own flow cannot be written" + valid);
  EXPECT_EQ(error("", {}), "the name '' of your own flow cannot be written" + valid);
  EXPECT_EQ(error("mine", {{"--depth", "N", ""}}),
            "the option '--depth' of your own flow mine cannot be written" + valid);
  EXPECT_EQ(error("mine", {{"workers", "N", ""}}),
            "the option 'workers' of your own flow mine has the name of another option; valid: "
            "each name once");
  for (const std::string taken : {"to", "name", "threads", "wait-for-nodes", "token"})
    EXPECT_EQ(error("mine", {{taken, "N", ""}}), "the option '" + taken +
                                                     "' of your own flow mine has the name of "
                                                     "another option; valid: each name once");
  EXPECT_EQ(error("mine", {{"a", "N", ""}, {"a", "N", ""}}),
            "the option 'a' of your own flow mine has the name of another option; valid: each name "
            "once");
  const auto table = [](SpecReader&, std::uint64_t) {
    return models::Table{1, 0, models::Table::Dense{{1}}, {1}};
  };
  EXPECT_EQ(Registry{}.data("own", "", table).data("own", "", table).check().error().message,
            "the name 'own' of your own data source, or flow of samples, is given twice; valid: "
            "each name once");
  EXPECT_EQ(Registry{}.flow<OwnSort>().flow<OwnSort>().check().error().message,
            "the name 'sort' of your own flow is given twice; valid: each name once");
}

}  // namespace
}  // namespace starling::program
