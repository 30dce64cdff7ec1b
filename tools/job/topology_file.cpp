#include "starling/tools/job/topology_file.hpp"

#include <utility>
#include <variant>

#include "starling/base/input.hpp"
#include "starling/engine/exchange/allreduce/allreduce.hpp"
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

namespace starling::program {

Result<collective::Topology> read_topology(const std::string& path) {
  const auto text = read_text(path, std::size_t{1} << 20U, "a topology of lines A B [LANES]");
  if (!text) return text.error();
  return collective::Topology::parse(*text, path);
}

std::string topology_file_in(const std::string& exchange) {
  if (!exchange.starts_with(std::string{core::AllreduceExchange::name} + ":")) return {};
  const auto settings = core::parse_allreduce(exchange);
  if (!settings || settings->algorithm.empty()) return {};
  const auto algorithm = collective::parse_algorithm(settings->algorithm);
  const auto* const trees = algorithm ? std::get_if<collective::PackedTrees>(&*algorithm) : nullptr;
  return trees != nullptr && trees->topology == nullptr ? trees->file : std::string{};
}

Result<std::string> with_links(const std::string& exchange) {
  if (!exchange.starts_with(std::string{core::AllreduceExchange::name} + ":")) return exchange;
  auto settings = core::parse_allreduce(exchange).value();
  if (settings.algorithm.empty()) return exchange;
  const auto algorithm = collective::parse_algorithm(settings.algorithm).value();
  const auto* const trees = std::get_if<collective::PackedTrees>(&algorithm);
  // The parser sets `topology` if `exchange` has links in place of the name of a file.
  if (trees == nullptr || trees->topology != nullptr) return exchange;
  const auto topology = read_topology(trees->file);
  if (!topology) return topology.error();
  settings.algorithm = std::string{collective::PackedTrees::name} + ":" + print(*topology);
  return print(settings);
}

}  // namespace starling::program
