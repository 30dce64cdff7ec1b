#include "starling/tools/chaos/chaos_report.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/program/version.hpp"

namespace starling::program {
namespace {

using sim::ChaosReport;
using sim::Fault;
using Json = nlohmann::ordered_json;

double virtual_time_s(const ChaosReport& report) { return in_seconds(report.end); }

/// Describes the violation, and prints the scenario and the command that replays it.
std::string text_of(const ChaosFailure& failure) {
  std::string text =
      fmt::format("FAILED: {}\n  seed {}, {}, after {} at {:.6f} s of virtual time\n  {}:\n",
                  failure.report.violation, failure.seed, build_text(),
                  print_count(failure.report.events, "event"), virtual_time_s(failure.report),
                  failure.is_shrunk ? "the shortest scenario found that fails" : "the scenario");
  const std::string scenario = print(failure.scenario);
  for (const auto line : split(scenario, '\n'))
    if (!line.empty()) text += fmt::format("    {}\n", line);
  if (!failure.file.empty())
    text += fmt::format("  again: {} chaos --replay {}\n", program_name(), failure.file);
  return text;
}

/// Returns the line which says that all invariants held. After an interrupt, it also says in how
/// many seeds.
std::string success_text(const ChaosTotals& totals) {
  constexpr std::string_view held =
      "no update lost, none applied twice, no sample taken twice, no worker stuck";
  if (!totals.interrupted) return fmt::format("  {}\n", held);
  return fmt::format("  interrupted after {} of {}; in these {}\n", totals.runs,
                     print_count(totals.seeds_requested, "seed"), held);
}

Json json_of(const ChaosFailure& failure) {
  Json json;
  json["seed"] = failure.seed;
  json["violation"] = failure.report.violation;
  json["events"] = failure.report.events;
  json["at_s"] = virtual_time_s(failure.report);
  json["scenario"] = print(failure.scenario);
  json["cut_down"] = failure.is_shrunk;
  if (!failure.file.empty()) json["file"] = failure.file;
  return json;
}

}  // namespace

void ChaosTotals::add(const ChaosReport& report) {
  ++runs;
  sum.events += report.events;
  sum.packets += report.packets;
  sum.steps += report.steps;
  sum.epochs += report.epochs;
  sum.incarnations += report.incarnations;
  sum.excluded += report.excluded;
  sum.passes += report.passes;
  sum.faults_refused += report.faults_refused;
  for (std::size_t i = 0; i < Fault::kinds; ++i) sum.faults[i] += report.faults[i];
  gave_up += report.gave_up ? 1 : 0;
}

std::string build_text() { return "starling " + version() + ", commit " + commit(); }

std::string chaos_text(const ChaosTotals& totals, const std::optional<ChaosFailure>& failure) {
  const ChaosReport& sum = totals.sum;
  std::string text = fmt::format("{}, {}, {} in {:.1f} s\n", print_count(totals.runs, "seed"),
                                 print_count(sum.events, "event"),
                                 print_count(sum.packets, "packet"), totals.wall_s);
  text += fmt::format(
      "  {}, {} barrier passes checked, {}, {} incarnations ({} excluded while healthy)\n",
      print_count(sum.steps, "step"), sum.passes, print_count(sum.epochs, "epoch"),
      sum.incarnations, sum.excluded);
  text += "  faults:";
  for (std::size_t i = 0; i < Fault::kinds; ++i)
    text += fmt::format(" {} {}{}", name(static_cast<Fault::Kind>(i)), sum.faults[i],
                        i + 1 < Fault::kinds ? "," : "");
  text += fmt::format(
      "; {} left out, to stay within the guarantees\n  {} gave up, after more was lost than the "
      "guarantees allow\n",
      sum.faults_refused, print_count(totals.gave_up, "job"));
  return text + (failure ? text_of(*failure) : success_text(totals));
}

std::string chaos_json(const ChaosTotals& totals, const std::optional<ChaosFailure>& failure) {
  const ChaosReport& sum = totals.sum;
  Json json;
  json["version"] = version();
  json["commit"] = commit();
  json["seeds"] = totals.runs;
  json["seeds_asked"] = totals.seeds_requested;
  json["interrupted"] = totals.interrupted;
  json["events"] = sum.events;
  json["packets"] = sum.packets;
  json["steps"] = sum.steps;
  json["passes"] = sum.passes;
  json["epochs"] = sum.epochs;
  json["lives"] = sum.incarnations;
  json["excluded"] = sum.excluded;
  for (std::size_t i = 0; i < Fault::kinds; ++i)
    json["faults"][std::string{name(static_cast<Fault::Kind>(i))}] = sum.faults[i];
  json["faults_left_out"] = sum.faults_refused;
  json["gave_up"] = totals.gave_up;
  json["wall_s"] = totals.wall_s;
  json["failure"] = failure ? json_of(*failure) : Json{};
  return json_text(json, 2);
}

}  // namespace starling::program
