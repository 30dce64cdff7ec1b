#include "starling/models/net/plan.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/models/net/layers.hpp"

namespace starling::models {
namespace {

/// The block of a value that has none yet.
constexpr std::size_t no_block = SIZE_MAX;

/// Returns the layer's number and text, without its branches, for errors.
std::string print_location(std::size_t number, const ParsedLayer& layer) {
  return "layer " + std::to_string(number) + " (" + print_spaced(layer.spec) + ")";
}

}  // namespace

/// Makes the operations from first to last, then assigns blocks from last to first.
template <class T>
class Plan<T>::Builder {
 public:
  explicit Builder(const Shape& input) { add_value(input); }

  /// Appends the layers, of which the first reads value number `value`. Returns the number of the
  /// value that the last one computes.
  Result<std::size_t> append(const std::vector<ParsedLayer>& layers, std::size_t value) {
    for (const ParsedLayer& layer : layers) {
      auto next = append(layer, value);
      if (!next) return next;
      value = *next;
    }
    return value;
  }

  Plan finish() && {
    for (Operation<T>& operation : plan_.operations_) choose_in_place(operation);
    assign_blocks();
    return std::move(plan_);
  }

 private:
  Result<std::size_t> append(const ParsedLayer& parsed, std::size_t value) {
    const std::size_t number = ++layers_;
    if (parsed.spec.name == "residual") return append_residual(number, parsed, value);
    const std::string location = print_location(number, parsed);
    if (!parsed.branches.empty())
      return Error{location + ": has branches; only residual(...) may have them"};
    if (parsed.spec.name == "embedding" && value != 0)
      return Error{location + ": reads ids, so it can only be the first layer"};
    auto layer = make_layer<T>(parsed.spec, shape(value));
    if (!layer) return std::move(layer).error().within(location);
    Operation<T> operation{.layer = *std::move(layer), .inputs = {value}};
    operation.name = "layer" + std::to_string(number) + "." + parsed.spec.name;
    operation.parameters_start = parameters_;
    operation.parameters_size = total_size(operation.layer->parameters());
    parameters_ += operation.parameters_size;
    const Shape output = operation.layer->output();
    if (auto fits = check_output(shape(value), output); !fits)
      return std::move(fits).error().within(location);
    return add_operation(std::move(operation), output);
  }

  Result<std::size_t> append_residual(std::size_t number, const ParsedLayer& parsed,
                                      std::size_t value) {
    const std::string location = print_location(number, parsed);
    if (!parsed.spec.options.empty()) return Error{location + ": takes no options, only branches"};
    if (parsed.branches.empty())
      return Error{location + ": needs a branch in parentheses, like residual(dense 10)"};
    std::vector<std::size_t> terms;
    for (const auto& branch : parsed.branches) {
      auto output = append(branch, value);
      if (!output) return output;
      terms.push_back(*output);
    }
    const bool adds_input = terms.size() == 1;
    if (adds_input) terms.push_back(value);
    for (const std::size_t term : terms)
      if (shape(term) != shape(terms[0]))
        return Error{location + ": its " + (adds_input ? "branch makes " : "branches make ") +
                     print_shape(shape(terms[0])) + " and " + (adds_input ? "its input is " : "") +
                     print_shape(shape(term)) + ", which cannot be added"};
    const Shape sum = shape(terms[0]);
    return add_operation({.layer = nullptr, .inputs = std::move(terms)}, sum);
  }

  /// Returns the number of the value that the operation computes.
  std::size_t add_operation(Operation<T> operation, const Shape& output) {
    for (const std::size_t input : operation.inputs) ++read_counts_[input];
    operation.output = add_value(output);
    plan_.operations_.push_back(std::move(operation));
    return plan_.operations_.back().output;
  }

  /// Returns the number of the new value.
  std::size_t add_value(const Shape& shape) {
    plan_.values_.push_back({shape, no_block});
    read_counts_.push_back(0);
    is_guarded_.push_back(plan_.values_.size() == 1);
    return plan_.values_.size() - 1;
  }

  [[nodiscard]] const Shape& shape(std::size_t value) const { return plan_.values_[value].shape; }

  /// Lets the output use the memory of the input, if no other operation and no backward pass reads
  /// the input.
  void choose_in_place(Operation<T>& operation) {
    const std::size_t input = operation.inputs[0];
    const bool can_work_in_place = operation.layer == nullptr || operation.layer->works_in_place();
    operation.in_place = can_work_in_place && read_counts_[input] == 1 && !is_guarded_[input];
    is_guarded_[operation.output] = operation.layer != nullptr && operation.layer->reads_output();
  }

  /// Assigns blocks to the derivatives, in the order of the backward pass.
  void assign_blocks() {
    Value& last = plan_.values_.back();
    last.block = allocate_block(last);
    for (auto operation = plan_.operations_.rbegin(); operation != plan_.operations_.rend();
         ++operation) {
      const std::size_t output_block = plan_.values_[operation->output].block;
      STARLING_CHECK(output_block != no_block);
      for (const std::size_t input : operation->inputs)
        assign_input_block(*operation, input, output_block);
      if (!operation->in_place) free_blocks_.push_back(output_block);
    }
  }

  void assign_input_block(Operation<T>& operation, std::size_t input, std::size_t output_block) {
    Value& value = plan_.values_[input];
    operation.adds_derivative.push_back(value.block != no_block);
    if (operation.adds_derivative.back()) {
      if (operation.layer == nullptr || input == 0) return;
      operation.spare_block = allocate_block(value);
      free_blocks_.push_back(operation.spare_block);
    } else {
      value.block =
          operation.in_place && input == operation.inputs[0] ? output_block : allocate_block(value);
    }
    widen(value.block, value);
  }

  /// Returns a free block, or a new one, enlarged to hold `value`.
  std::size_t allocate_block(const Value& value) {
    if (free_blocks_.empty()) {
      free_blocks_.push_back(plan_.block_sizes_.size());
      plan_.block_sizes_.push_back(0);
    }
    const std::size_t block = free_blocks_.back();
    free_blocks_.pop_back();
    widen(block, value);
    return block;
  }

  /// Makes a block large enough for `value`.
  void widen(std::size_t block, const Value& value) {
    plan_.block_sizes_[block] = std::max(plan_.block_sizes_[block], volume(value.shape));
  }

  Plan plan_;
  /// The number of layers and of parameters so far.
  std::size_t layers_ = 0;
  std::size_t parameters_ = 0;
  /// For each value: how many operations read it.
  std::vector<std::size_t> read_counts_;
  /// For each value: true if no operation may overwrite it, because it is the input or a backward
  /// pass reads it.
  std::vector<bool> is_guarded_;
  std::vector<std::size_t> free_blocks_;
};

template <class T>
Result<Plan<T>> Plan<T>::make(const std::vector<ParsedLayer>& layers, const Shape& input) {
  Builder builder{input};
  if (auto output = builder.append(layers, 0); !output) return std::move(output).error();
  return std::move(builder).finish();
}

template <class T>
std::vector<Parameter> Plan<T>::parameters() const {
  std::vector<Parameter> list;
  for (const Operation<T>& operation : operations_) {
    if (operation.layer == nullptr) continue;
    for (Parameter parameter : operation.layer->parameters()) {
      parameter.name.insert(0, operation.name + ".");
      list.push_back(std::move(parameter));
    }
  }
  return list;
}

template class Plan<float>;
template class Plan<double>;

}  // namespace starling::models
