#include "starling/tools/collective/collective_command.hpp"

#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/check.hpp"
#include "starling/tools/collective/collective_report.hpp"
#include "starling/tools/collective/network_options.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/job/topology_file.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using collective::Algorithm;

/// Reads the options of the collective and of the network.
Result<void> put_options(collective::Request& request, collective::Network& network,
                         const Settings& settings) {
  std::uint64_t members = request.members;
  std::uint64_t root = request.root;
  if (auto given = put_count(members, settings, "members", 1, collective::members_max); !given)
    return given;
  if (auto given = put_count(root, settings, "root", 0, UINT32_MAX); !given) return given;
  request.members = members;
  request.root = static_cast<collective::Rank>(root);
  if (auto given = put(request.operation, settings, "operation", collective::parse_operation);
      !given)
    return given;
  if (!location_of(settings, "root").empty() && !collective::has_root(request.operation))
    return Error{location_of(settings, "root") + ": " + std::string{name(request.operation)} +
                 " has no root; valid: with reduce, broadcast, gather or scatter"};
  if (auto given = put(request.bytes, settings, "bytes", parse_vector_bytes); !given) return given;
  return put_network(network, settings);
}

/// If the algorithm is packed trees: reads the topology from its file, unless the algorithm has it
/// already; copies the topology to the network, and its number of members to the request as the
/// default.
Result<void> take_topology(Algorithm& algorithm, collective::Request& request,
                           collective::Network& network) {
  auto* const trees = std::get_if<collective::PackedTrees>(&algorithm);
  if (trees == nullptr) return {};
  if (trees->topology == nullptr) {
    auto topology = read_topology(trees->file);
    if (!topology) return std::move(topology).error();
    trees->topology = std::make_shared<const collective::Topology>(*std::move(topology));
  }
  request.members = trees->topology->members;
  network.topology = trees->topology;
  return {};
}

Result<void> check_picture(const std::string& svg, const collective::Plan& plan) {
  if (svg.empty()) return {};
  const auto& schedule = plan.schedule;
  if (schedule.members > picture_members_max || schedule.rounds.size() > picture_rounds_max)
    return Error{"--svg: " + print_count(schedule.members, "member") + " and " +
                 print_count(schedule.rounds.size(), "round") +
                 " are too many for a picture; valid: " + std::to_string(picture_members_max) +
                 " and " + std::to_string(picture_rounds_max) + " at most"};
  if (const auto* trees = std::get_if<collective::PackedTrees>(&plan.algorithm)) {
    const FileUse links{"the topology", trees->file};
    if (auto free = check_no_conflict({"--svg", svg}, std::span{&links, 1}); !free) return free;
  }
  return check_writable(svg);
}

Result<int> compare(const collective::Request& request, const collective::Network& network,
                    const Settings& settings) {
  if (const auto svg = location_of(settings, "svg"); !svg.empty())
    return Error{svg + ": the picture is of one algorithm; valid: an ALGORITHM, or auto"};
  const auto plans = collective::make_plans(request, network);
  if (!plans) return plans.error();
  const bool is_json = !text_of(settings, "json").empty();
  return write_stdout(
      is_json ? plans_json(*plans, request, network) + "\n" : plans_text(*plans, request, network),
      done);
}

}  // namespace

Result<int> collective_command(const std::string& name, const Settings& settings) {
  collective::Request request{.members = 8, .bytes = 1e8};
  collective::Network network{.latency_s = 50e-6, .bytes_per_second = 1.25e9};
  const bool is_chosen_by_cost = name.empty() || name == "auto";
  Algorithm algorithm;
  if (!is_chosen_by_cost) {
    auto parsed = collective::parse_algorithm(name);
    if (!parsed) return std::move(parsed).error().within("ALGORITHM");
    algorithm = *std::move(parsed);
    if (auto read = take_topology(algorithm, request, network); !read)
      return std::move(read).error();
  }
  if (auto given = put_options(request, network, settings); !given) return std::move(given).error();
  if (name.empty()) return compare(request, network, settings);
  if (is_chosen_by_cost) {
    const auto plans = collective::make_plans(request, network);
    if (!plans) return plans.error();
    algorithm = plans->front().algorithm;
  }
  const auto plan = collective::make_plan(algorithm, request, network);
  if (!plan) return plan.error();
  const std::string svg = text_of(settings, "svg");
  if (auto drawable = check_picture(svg, *plan); !drawable) return std::move(drawable).error();
  if (const auto proven = collective::check(plan->schedule); !proven) {
    print_error(print(algorithm) + ": " + proven.error().message);
    return job_failed;
  }
  if (!svg.empty())
    if (auto written = replace_file(svg, plan_svg(*plan, request)); !written) {
      print_error(written.error().message);
      return job_failed;
    }
  const bool is_json = !text_of(settings, "json").empty();
  return write_stdout(
      is_json ? plan_json(*plan, request, network) + "\n" : plan_text(*plan, request, network),
      done);
}

}  // namespace starling::program
