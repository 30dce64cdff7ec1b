#include "starling/tools/cluster/follow/node_evaluator.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "starling/actor/wire/transport.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/interrupt.hpp"

namespace starling::program {
namespace {

/// About how many bytes of a model are sent in one request, so that it soon arrives on slow links.
constexpr std::size_t bytes_per_request = std::size_t{256} << 10U;
/// The time to wait for a reply: more than the time for which a node delays one. A dead node delays
/// an evaluation by this time.
constexpr std::chrono::seconds reply_timeout{4};
/// A node that has forgotten a model asks for it again. The model is sent at most this many times.
constexpr int times_sent_max = 3;

models::Metrics metrics_of(const std::optional<wire::ModelMetrics>& result) {
  models::Metrics metrics;
  if (result)
    for (const auto& [name, value] : result->metrics) metrics.push_back({printable(name), value});
  return metrics;
}

/// Adds the values of the ranges from `first` on to a request, up to `bytes_per_request`.
void add_ranges(wire::EvaluateModel& request, const std::vector<core::RangeState>& states,
                core::RangeId first) {
  std::size_t bytes = 0;
  for (std::size_t i = first; i < states.size() && bytes < bytes_per_request; ++i) {
    core::RangeState& state = request.states.emplace_back();
    state.range = states[i].range;
    state.value = states[i].value;
    bytes += state.value.bytes().size();
  }
}

}  // namespace

models::Metrics NodeEvaluator::on_training_data(const std::vector<core::RangeState>& states) const {
  return metrics_of(evaluate(states, wire::DataPart::training));
}

models::Metrics NodeEvaluator::on_test_data(const std::vector<core::RangeState>& states) const {
  return metrics_of(evaluate(states, wire::DataPart::test));
}

std::optional<double> NodeEvaluator::normalised_error(
    const std::vector<core::RangeState>& states) const {
  if (!options_.has_normalised_error) return std::nullopt;
  const auto result = evaluate(states, wire::DataPart::none);
  return result ? result->normalised_error : std::nullopt;
}

std::vector<std::string> NodeEvaluator::addresses() const {
  const auto members = follower_.member_nodes();
  std::vector<std::string> all;
  for (const auto& [node, address] : follower_.answering_nodes())
    if (members.contains(node)) all.push_back(address);
  if (const auto last = std::ranges::find(all, last_address_); last != all.end())
    std::rotate(all.begin(), last, std::next(last));
  return all;
}

std::optional<wire::ModelMetrics> NodeEvaluator::evaluate(
    const std::vector<core::RangeState>& states, wire::DataPart part) const {
  error_ = "no node answers";
  const bool was_interrupted = is_interrupted();
  for (const std::string& address : addresses()) {
    auto result = evaluate_at(address, states, part, was_interrupted);
    if (result) {
      error_.clear();
      last_address_ = address;
      return *std::move(result);
    }
    error_ = result.error().message;
    if (is_interrupted() && !was_interrupted) break;
  }
  return std::nullopt;
}

Result<wire::ModelMetrics> NodeEvaluator::evaluate_at(const std::string& address,
                                                      const std::vector<core::RangeState>& states,
                                                      wire::DataPart part,
                                                      bool was_interrupted) const {
  const std::uint64_t evaluation = wire::draw_id();
  int times_sent = 0;
  for (core::RangeId next = 0;;) {
    if (next == 0 && ++times_sent > times_sent_max)
      return Error{"the node at " + wire::without_key(address) +
                   " has forgotten the model several times"};
    wire::EvaluateModel request{options_.job, evaluation, part, {}, {}};
    if (part == wire::DataPart::test) request.metric = options_.metric;
    add_ranges(request, states, next);
    auto reply = client_.ask_for<wire::ModelMetrics>(address, request, reply_timeout);
    if (!reply) return std::move(reply).error();
    if (reply->is_done) return reply;
    if (is_interrupted() && !was_interrupted) return Error{"interrupted"};
    next = reply->next;
  }
}

}  // namespace starling::program
