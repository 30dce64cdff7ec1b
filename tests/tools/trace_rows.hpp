/// Reads the files of --trace.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace starling::program {

/// The row of a worker: its intervals, in the order of the file.
using TraceRowEvents = std::vector<nlohmann::json>;

/// Returns each worker's row. Expects that each event has the fields that its kind needs.
inline std::map<int, TraceRowEvents> rows_of(const nlohmann::json& trace) {
  std::map<int, TraceRowEvents> rows;
  std::map<int, std::string> names;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 1);
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
      continue;
    }
    EXPECT_EQ(event["ph"], "X") << event;
    EXPECT_TRUE(event["name"].is_string());
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GT(event["dur"].get<double>(), 0);
    rows[event["tid"]].push_back(event);
  }
  for (const auto& [thread, row] : rows)
    EXPECT_EQ(names[thread], "worker " + std::to_string(thread - 1));
  return rows;
}

}  // namespace starling::program
