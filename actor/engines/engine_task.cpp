#include "starling/actor/engines/engine_task.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "starling/base/text.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::actor::detail {
namespace {

[[noreturn]] void throw_invalid(const std::string& why) { throw std::invalid_argument{why}; }

/// Rows in ascending order, and their values in the same order.
template <class T>
struct SortedRows {
  std::vector<std::uint32_t> rows;
  std::vector<T> values;
};

template <class T>
SortedRows<T> sort_rows(const std::vector<std::uint32_t>& rows, const std::vector<T>& values,
                        std::size_t row_size) {
  if (std::ranges::is_sorted(rows)) return {rows, values};
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return rows[i]; });
  SortedRows<T> result;
  for (const std::size_t i : order) {
    result.rows.push_back(rows[i]);
    const auto row = std::span{values}.subspan(i * row_size, row_size);
    result.values.insert(result.values.end(), row.begin(), row.end());
  }
  return result;
}

}  // namespace

Result<std::vector<core::Value>> Fetcher::read(std::span<const core::RangeRows> plan) const {
  if (system_ == nullptr) return Error{"a simulated job has no owners to ask"};
  const auto model = caf::actor_cast<MemberHandle>(model_);
  if (!model) return Error{"the job is over"};
  const actor::CafThreadScope scope;
  caf::scoped_actor self{*system_};
  const auto ask = [&](const core::RangeRows& part) {
    return self->request(model, timeout_, actor::read_atom_v,
                         core::AskValue{part.range, part.rows});
  };
  std::vector<decltype(ask(plan[0]))> answers;
  for (const core::RangeRows& part : plan) answers.push_back(ask(part));
  std::vector<core::Value> values;
  std::string fault;
  for (auto& answer : answers)
    answer.receive([&](const core::Value& value) { values.push_back(value); },
                   [&](const caf::error& error) {
                     fault = error == caf::sec::request_timeout
                                 ? "no answer from the owners within " + print_duration(timeout_)
                                 : reason_of(error);
                   });
  if (!fault.empty()) return Error{std::move(fault)};
  return values;
}

template <class T>
core::Merge<T> EngineTask<T>::merge() const {
  if (!hooks_->pull)
    return [](const core::MergeTarget&, std::span<T> value, std::span<const T> update) {
      models::axpy(T{1}, update, value);
    };
  return [keys = keys_, hooks = hooks_](const core::MergeTarget& target, std::span<T> value,
                                        std::span<const T> update) {
    const std::string& key = keys->names()[target.parameter];
    try {
      hooks->pull({key, target.offset}, value, update);
    } catch (const std::exception& fault) {
      throw std::runtime_error{"pull of " + quoted_key(key) + ": " + fault.what()};
    }
  };
}

template <class T>
StepState<T> EngineTask<T>::make_step_state(const StepInput& input) const {
  return {.keys = *keys_,
          .fetcher = fetcher_,
          .worker_count = static_cast<std::uint32_t>(workers_),
          .share = input.share,
          .worker = input.worker,
          .step = input.step,
          .random = Random::stream(seed_, input.worker, input.step)};
}

template <class T>
std::vector<core::RangeRows> EngineTask<T>::plan(const StepInput& input) {
  StepState<T> state = make_step_state(input);
  StepContext<T> context{state};
  std::vector<core::RangeRows> plan;
  std::vector<bool> seen(keys_->names().size());
  for (const Selection& selection : hooks_->schedule(context)) {
    const auto ranges = keys_->ranges_of(selection);
    if (!ranges) throw_invalid("schedule: " + ranges.error().message);
    const std::size_t key = keys_->find(selection.key).value();
    if (seen[key])
      throw_invalid("schedule: " + quoted_key(selection.key) + " is asked for twice in one step");
    seen[key] = true;
    plan.insert(plan.end(), ranges->begin(), ranges->end());
  }
  return plan;
}

/// In `values`, the values of one key's ranges follow one another. If only one range of a key was
/// read, the KeyRead of the key refers to the value of that range; otherwise it refers to a copy in
/// `scratch` that joins the values of the ranges.
template <class T>
std::vector<KeyRead<T>> EngineTask<T>::assemble(std::span<const core::Value> values,
                                                Scratch& scratch) const {
  scratch.parameters.reset();
  std::vector<KeyRead<T>> reads(keys_->names().size());
  for (std::size_t i = 0; i < values.size();) {
    const std::size_t k = keys_->key_index_of(values[i].range);
    const std::size_t row_size = keys_->key(k).row_size();
    KeyRead<T>& read = reads[k];
    read.was_read = true;
    read.by_rows = values[i].value.rows != nullptr;
    std::size_t end = i;
    std::size_t count = 0;
    for (; end < values.size() && keys_->key_index_of(values[end].range) == k; ++end) {
      count += values[end].value.count;
      if (!read.by_rows) continue;
      const std::size_t from = keys_->offset_in_key(values[end].range) / row_size;
      for (const std::uint32_t row : *values[end].value.rows)
        read.rows.push_back(static_cast<std::uint32_t>(from) + row);
    }
    if (end == i + 1) {
      read.values = values[i].value.template as<T>();
    } else {
      const auto whole = scratch.parameters.allocate<T>(count);
      auto to = whole.begin();
      for (std::size_t v = i; v < end; ++v)
        to = std::ranges::copy(values[v].value.template as<T>(), to).out;
      read.values = whole;
    }
    i = end;
  }
  return reads;
}

template <class T>
StepResult EngineTask<T>::compute(const StepInput& input, Scratch& scratch) {
  StepState<T> state = make_step_state(input);
  state.reads = assemble(input.values, scratch);
  StepContext<T> context{state};
  StepResult result;
  auto update = split_by_range(hooks_->push(context));
  if (!update) {
    result.fault = "push: " + update.error().message;
  } else if (state.loss && !std::isfinite(*state.loss)) {
    result.fault = "push: the reported loss is " + print_number(*state.loss);
  } else {
    result.update = *std::move(update);
    result.update.loss = state.loss;
  }
  return result;
}

template <class T>
Result<core::Update> EngineTask<T>::split_by_range(const std::vector<Update<T>>& updates) const {
  core::Update out;
  out.samples = 1;  // the step of an engine has no samples, and counts as one
  std::vector<bool> seen(keys_->names().size());
  for (const Update<T>& update : updates) {
    const auto key = keys_->find(update.key);
    if (!key) return key.error();
    if (seen[*key])
      return Error{quoted_key(update.key) + " is pushed twice in one step; valid: one update"};
    seen[*key] = true;
    if (auto done = split_one_by_range(update, *key, out); !done) return std::move(done).error();
  }
  return out;
}

template <class T>
Result<void> EngineTask<T>::split_one_by_range(const Update<T>& update, std::size_t key,
                                               core::Update& out) const {
  const models::Parameter& shape = keys_->key(key);
  const std::size_t row_size = shape.row_size();
  const std::size_t expected = update.rows ? update.rows->size() * row_size : shape.size();
  if (update.values.size() != expected)
    return Error{quoted_key(update.key) + ": " + std::to_string(update.values.size()) +
                 " values are pushed; valid: " + std::to_string(expected) +
                 (update.rows ? " for " + std::to_string(update.rows->size()) + " rows of " +
                                    std::to_string(row_size)
                              : std::string{})};
  const auto nan = std::ranges::find_if(update.values, [](T x) { return std::isnan(x); });
  if (nan != update.values.end())
    return Error{quoted_key(update.key) + ": element " +
                 std::to_string(nan - update.values.begin()) +
                 " of the update is NaN; valid: numbers"};
  if (!update.rows) {
    const auto buffer = core::Buffer::copy_of<T>(update.values);
    for (auto [range_id, end] = keys_->ranges(key); range_id < end; ++range_id)
      out.parts.push_back({range_id,
                           {buffer, keys_->offset_in_key(range_id),
                            keys_->layout().ranges[range_id].count, nullptr}});
    return {};
  }
  const auto sorted = sort_rows(*update.rows, update.values, row_size);
  if (auto valid = keys_->check_selected_rows(key, sorted.rows); !valid) return valid;
  const auto buffer = core::Buffer::copy_of<T>(sorted.values);
  for (const RowPiece& piece : keys_->split(key, sorted.rows))
    out.parts.push_back(
        {piece.range,
         {buffer, piece.first_position * row_size, piece.rows->size() * row_size, piece.rows}});
  return {};
}

template class EngineTask<float>;
template class EngineTask<double>;

}  // namespace starling::actor::detail

namespace starling::actor {

template <class T>
core::MemberId StepContext<T>::worker() const {
  return state_.worker;
}

template <class T>
core::Step StepContext<T>::step() const {
  return state_.step;
}

template <class T>
std::uint32_t StepContext<T>::workers() const {
  return state_.worker_count;
}

template <class T>
std::uint32_t StepContext<T>::share() const {
  return state_.share.index;
}

template <class T>
std::uint32_t StepContext<T>::shares() const {
  return state_.share.count;
}

template <class T>
Random& StepContext<T>::random() {
  return state_.random;
}

template <class T>
void StepContext<T>::report(double loss) {
  state_.loss = loss;
}

template <class T>
std::span<const T> StepContext<T>::get(std::string_view key) const {
  const auto k = state_.keys.find(key);
  if (!k) detail::throw_invalid(k.error().message);
  if (state_.reads.empty())
    detail::throw_invalid(detail::quoted_key(key) + ": nothing is read yet in schedule; use fetch");
  const auto& read = state_.reads[*k];
  if (!read.was_read)
    detail::throw_invalid(detail::quoted_key(key) + " was not read: schedule did not ask for it");
  return read.values;
}

template <class T>
std::span<const T> StepContext<T>::row(std::string_view key, std::uint32_t row) const {
  const auto values = get(key);
  const std::size_t k = state_.keys.find(key).value();
  const auto& read = state_.reads[k];
  const std::size_t size = state_.keys.key(k).row_size();
  std::size_t at = row;
  if (read.by_rows) {
    const auto found = std::ranges::lower_bound(read.rows, row);
    const bool known = found != read.rows.end() && *found == row;
    at = known ? static_cast<std::size_t>(found - read.rows.begin()) : values.size();
  }
  if (at >= values.size() / size)
    detail::throw_invalid(detail::quoted_key(key) + ": row " + std::to_string(row) +
                          " was not read");
  return values.subspan(at * size, size);
}

template <class T>
Result<std::vector<T>> StepContext<T>::fetch(const Selection& selection) const {
  const auto ranges = state_.keys.ranges_of(selection);
  if (!ranges) return ranges.error();
  const auto values = state_.fetcher.read(*ranges);
  if (!values) return Error{values.error()}.within(detail::quoted_key(selection.key));
  std::vector<T> all;
  for (const core::Value& value : *values) {
    const auto part = value.value.template as<T>();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

template <class T>
std::vector<T> Tensors<T>::get(std::string_view key) const {
  const auto k = keys_.find(key);
  if (!k) detail::throw_invalid(k.error().message);
  return detail::collect<T>(keys_, *k, states_);
}

template class StepContext<float>;
template class StepContext<double>;
template class Tensors<float>;
template class Tensors<double>;

}  // namespace starling::actor
