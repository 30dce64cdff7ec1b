#include "starling/tools/collective/collective_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/amounts.hpp"
#include "starling/tools/report/table.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The most rounds that the text shows, and the most messages of each round.
constexpr std::size_t rounds_shown = 64;
constexpr std::size_t messages_shown = 64;

std::string request_text(const collective::Request& request, const collective::Network& network) {
  std::string text =
      fmt::format("{} of {} among {}", name(request.operation), bytes_in_units(request.bytes),
                  print_count(request.members, "member"));
  if (has_root(request.operation)) text += fmt::format(", root {}", request.root);
  return text + fmt::format("; latency {}, bandwidth {}/s a {}\n", time_in_units(network.latency_s),
                            bytes_in_units(network.bytes_per_second),
                            network.topology ? "lane" : "port");
}

/// Prints ascending numbers, with ranges: "0-3,7".
std::string print_ranges(const std::vector<collective::ChunkId>& numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += (begin > 0 ? "," : "") + std::to_string(numbers[begin]);
    if (end - begin > 1) text += "-" + std::to_string(numbers[end - 1]);
    begin = end;
  }
  return text;
}

/// Prints the messages of a round: "0 -> 1 adds 0-3, 1 -> 0 adds 4-7".
std::string round_text(const collective::Round& round) {
  std::map<std::tuple<collective::Rank, collective::Rank, collective::ReceiveAction>,
           std::vector<collective::ChunkId>>
      messages;
  for (const collective::Move& move : round)
    messages[{move.from, move.to, move.action}].push_back(move.chunk);
  std::string text;
  std::size_t shown = 0;
  for (auto& [message, chunks] : messages) {
    if (shown++ == messages_shown) {
      text += fmt::format(", and {} more", messages.size() - messages_shown);
      break;
    }
    std::ranges::sort(chunks);
    const auto& [from, to, action] = message;
    text += fmt::format("{}{} -> {} {} {}", shown > 1 ? ", " : "", from, to,
                        action == collective::ReceiveAction::add ? "adds" : "copies",
                        print_ranges(chunks));
  }
  return text;
}

Json cost_json(const collective::Plan& plan) {
  return {{"collective", print(plan.algorithm)},
          {"rounds", plan.cost.rounds},
          {"messages", plan.cost.messages},
          {"port_bytes", plan.cost.port_bytes},
          {"seconds", plan.cost.seconds},
          {"slices", plan.cost.slices},
          {"unpipelined_seconds", plan.cost.unpipelined_seconds}};
}

void add_request(Json& json, const collective::Request& request,
                 const collective::Network& network) {
  json["operation"] = name(request.operation);
  json["members"] = request.members;
  if (has_root(request.operation)) json["root"] = request.root;
  json["bytes"] = request.bytes;
  json["latency_s"] = network.latency_s;
  json["bandwidth_bytes_per_s"] = network.bytes_per_second;
  json["version"] = version();
}

std::string dump(const Json& json) { return json_text(json); }

Json member_json(const std::optional<collective::Rank>& member) {
  return member ? Json(*member) : Json("all");
}

}  // namespace

std::string plan_text(const collective::Plan& plan, const collective::Request& request,
                      const collective::Network& network) {
  const collective::Cost& cost = plan.cost;
  const collective::Schedule& schedule = plan.schedule;
  std::string text = printable(print(plan.algorithm)) + ": " + request_text(request, network);
  text += fmt::format("proof            each chunk counts each contribution once, and arrives\n");
  text += fmt::format("rounds           {}\nmessages         {}\n", cost.rounds, cost.messages);
  text += fmt::format("bytes per {}   {:.0f}, {:.4g} of the vector\n",
                      network.topology ? "link" : "port", cost.port_bytes,
                      cost.port_bytes / request.bytes);
  text += fmt::format("time             {}\n", time_in_units(cost.unpipelined_seconds));
  text += fmt::format("time, pipelined  {}, {}\n", time_in_units(cost.seconds),
                      cost.slices == 1 ? "one slice is best" : print_count(cost.slices, "slice"));
  text += fmt::format("chunks           {}\n", schedule.chunks.size());
  if (!schedule.rounds.empty()) text += "\n";
  for (std::size_t r = 0; r < std::min(rounds_shown, schedule.rounds.size()); ++r)
    text += fmt::format("round {:<3} {}\n", r + 1, round_text(schedule.rounds[r]));
  if (schedule.rounds.size() > rounds_shown)
    text += fmt::format("and {} more; --json has all\n",
                        print_count(schedule.rounds.size() - rounds_shown, "round"));
  return text;
}

std::string plan_json(const collective::Plan& plan, const collective::Request& request,
                      const collective::Network& network) {
  Json json = cost_json(plan);
  json["collective"] = printable(print(plan.algorithm));
  add_request(json, request, network);
  json["ports"] = plan.schedule.ports;
  for (const collective::Chunk& chunk : plan.schedule.chunks)
    json["chunks"].push_back({{"share", chunk.share},
                              {"source", member_json(chunk.source)},
                              {"destination", member_json(chunk.destination)}});
  json["schedule"] = Json::array();
  for (const collective::Round& round : plan.schedule.rounds) {
    Json moves = Json::array();
    for (const collective::Move& move : round)
      moves.push_back({{"from", move.from},
                       {"to", move.to},
                       {"chunk", move.chunk},
                       {"action", move.action == collective::ReceiveAction::add ? "add" : "copy"},
                       {"port", move.port}});
    json["schedule"].push_back(std::move(moves));
  }
  return dump(json);
}

std::string plans_text(const std::vector<collective::Plan>& plans,
                       const collective::Request& request, const collective::Network& network) {
  TextTable table{
      {"collective", "rounds", "messages", "vectors per port", "time", "pipelined", "slices"}};
  for (const collective::Plan& plan : plans)
    table.rows.push_back({print(plan.algorithm), std::to_string(plan.cost.rounds),
                          std::to_string(plan.cost.messages),
                          fmt::format("{:.3f}", plan.cost.port_bytes / request.bytes),
                          time_in_units(plan.cost.unpipelined_seconds),
                          time_in_units(plan.cost.seconds), std::to_string(plan.cost.slices)});
  return request_text(request, network) + "\n" + plain_text(table) +
         "\nfastest: " + print(plans.front().algorithm) + "\n";
}

std::string plans_json(const std::vector<collective::Plan>& plans,
                       const collective::Request& request, const collective::Network& network) {
  Json json{{"fastest", print(plans.front().algorithm)}};
  for (const collective::Plan& plan : plans) json["collectives"].push_back(cost_json(plan));
  add_request(json, request, network);
  return dump(json);
}

std::string plan_svg(const collective::Plan& plan, const collective::Request& request) {
  constexpr double left = 50;
  constexpr double top = 50;
  constexpr double column = 90;
  constexpr double line = 28;
  const collective::Schedule& schedule = plan.schedule;
  const auto members = static_cast<double>(schedule.members);
  const auto rounds = static_cast<double>(schedule.rounds.size());
  const double width = left + std::max(rounds * column, 400.0) + 20;
  const double height = top + members * line + 10;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<defs><marker id=\"head\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" "
      "markerHeight=\"6\" orient=\"auto\"><path d=\"M0,0L6,3L0,6z\" fill=\"context-stroke\"/>"
      "</marker></defs>\n"
      "<text x=\"10\" y=\"18\">{2}: {3} among {4}; solid adds, dashed copies, a colour for each "
      "chunk</text>\n",
      width, height, html_escaped(printable(print(plan.algorithm))), name(request.operation),
      print_count(schedule.members, "member"));
  const auto y = [&](collective::Rank member) { return top + line * (member + 0.5); };
  for (collective::Rank i = 0; i < schedule.members; ++i)
    svg += fmt::format(
        "<text x=\"10\" y=\"{0:.0f}\">{1}</text><line x1=\"{2:.0f}\" y1=\"{3:.0f}\" x2=\"{4:.0f}\" "
        "y2=\"{3:.0f}\" stroke=\"#ddd\"/>\n",
        y(i) + 4, i, left, y(i), left + rounds * column);
  for (std::size_t r = 0; r < schedule.rounds.size(); ++r) {
    const double x = left + column * static_cast<double>(r);
    svg += fmt::format("<text x=\"{:.0f}\" y=\"40\" text-anchor=\"middle\">{}</text>\n",
                       x + column / 2, r + 1);
    for (const collective::Move& move : schedule.rounds[r]) {
      const std::size_t hue = 360 * move.chunk / schedule.chunks.size();
      svg += fmt::format(
          "<line x1=\"{:.0f}\" y1=\"{:.0f}\" x2=\"{:.0f}\" y2=\"{:.0f}\" "
          "stroke=\"hsl({},70%,42%)\" "
          "stroke-width=\"1.5\"{} marker-end=\"url(#head)\"><title>{}</title></line>\n",
          x + 8, y(move.from), x + column - 8, y(move.to), hue,
          move.action == collective::ReceiveAction::copy ? " stroke-dasharray=\"4 3\"" : "",
          html_escaped(print(move)));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace starling::program
