#include "starling/models/net/plan.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/models/net/layers.hpp"

namespace starling::models {
namespace {

/// Marks a value that has no slot yet.
constexpr std::size_t none = SIZE_MAX;

/// The whole layer as written, or only its beginning.
std::string place_of(std::size_t number, const LayerText& layer) {
  return "layer " + std::to_string(number) + " (" + print_spaced(layer.spec) + ")";
}

}  // namespace

/// Makes the steps front to back, then shares memory back to front.
template <class T>
class Plan<T>::Builder {
 public:
  explicit Builder(const Shape& input) { add_value(input); }

  Result<std::size_t> append(const std::vector<LayerText>& layers, std::size_t value) {
    for (const LayerText& layer : layers) {
      auto next = append(layer, value);
      if (!next) return next;
      value = *next;
    }
    return value;
  }

  Plan finish() && {
    for (PlanStep<T>& step : plan_.steps_) share_value(step);
    take_slots();
    return std::move(plan_);
  }

 private:
  Result<std::size_t> append(const LayerText& text, std::size_t value) {
    const std::size_t number = ++layers_;
    if (text.spec.name == "residual") return append_residual(number, text, value);
    const std::string place = place_of(number, text);
    if (!text.branches.empty())
      return Error{place + ": has branches; valid: residual(...) alone has"};
    if (text.spec.name == "embedding" && value != 0)
      return Error{place + ": reads ids, so it can only be the first layer"};
    auto layer = make_layer<T>(text.spec, shape(value));
    if (!layer) return std::move(layer).error().within(place);
    PlanStep<T> step{.layer = *std::move(layer), .from = {value}};
    step.name = "layer" + std::to_string(number) + "." + text.spec.name;
    step.start = parameters_;
    step.size = total_size(step.layer->parameters());
    parameters_ += step.size;
    const Shape made = step.layer->output();
    if (volume(made) > volume_max)
      return Error{place + ": makes " + print_shape(made) + " of its input " +
                   print_shape(shape(value)) + "; at most " + std::to_string(volume_max) +
                   " numbers a sample"};
    return add_step(std::move(step), made);
  }

  Result<std::size_t> append_residual(std::size_t number, const LayerText& text,
                                      std::size_t value) {
    const std::string place = place_of(number, text);
    if (!text.spec.options.empty()) return Error{place + ": takes no options, only branches"};
    if (text.branches.empty())
      return Error{place + ": needs a branch in parentheses, like residual(dense 10)"};
    std::vector<std::size_t> ends;
    for (const auto& branch : text.branches) {
      auto end = append(branch, value);
      if (!end) return end;
      ends.push_back(*end);
    }
    const bool alone = ends.size() == 1;
    if (alone) ends.push_back(value);
    for (const std::size_t end : ends)
      if (shape(end) != shape(ends[0]))
        return Error{place + ": its " + (alone ? "branch makes " : "branches make ") +
                     print_shape(shape(ends[0])) + " and " + (alone ? "its input is " : "") +
                     print_shape(shape(end)) + ", which cannot be added"};
    const Shape sum = shape(ends[0]);
    return add_step({.layer = nullptr, .from = std::move(ends)}, sum);
  }

  std::size_t add_step(PlanStep<T> step, const Shape& made) {
    for (const std::size_t from : step.from) ++uses_[from];
    step.to = add_value(made);
    plan_.steps_.push_back(std::move(step));
    return plan_.steps_.back().to;
  }

  std::size_t add_value(const Shape& shape) {
    plan_.values_.push_back({shape, none});
    uses_.push_back(0);
    guarded_.push_back(plan_.values_.size() == 1);
    return plan_.values_.size() - 1;
  }

  [[nodiscard]] const Shape& shape(std::size_t value) const { return plan_.values_[value].shape; }

  /// Takes the input's memory where no other step reads the input and no earlier layer needs it
  /// again.
  void share_value(PlanStep<T>& step) {
    const std::size_t from = step.from[0];
    const bool may = step.layer == nullptr || step.layer->works_in_place();
    step.in_place = may && uses_[from] == 1 && !guarded_[from];
    guarded_[step.to] = step.layer != nullptr && step.layer->reads_output();
  }

  void take_slots() {
    Value& last = plan_.values_.back();
    last.slot = take_slot(last);
    for (auto step = plan_.steps_.rbegin(); step != plan_.steps_.rend(); ++step) {
      const std::size_t own = plan_.values_[step->to].slot;
      STARLING_CHECK(own != none);
      for (const std::size_t from : step->from) take_for(*step, from, own);
      if (!step->in_place) free_.push_back(own);
    }
  }

  void take_for(PlanStep<T>& step, std::size_t from, std::size_t own) {
    Value& value = plan_.values_[from];
    step.adds.push_back(value.slot != none);
    if (step.adds.back()) {
      if (step.layer == nullptr || from == 0) return;
      step.spare_slot = take_slot(value);
      free_.push_back(step.spare_slot);
    } else {
      value.slot = step.in_place && from == step.from[0] ? own : take_slot(value);
    }
    widen(value.slot, value);
  }

  std::size_t take_slot(const Value& value) {
    if (free_.empty()) {
      free_.push_back(plan_.slots_.size());
      plan_.slots_.push_back(0);
    }
    const std::size_t slot = free_.back();
    free_.pop_back();
    widen(slot, value);
    return slot;
  }

  void widen(std::size_t slot, const Value& value) {
    plan_.slots_[slot] = std::max(plan_.slots_[slot], volume(value.shape));
  }

  Plan plan_;
  std::size_t layers_ = 0;
  std::size_t parameters_ = 0;
  /// How many steps read each value.
  std::vector<std::size_t> uses_;
  /// Values that no step may overwrite: the input, and values that a backward pass reads.
  std::vector<bool> guarded_;
  std::vector<std::size_t> free_;
};

template <class T>
Result<Plan<T>> Plan<T>::make(const std::vector<LayerText>& layers, const Shape& input) {
  Builder builder{input};
  if (auto end = builder.append(layers, 0); !end) return std::move(end).error();
  return std::move(builder).finish();
}

template <class T>
std::vector<Parameter> Plan<T>::parameters() const {
  std::vector<Parameter> all;
  for (const PlanStep<T>& step : steps_) {
    if (step.layer == nullptr) continue;
    for (Parameter parameter : step.layer->parameters()) {
      parameter.name.insert(0, step.name + ".");
      all.push_back(std::move(parameter));
    }
  }
  return all;
}

template class Plan<float>;
template class Plan<double>;

}  // namespace starling::models
