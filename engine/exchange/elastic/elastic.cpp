#include "starling/engine/exchange/elastic/elastic.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "starling/base/check.hpp"
#include "starling/base/spec.hpp"
#include "starling/engine/exchange/allreduce/adding_applier.hpp"
#include "starling/engine/exchange/whole_models.hpp"

namespace starling::core {
namespace {

/// Returns the options of the center. The center is not trained: the moves of workers are added to
/// it as they come. It has no optimizer, so the optimizer's state in a checkpoint is dropped.
ExchangeOptions options_of_center(ExchangeOptions options) {
  options.applier = adding_applier(*options.applier);
  const auto has_slots = [](const RangeState& state) { return !state.slots.empty(); };
  // Usually no range has slots. Then all members of a process share the states without a copy.
  if (!options.initial_states || std::ranges::none_of(*options.initial_states, has_slots))
    return options;
  auto states = *options.initial_states;
  for (RangeState& state : states) state.slots = {};
  options.initial_states = std::make_shared<const std::vector<RangeState>>(std::move(states));
  return options;
}

}  // namespace

Result<ElasticSettings> parse_elastic(std::string_view name) {
  const auto spec = Spec::parse(name);
  if (!spec) return Error{"exchange: " + spec.error().message};
  SpecReader reader(*spec);
  ElasticSettings settings;
  settings.every = reader.count("every", settings.every, 1, 1'000'000);
  settings.pull = reader.number("pull", settings.pull, 0, 0.5);
  if (settings.pull == 0) reader.refuse("pull: 0 moves nothing; valid: above 0, up to 0.5");
  if (auto done = reader.finish(); !done) return Error{"exchange: " + done.error().message};
  return settings;
}

ElasticExchange::ElasticExchange(ExchangeOptions options)
    : settings_(parse_elastic(options.name).value()),
      options_(std::move(options)),
      center_(options_of_center(options_)) {}

Result<void> ElasticExchange::check_argument(std::string_view argument) {
  if (auto settings = parse_elastic(std::string{name} + ":" + std::string{argument}); !settings)
    return settings.error();
  return {};
}

void ElasticExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                       Epoch former) {
  workers_ = static_cast<std::size_t>(std::ranges::count(next->members, true, &Member::works));
  center_.on_configuration(context, next, former);
}

// --- the center ---------------------------------------------------------------------------------

/// Calls `event(center_)`, and handles the answer if the center gives it at once.
template <class Event>
void ElasticExchange::call_center(const Context& context, Event event) {
  const std::size_t answers_from = context.out.size();
  event(center_);
  take_answer(context, answers_from);
}

/// Removes the center's answer to this member's worker, if there is one, from the effects with
/// index `first` and above, and handles it. The worker has not asked the center itself, so it must
/// not get this answer.
void ElasticExchange::take_answer(const Context& context, std::size_t first) {
  auto& out = context.out;
  const auto is_answer = [](const auto& effect) {
    return std::holds_alternative<ReadDone>(effect) || std::holds_alternative<Written>(effect);
  };
  const auto answer =
      std::find_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), is_answer);
  if (answer == out.end()) return;
  auto taken = std::move(*answer);
  out.erase(answer);
  if (auto* read = std::get_if<ReadDone>(&taken))
    on_center_read(context, std::move(read->values));
  else
    on_center_moved(context);
}

void ElasticExchange::on_center_read(const Context& context, std::vector<Value> values) {
  // A job may have no parameters.
  center_samples_ = values.empty() ? 0 : std::ranges::max(values, {}, &Value::samples).samples;
  if (phase_ == Phase::getting_copy) {
    phase_ = Phase::idle;
    for (const Value& value : values)
      copy_.push_back(
          values_of(*options_.layout, *options_.applier,
                    {.range = value.range, .value = value.value, .slots = {}, .ledger = {}}));
    return answer_read(context, waiting_read_);
  }
  phase_ = Phase::moving_center;
  Update move = move_toward(values);
  values.clear();  // releases the buffers, so that an owner need not copy a range to change it
  call_center(context, [&](auto& center) {
    center.write(context, {step_, std::move(move), samples_total_});
  });
}

/// Moves the copy toward the center. Returns the opposite move, which is the center's.
Update ElasticExchange::move_toward(const std::vector<Value>& center) {
  constexpr std::uint64_t samples_max = std::numeric_limits<std::uint32_t>::max();
  center_samples_ += samples_since_move_;
  Update move{.parts = {},
              .samples = static_cast<std::uint32_t>(
                  std::min(std::exchange(samples_since_move_, 0), samples_max))};
  for (const Value& value : center) {
    RangeValues& own = copy_[value.range];
    const std::shared_ptr<const Buffer> before = own.value;
    options_.applier->mix(own, value.value, pull());
    move.parts.push_back({value.range, change_between(*own.value, *before)});
  }
  return move;
}

void ElasticExchange::on_center_moved(const Context& context) {
  phase_ = Phase::idle;
  moved_at_ = step_;
  if (!has_ended_) return context.out.push_back(Written{step_});
  center_.end(context, {step_});
}

/// Begins a move of the copy and the center toward each other.
void ElasticExchange::begin_move(const Context& context) {
  phase_ = Phase::reading_center;
  call_center(context, [&](auto& center) { center.read(context, {.step = step_, .plan = {}}); });
}

// --- the worker ---------------------------------------------------------------------------------

void ElasticExchange::read(const Context& context, Read read) {
  if (has_copy()) return answer_read(context, read);
  step_ = moved_at_ = read.step;
  phase_ = Phase::getting_copy;
  waiting_read_ = std::move(read);
  call_center(context, [&](auto& center) { center.read(context, {.step = step_, .plan = {}}); });
}

void ElasticExchange::answer_read(const Context& context, const Read& read) {
  context.out.push_back(read_from(
      *options_.layout, read, [&](RangeId range) -> const RangeValues& { return copy_[range]; }));
}

void ElasticExchange::write(const Context& context, Write write) {
  STARLING_CHECK(has_copy());
  apply(write);
  step_ = write.step;
  samples_total_ = write.samples_total;
  samples_since_move_ += write.update.samples;
  if (step_ % settings_.every > 0) return context.out.push_back(Written{step_});
  begin_move(context);
}

/// Applies the mean gradient of the step at the full rate, whatever its number of samples. The
/// learning-rate schedule assumes that each other worker has computed as many samples as this one
/// since this one last read the center.
void ElasticExchange::apply(const Write& write) {
  const double weight = write.update.samples > 0 ? 1 : 0;
  for (const Update::Part& part : write.update.parts) {
    if (part.values.empty()) continue;
    RangeValues& values = copy_[part.range];
    values.samples = center_samples_ + samples_since_move_ * workers_;
    options_.applier->apply(*options_.layout, part.range, values, part.values, weight);
  }
}

/// Moves the center once more if needed, so that it also contains the steps since the last move.
void ElasticExchange::end(const Context& context, const EndWrites& end) {
  has_ended_ = true;
  if (has_copy() && step_ > moved_at_) return begin_move(context);
  center_.end(context, end);
}

}  // namespace starling::core
