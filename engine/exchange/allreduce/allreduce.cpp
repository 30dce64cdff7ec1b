#include "starling/engine/exchange/allreduce/allreduce.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

namespace starling::core {
namespace {

constexpr std::string_view overlap = "overlap";
constexpr std::string_view buckets_prefix = "buckets=";
/// The options that may follow the algorithm.
constexpr std::string_view options_help = "overlap, or buckets=1 to buckets=64";

Error in_argument(const std::string& what) { return Error{"exchange: allreduce: " + what}; }

Error unknown_argument(std::string_view argument, const std::string& valid) {
  return in_argument(quote(argument) + " is unknown; " + valid);
}

bool is_option(std::string_view part) {
  return part == overlap || part.starts_with(buckets_prefix);
}

Result<void> read_option(std::string_view part, AllreduceSettings& settings) {
  if (settings.overlaps || settings.buckets > 0)
    return in_argument(quote(part) + " follows another option; valid: one of " +
                       std::string{options_help});
  if (part == overlap) {
    settings.overlaps = true;
    return {};
  }
  auto count = parse_count(part.substr(buckets_prefix.size()), 1, buckets_max);
  if (!count) return std::move(count).error().within("exchange: allreduce: buckets");
  settings.buckets = *count;
  return {};
}

Result<void> read_algorithm(std::string_view part, AllreduceSettings& settings) {
  constexpr const auto& examples = AllreduceExchange::arguments;
  if (part == examples.front()) return {};
  const std::string_view name = part.substr(0, part.find(':'));
  const bool is_known = std::ranges::any_of(examples, [&](std::string_view example) {
    return example.substr(0, example.find(':')) == name;
  });
  if (!is_known)
    return unknown_argument(
        part, suggest(part, std::vector<std::string>{examples.begin(), examples.end()}));
  auto algorithm = collective::parse_algorithm(part);
  if (!algorithm) return std::move(algorithm).error().within("exchange: allreduce");
  settings.algorithm = collective::print(*algorithm);
  return {};
}

/// Reads an algorithm, an option, or both, the algorithm first.
Result<AllreduceSettings> parse_argument(std::string_view argument) {
  if (argument.empty()) return unknown_argument(argument, "valid: allreduce, or allreduce:ring");
  AllreduceSettings settings;
  bool is_first = true;
  for (const std::string_view part : split(argument, ',')) {
    auto read = is_option(part) ? read_option(part, settings) : read_algorithm(part, settings);
    if (!read) return std::move(read).error();
    if (!is_option(part) && !is_first) {
      const std::string first{argument.substr(0, argument.find(','))};
      return unknown_argument(
          argument, is_option(first) ? "valid: " + std::string{part} + "," + first
                                     : "valid after the algorithm: " + std::string{options_help});
    }
    is_first = false;
  }
  return settings;
}

}  // namespace

Result<AllreduceSettings> parse_allreduce(std::string_view name) {
  const std::string_view argument = exchange_argument(name);
  return parse_argument(name == AllreduceExchange::name ? AllreduceExchange::arguments.front()
                                                        : argument);
}

std::string print(const AllreduceSettings& settings) {
  std::string arguments = settings.algorithm;
  const auto add = [&](std::string_view part) {
    arguments += (arguments.empty() ? "" : ",") + std::string{part};
  };
  if (settings.overlaps) add(overlap);
  if (settings.buckets > 0) add(std::string{buckets_prefix} + std::to_string(settings.buckets));
  return std::string{AllreduceExchange::name} + (arguments.empty() ? "" : ":") + arguments;
}

AllreduceExchange::AllreduceExchange(const ExchangeOptions& options)
    : RoundExchange(options, [&] {
        const AllreduceSettings settings = parse_allreduce(options.name).value();
        RoundExchangeOptions rounds{.algorithm = settings.algorithm,
                                    .overlaps = settings.overlaps,
                                    .shards_optimizer = settings.shards_optimizer()};
        if (options.has_early_parts || settings.buckets > 0)
          rounds.buckets = buckets(options.name, *options.layout, options.applier->element_bytes());
        return rounds;
      }()) {}

std::vector<Bucket> AllreduceExchange::buckets(std::string_view name, const Layout& layout,
                                               std::size_t element_bytes) {
  const AllreduceSettings settings = parse_allreduce(name).value();
  if (settings.overlaps) return {};
  std::size_t count = settings.buckets;
  // A bucket with fewer ranges than workers would keep only some of the primaries busy.
  if (count == 0)
    count = settings.shards_optimizer() ? 1 : automatic_bucket_count(layout, element_bytes);
  auto buckets = make_buckets(layout, count);
  if (buckets.size() == 1) buckets.clear();
  return buckets;
}

bool AllreduceSettings::shards_optimizer() const { return algorithm == collective::Parts::name; }

bool AllreduceExchange::shards_optimizer(std::string_view name) {
  const auto settings = parse_allreduce(name);
  return settings.ok() && settings->shards_optimizer();
}

std::optional<MemberId> AllreduceExchange::answerer(std::string_view name,
                                                    const Configuration& configuration,
                                                    RangeId range) {
  return shards_optimizer(name) ? primary_of(configuration, range) : first_worker(configuration);
}

Result<void> AllreduceExchange::check_argument(std::string_view argument) {
  if (auto settings = parse_argument(argument); !settings) return settings.error();
  return {};
}

Result<void> AllreduceExchange::check_rounding(std::string_view name) {
  if (parse_allreduce(name).value().algorithm != collective::Doubling::name) return {};
  return Error{"several workers of " + std::string{name} +
               " have the same partial sum, and would count its rounding errors twice; valid: "
               "allreduce:halving, or compression none"};
}

Result<void> AllreduceExchange::check_workers(std::string_view name, std::size_t workers) {
  if (auto valid = RoundExchange::check_workers(name, workers); !valid) return valid;
  const auto settings = parse_allreduce(name);
  if (!settings) return settings.error();
  if (settings->algorithm.empty()) return {};
  const auto algorithm = collective::parse_algorithm(settings->algorithm);
  auto fits = std::visit([&](const auto& chosen) { return chosen.check(workers); }, *algorithm);
  if (!fits) return std::move(fits).error().within("exchange " + std::string{name});
  return {};
}

}  // namespace starling::core
