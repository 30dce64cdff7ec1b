#include "starling/models/net/net.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/models/net/layers.hpp"
#include "starling/models/net/named_nets.hpp"
#include "starling/models/net/net_passes.hpp"
#include "starling/models/tabular/batches.hpp"

namespace starling::models {
namespace {

/// Returns the kind of input that the first layer with a requirement needs; any if all layers
/// accept any input. Flatten counts as a layer that needs rows, because its output is a row.
InputKind required_input(const std::vector<ParsedLayer>& layers) {
  for (const ParsedLayer& layer : layers) {
    const auto kind = std::ranges::find(layer_kinds(), layer.spec.name, &LayerKind::name);
    if (layer.spec.name == "flatten") return InputKind::row;
    if (kind != layer_kinds().end() && kind->input != InputKind::any) return kind->input;
    for (const auto& branch : layer.branches)
      if (const InputKind inner = required_input(branch); inner != InputKind::any) return inner;
  }
  return InputKind::any;
}

/// A net needs dense rows gathered into a matrix, which RowReader does if it is told that the layer
/// has more than one output.
constexpr std::size_t outputs_for_gathering = 2;

/// Guesses the input's shape for a net that does not state it. `known` is the data's Table::image.
Result<Shape> guess_input(const std::vector<ParsedLayer>& layers, std::size_t features,
                          const Shape& known) {
  if (required_input(layers) != InputKind::image) return Shape{features};
  if (!known.empty() && volume(known) == features) return known;
  Shape image = guess_image(features);
  if (!image.empty()) return image;
  return Error{"the data's " + std::to_string(features) +
               " features are no square image; add input=HEIGHTxWIDTHxCHANNELS"};
}

}  // namespace

template <class T>
std::vector<ModelEntry> Net<T>::names() {
  std::vector<ModelEntry> list{{"net",
                                "layers of your own: net:layers=LAYERS[,input=HxWxC][,loss="
                                "softmax|squared|contrastive margin=1]"}};
  for (const NamedNet& net : named_nets()) list.push_back({net.name, net.summary});
  return list;
}

template <class T>
Result<Net<T>> Net<T>::parse(const Spec& spec, const Table& data) {
  SpecReader reader{spec};
  const std::size_t outputs = data.classes() == 0 ? 1 : data.classes();
  auto description = named_net(spec.name, outputs);
  const bool is_built_in = description.has_value();
  if (!is_built_in) {
    description.emplace();
    description->loss = reader.text("loss", "");
    auto layers = parse_layers(reader.text("layers", ""));
    if (layers) {
      description->layers = *std::move(layers);
    } else {
      reader.refuse(layers.error().message);
    }
  }
  if (const std::string input = reader.text("input", ""); !input.empty()) {
    auto shape = parse_shape(input);
    if (shape) {
      description->input = *std::move(shape);
    } else {
      reader.refuse("input=" + shape.error().message);
    }
  }
  if (auto done = reader.finish(); !done) return std::move(done).error();
  auto net = make(*description, data);
  if (!net) return std::move(net).error().within(spec.name);
  net->name_ = spec.name;
  return net;
}

template <class T>
Result<Net<T>> Net<T>::make(const NetDescription& description, const Table& data) {
  if (description.layers.empty())
    return Error{"a net needs layers; valid: names and options like dense 10, separated by ';'"};
  if (data.is_sparse()) return Error{"a net learns from dense rows, but the data has sparse ones"};
  Net net;
  net.features_ = data.features();
  net.classes_ = data.classes();
  net.description_ = description;
  if (auto done = net.set_loss(data); !done) return std::move(done).error();
  Shape& input = net.description_.input;
  if (input.empty()) {
    auto guess =
        guess_input(net.description_.layers, net.features_ / net.inputs_in_row_, data.image);
    if (!guess) return std::move(guess).error();
    input = *std::move(guess);
  }
  auto plan = Plan<T>::make(net.description_.layers, input);
  if (!plan) return std::move(plan).error();
  net.plan_ = std::make_shared<const Plan<T>>(*std::move(plan));
  if (auto fit = net.check_shapes(data); !fit) return std::move(fit).error();
  return net;
}

template <class T>
Result<void> Net<T>::set_loss(const Table& data) {
  if (description_.loss.empty()) description_.loss = data.classes() == 0 ? "squared" : "softmax";
  auto spec = parse_spaced(description_.loss);
  if (!spec) return std::move(spec).error().within("loss");
  SpecReader reader{*spec};
  const std::vector<std::string> names{"softmax", "squared", "contrastive"};
  if (spec->name == names[0]) {
    loss_ = Loss::softmax;
    if (data.classes() < 2)
      reader.refuse("needs 2 or more classes, but the data has " + describe_labels(data.classes()));
  } else if (spec->name == names[1]) {
    loss_ = Loss::squared;
    if (data.classes() > 0)
      reader.refuse("needs real targets, but the data has " + describe_labels(data.classes()));
  } else if (spec->name == names[2]) {
    loss_ = Loss::contrastive;
    margin_ = static_cast<T>(reader.number("margin", 1, 1e-6, 1e6));
    inputs_in_row_ = 2;
    if (data.classes() != 2)
      reader.refuse("needs 2 classes, alike or not, but the data has " +
                    describe_labels(data.classes()));
    else if (data.features() % 2 != 0)
      reader.refuse("needs two inputs a row, but the data has " + std::to_string(data.features()) +
                    " features");
  } else {
    return Error{"unknown loss " + quote(spec->name) + "; " + suggest(spec->name, names)};
  }
  if (auto done = reader.finish(); !done) return std::move(done).error().within("loss");
  return {};
}

template <class T>
Result<void> Net<T>::check_shapes(const Table& data) const {
  const std::size_t features = inputs_in_row_ * volume(description_.input);
  if (features != data.features())
    return Error{"its input " + print_shape(description_.input) + " needs " +
                 std::to_string(features) + " features, but the data has " +
                 std::to_string(data.features())};
  if (loss_ == Loss::contrastive) return {};
  const std::size_t required = loss_ == Loss::softmax ? data.classes() : 1;
  if (plan_->output() == Shape{required}) return {};
  return Error{
      "its last layer makes " + print_shape(plan_->output()) + ", but the data has " +
      describe_labels(data.classes()) + "; end with dense " + std::to_string(required) +
      (loss_ == Loss::squared ? ", or give the data task=class if its labels are classes" : "")};
}

template <class T>
std::string Net<T>::print() const {
  if (name_ == "net") return models::print(description_);
  const bool is_default = description_.input == guess_image(features_);
  return is_default ? name_ : name_ + ":input=" + print_shape(description_.input);
}

template <class T>
Net<T> Net<T>::with_engine(std::shared_ptr<const NetEngine<T>> engine) const {
  Net net = *this;
  net.engine_ = std::move(engine);
  return net;
}

template <class T>
void Net<T>::initialise(std::span<T> w, Random& random) const {
  for (const Operation<T>& operation : plan_->operations())
    if (operation.layer != nullptr)
      operation.layer->initialise(w.subspan(operation.parameters_start, operation.parameters_size),
                                  random);
}

template <class T>
Result<void> Net<T>::accepts_batch(std::size_t samples) const {
  if (inputs_in_row_ > 1 || samples % rows_at_once != 1) return {};
  for (const Operation<T>& operation : plan_->operations()) {
    if (operation.layer == nullptr) continue;
    const LayerSpecification specification = operation.layer->specification();
    const auto* norm = std::get_if<BatchNormSpecification>(&specification);
    if (norm != nullptr && volume(operation.layer->output()) == norm->channels)
      return Error{operation.name +
                   (samples == 1
                        ? ": one sample has no variance; valid: 2 or more samples a step, by a "
                          "larger batch, more data or fewer workers"
                        : ": " + std::to_string(samples) + " samples are computed " +
                              std::to_string(rows_at_once) +
                              " at a time, and the last one alone has no variance; valid: " +
                              std::to_string(samples - 1))};
  }
  return {};
}

template <class T>
Result<void> Net<T>::accepts(const Table& data) const {
  if (auto fit = check_data_shape(name_, {features_, classes_, false}, data); !fit) return fit;
  for (const Operation<T>& operation : plan_->operations()) {
    const auto parameters =
        operation.layer == nullptr ? std::vector<Parameter>{} : operation.layer->parameters();
    if (parameters.empty() || !parameters[0].row_sparse) continue;
    const std::size_t ids = parameters[0].shape[0];
    if (data.is_mapped())
      return Error{operation.name + ": ids cannot stay in a mapped file, where they may change; " +
                   "valid: data without mapped=yes"};
    for (std::size_t row = 0; row < data.size(); ++row)
      for (const float id : data.dense_row(row))
        if (!(id >= 0 && id < static_cast<float>(ids)) || id != std::floor(id))
          return Error{operation.name + ": row " + std::to_string(row + 1) + " of the data holds " +
                       print_number(static_cast<double>(id)) + ", which is no id from 0 to " +
                       std::to_string(ids - 1)};
  }
  return {};
}

template <class T>
double Net<T>::gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                        ComputeContext& context) const {
  if (batch.empty()) return 0;
  if (engine_ != nullptr)
    return squared_error_factor(data) * engine_->gradient(w, data, batch, g, context.random());
  const RowReader<T> reader{data, batch.size(), outputs_for_gathering, context.arena};
  const T weight = T{1} / static_cast<T>(batch.size());
  Accumulator sums;
  const Arena::Mark mark = context.arena.mark();
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    context.arena.rewind(mark);
    const Rows<T> x = reader.read(micro_batch);
    MicroBatchState state =
        forward(w, micro_batch.size(), {x.values, micro_batch.size() * features_}, context);
    allocate_derivatives(state, context.arena);
    sums += apply_loss(derivative(state, plan_->values().size() - 1), reader.labels(micro_batch),
                       weight);
    const std::size_t first = offset(batch, micro_batch);
    backward(w, state, weight * static_cast<T>(micro_batch.size()),
             {.is_first = first == 0, .is_last = first + micro_batch.size() == batch.size()}, g,
             context);
  });
  return squared_error_factor(data) * sums.loss / static_cast<double>(batch.size());
}

template <class T>
Metrics Net<T>::evaluate(std::span<const T> w, const Table& data, Batch batch,
                         ComputeContext& context) const {
  const Accumulator sums = engine_ != nullptr ? engine_->evaluate(w, data, batch, {})
                                              : accumulate(w, data, batch, context);
  return loss_ == Loss::squared ? mean_metrics<SquaredLoss>(sums, batch.size(), data)
                                : mean_metrics<SoftmaxLoss>(sums, batch.size(), data);
}

template <class T>
Accumulator Net<T>::accumulate(std::span<const T> w, const Table& data, Batch batch,
                               ComputeContext& context) const {
  const RowReader<T> reader{data, batch.size(), outputs_for_gathering, context.arena};
  Accumulator sums;
  const Arena::Mark mark = context.arena.mark();
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    context.arena.rewind(mark);
    const Rows<T> x = reader.read(micro_batch);
    const MicroBatchState state =
        forward(w, micro_batch.size(), {x.values, micro_batch.size() * features_}, context);
    sums += apply_loss(state.scores(), reader.labels(micro_batch), T{1});
  });
  return sums;
}

template <class T>
std::vector<TouchedRows> Net<T>::touched(const Table& data, Batch batch) const {
  std::vector<TouchedRows> touched_rows;
  const auto parameters = plan_->parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p].row_sparse) continue;
    std::vector<std::uint32_t> ids;
    for (const std::uint32_t row : batch)
      for (const float id : data.dense_row(row)) ids.push_back(static_cast<std::uint32_t>(id));
    touched_rows.push_back({.parameter = p, .rows = sort_unique(std::move(ids))});
  }
  return touched_rows;
}

template <class T>
void Net<T>::scores(std::span<const T> w, const Table& data, Batch batch, ComputeContext& context,
                    std::span<T> out) const {
  STARLING_CHECK(out.size() == batch.size() * outputs());
  if (engine_ != nullptr) {
    engine_->evaluate(w, data, batch, out);
    return;
  }
  const RowReader<T> reader{data, batch.size(), outputs_for_gathering, context.arena};
  const Arena::Mark mark = context.arena.mark();
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    context.arena.rewind(mark);
    const Rows<T> x = reader.read(micro_batch);
    const MicroBatchState state =
        forward(w, micro_batch.size(), {x.values, micro_batch.size() * features_}, context);
    std::ranges::copy(state.scores(), out.subspan(offset(batch, micro_batch) * outputs()).begin());
  });
}

template <class T>
void Net<T>::predict(std::span<const T> w, const Table& data, Batch batch, ComputeContext& context,
                     std::span<float> out) const {
  const std::span<T> all_scores = context.arena.allocate<T>(batch.size() * outputs());
  scores(w, data, batch, context, all_scores);
  if (loss_ == Loss::softmax) return decide_rows<SoftmaxLoss, T>(all_scores, out);
  if (loss_ == Loss::squared) return decide_rows<SquaredLoss, T>(all_scores, out);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = ContrastiveLoss::decide<T>(all_scores.subspan(i * outputs(), outputs()), margin_);
}

template <class T>
Recipe Net<T>::recipe() const {
  const bool has_ids = std::ranges::any_of(plan_->parameters(), &Parameter::row_sparse);
  return {.standardises = !has_ids && loss_ != Loss::contrastive};
}

template class Net<float>;
template class Net<double>;

}  // namespace starling::models
