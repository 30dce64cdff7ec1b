/// Runs built-in flows in this process, for tests.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flows.hpp"
#include "tests/sanitized.hpp"
#include "tests/tools/folder.hpp"

namespace starling::program {

using Lines = std::vector<std::string>;
using Options = std::vector<std::pair<std::string, std::string>>;

/// How a test runs a flow.
struct FlowSetup {
  std::size_t workers = 2;
  std::size_t memory_bytes = std::size_t{1} << 28U;
  std::uint64_t split_bytes = 1000;
  flow::Part parts = 5;
};

/// The result of a flow that has ended.
struct FlowOutcome {
  /// Empty if the flow succeeded.
  std::string error;
  Lines lines;
  std::map<std::string, double> figures;
  std::uint64_t spilled_bytes = 0;
};

/// Runs the flow `name` on files; an option with an empty key is a flag.
inline FlowOutcome run_flow_on(const std::string& name, const Options& options, const Lines& inputs,
                               const FlowSetup& setup = {}) {
  const auto flows = all_flows(Registry{});
  const auto flow = std::ranges::find(flows, name, &FlowEntry::name);
  auto engine = flow::MapReduce::make({.threads = setup.workers,
                                       .parts = setup.parts,
                                       .memory_bytes = setup.memory_bytes,
                                       .split_bytes = setup.split_bytes,
                                       .attempts = 1})
                    .value();
  FlowContext context{engine, inputs, nullptr, 10'000'000};
  const Spec spec{.name = name, .options = options};
  SpecReader reader{spec};
  const auto ran = flow->run(reader, context);
  FlowOutcome outcome{.error = ran ? "" : ran.error().message,
                      .lines = context.first_lines(),
                      .figures = {context.figures().begin(), context.figures().end()},
                      .spilled_bytes = engine.spilled_bytes()};
  EXPECT_EQ(outcome.lines.size(), context.lines());
  return outcome;
}

/// Calls `check(setup)` for 1 to 8 workers, each with much and with little memory.
template <class Check>
void for_each_setup(const Check& check) {
  for (std::size_t workers = 1; workers <= 8; workers += sanitized ? 3 : 1) {
    for (const std::size_t memory : {std::size_t{1} << 20U, std::size_t{1} << 28U}) {
      SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(memory) + " bytes");
      check(FlowSetup{.workers = workers,
                      .memory_bytes = memory,
                      .split_bytes = 1 + 3001 * workers,
                      .parts = static_cast<flow::Part>(1 + workers % 5)});
    }
  }
}

inline std::string path_of(const Folder& folder, const std::string& name) {
  return (folder.path() / name).string();
}

/// Writes a file and returns its path.
inline std::string put_file(const Folder& folder, const std::string& name,
                            const std::string& content) {
  folder.write(name, content);
  return path_of(folder, name);
}

inline std::string put_gzip(const Folder& folder, const std::string& name,
                            const std::string& content) {
  const std::string path = path_of(folder, name);
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return path;
}

/// Returns the lines of a text that ends with a newline or not.
inline Lines lines_of(const std::string& text) {
  Lines lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    begin = end + 1;
  }
  return lines;
}

/// Draws a number below `n` that is often small: half of the time below a hundredth of `n`.
inline std::uint64_t skewed(Random& random, std::uint64_t n) {
  return random.below(2) == 0 ? random.below(1 + n / 100) : random.below(n);
}

inline Lines sorted_lines(Lines lines) {
  std::ranges::sort(lines);
  return lines;
}

}  // namespace starling::program
