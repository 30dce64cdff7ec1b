/// The flows that the program has. To add one, write a file in flows/, include it here and name it
/// in BuiltInFlows.
#pragma once

#include <variant>
#include <vector>

#include "starling/tools/registry/registry.hpp"
#include "starling/tools/run/flows/histogram.hpp"
#include "starling/tools/run/flows/join_files.hpp"
#include "starling/tools/run/flows/k_means.hpp"
#include "starling/tools/run/flows/page_rank.hpp"
#include "starling/tools/run/flows/sort_lines.hpp"
#include "starling/tools/run/flows/word_count.hpp"

namespace starling::program {

using BuiltInFlows = std::variant<WordCount, SortLines, JoinFiles, PageRank, KMeans, Histogram>;

/// Returns the flows of a registry and the built-in ones. A flow of the registry takes the place of
/// the built-in one with the same name.
[[nodiscard]] std::vector<FlowEntry> all_flows(const Registry& registry);

}  // namespace starling::program
