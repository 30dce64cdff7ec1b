#include "starling/models/tabular/perceptron.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/tabular/batches.hpp"

namespace starling::models {
namespace {

constexpr std::size_t width_max = std::size_t{1} << 24U;

/// Reads "784-128-10" as numbers; returns no numbers if the text has another form.
std::vector<std::size_t> parse_widths(std::string_view text) {
  std::vector<std::size_t> widths;
  for (const std::string_view part : split(text, '-')) {
    const auto width = parse_count(part);
    if (!width || *width == 0 || *width > width_max) return {};
    widths.push_back(*width);
  }
  return widths;
}

std::string print_widths(const std::vector<std::size_t>& widths) {
  std::string text;
  for (const std::size_t width : widths) text += (text.empty() ? "" : "-") + std::to_string(width);
  return text;
}

/// Refuses widths that do not match the data; the error suggests widths that do.
Result<void> check_widths(std::vector<std::size_t> widths, const Table& data) {
  const std::string written = "mlp:" + print_widths(widths);
  const std::size_t outputs = data.classes() == 0 ? 1 : data.classes();
  const bool first_fits = widths.front() == data.features();
  const bool last_fits = widths.back() == outputs;
  widths.front() = data.features();
  widths.back() = outputs;
  const std::string suggestion = "; use mlp:" + print_widths(widths);
  if (!first_fits)
    return Error{written + " starts with another width than the data's " +
                 std::to_string(data.features()) + " features" + suggestion};
  if (last_fits) return {};
  if (data.classes() == 0)
    return Error{written + " must end with width 1 for real targets" + suggestion};
  return Error{written + " ends with another width than the data's " +
               describe_labels(data.classes()) + suggestion};
}

template <class T>
void activate(Activation activation, std::span<T> x) {
  if (activation == Activation::relu) {
    relu(x);
  } else {
    tanh(x);
  }
}

template <class T>
void activate_backward(Activation activation, std::span<const T> y, std::span<T> dy) {
  if (activation == Activation::relu) {
    relu_backward(y, dy);
  } else {
    tanh_backward(y, dy);
  }
}

}  // namespace

/// Scratch memory for one micro-batch.
template <class T>
struct Perceptron<T>::Workspace {
  RowReader<T> reader;
  /// The outputs of each layer but the last, after the activation.
  std::span<std::span<T>> hidden;
  /// The outputs of the last layer.
  std::span<T> last_outputs;
  /// The derivatives of the loss with respect to a layer's outputs, and to the outputs of the layer
  /// before it.
  std::span<T> derivatives;
  std::span<T> derivatives_before;
  /// True if the gradient is still zero, because nothing was added to it yet.
  bool is_gradient_zero = true;
};

template <class T>
Result<Perceptron<T>> Perceptron<T>::parse(const Spec& spec, const Table& data) {
  SpecReader reader{spec};
  Perceptron model;
  const std::string widths = reader.positional();
  const std::string activation = reader.text("activation", "relu");
  model.widths_ = parse_widths(widths);
  if (widths.empty()) {
    reader.refuse("needs its widths, e.g. mlp:784-128-10");
  } else if (model.widths_.size() < 2) {
    reader.refuse("'" + widths + "' is not a list of widths like 784-128-10");
  }
  if (activation != "relu" && activation != "tanh") {
    const std::array<std::string, 2> valid{"relu", "tanh"};
    reader.refuse("unknown activation '" + activation + "'; " + suggest(activation, valid));
  }
  if (auto done = reader.finish(); !done) return std::move(done).error();
  if (auto fit = check_widths(model.widths_, data); !fit) return std::move(fit).error();
  model.activation_ = activation == "relu" ? Activation::relu : Activation::tanh;
  model.classes_ = data.classes();
  model.is_sparse_ = data.is_sparse();
  std::size_t start = 0;
  for (std::size_t l = 0; l < model.layers(); ++l) {
    model.starts_.push_back(start);
    start += (model.widths_[l] + 1) * model.widths_[l + 1];
  }
  return model;
}

template <class T>
std::string Perceptron<T>::print() const {
  return "mlp:" + print_widths(widths_) +
         (activation_ == Activation::tanh ? ",activation=tanh" : "");
}

template <class T>
std::vector<Parameter> Perceptron<T>::parameters() const {
  std::vector<Parameter> list;
  for (std::size_t l = 0; l < layers(); ++l) {
    const std::string prefix = "layer" + std::to_string(l + 1);
    list.push_back({.name = prefix + ".weights",
                    .shape = {widths_[l], widths_[l + 1]},
                    .row_sparse = is_sparse_ && l == 0});
    list.push_back({.name = prefix + ".bias", .shape = {widths_[l + 1]}, .decay = false});
  }
  return list;
}

template <class T>
void Perceptron<T>::initialise(std::span<T> w, Random& random) const {
  for (std::size_t l = 0; l < layers(); ++l) {
    const Affine<T> affine = layer(w, l);
    const bool is_before_relu = activation_ == Activation::relu && l + 1 < layers();
    const double deviation = std::sqrt(2.0 / static_cast<double>(affine.inputs));
    const double limit = std::sqrt(6.0 / static_cast<double>(affine.inputs + affine.outputs));
    for (T& weight : affine.weights)
      weight =
          static_cast<T>(is_before_relu ? deviation * random.normal() : random.real(-limit, limit));
    std::ranges::fill(affine.bias, T{0});
  }
}

template <class T>
Result<void> Perceptron<T>::accepts(const Table& data) const {
  return check_data_shape(name, {widths_.front(), classes_, is_sparse_}, data);
}

template <class T>
typename Perceptron<T>::Workspace Perceptron<T>::make_workspace(const Table& data,
                                                                std::size_t batch_size,
                                                                Arena& arena) const {
  const std::size_t rows = std::min(batch_size, rows_at_once);
  const std::size_t widest_output = *std::max_element(widths_.begin() + 1, widths_.end());
  Workspace work{RowReader<T>{data, batch_size, widths_[1], arena},
                 arena.allocate<std::span<T>>(layers() - 1), arena.allocate<T>(rows * outputs()),
                 arena.allocate<T>(rows * widest_output), arena.allocate<T>(rows * widest_output)};
  for (std::size_t l = 0; l + 1 < layers(); ++l)
    std::construct_at(&work.hidden[l], arena.allocate<T>(rows * widths_[l + 1]));
  return work;
}

template <class T>
template <class U>
Affine<U> Perceptron<T>::layer(std::span<U> w, std::size_t l) const {
  return Affine<U>::from(w.subspan(starts_[l]), widths_[l], widths_[l + 1], true);
}

template <class T>
void Perceptron<T>::forward(std::span<const T> w, const Rows<T>& x, Workspace& work,
                            std::span<T> last_outputs) const {
  Rows<T> input = x;
  for (std::size_t l = 0; l + 1 < layers(); ++l) {
    const std::span<T> h = work.hidden[l].first(x.size * widths_[l + 1]);
    affine_forward(input, layer(w, l), h);
    activate(activation_, h);
    input = {.size = x.size, .values = h.data(), .table = nullptr, .batch = {}};
  }
  affine_forward(input, layer(w, layers() - 1), last_outputs);
}

template <class T>
void Perceptron<T>::backward(std::span<const T> w, const Rows<T>& x, Workspace& work,
                             std::span<const T> derivatives, std::span<T> g) const {
  for (std::size_t l = layers() - 1; l > 0; --l) {
    const std::span<const T> h = work.hidden[l - 1].first(x.size * widths_[l]);
    const Rows<T> input{.size = x.size, .values = h.data(), .table = nullptr, .batch = {}};
    affine_backward(input, derivatives, layer(g, l), work.is_gradient_zero);
    const std::span<T> before = work.derivatives_before.first(h.size());
    affine_input_gradient(derivatives, layer(w, l), before);
    activate_backward(activation_, h, before);
    std::swap(work.derivatives, work.derivatives_before);
    derivatives = before;
  }
  affine_backward(x, derivatives, layer(g, 0), work.is_gradient_zero);
  work.is_gradient_zero = false;
}

template <class T>
Accumulator Perceptron<T>::apply_loss(std::span<T> scores, std::span<const float> labels,
                                      T weight) const {
  return classes_ > 0 ? SoftmaxLoss::apply(scores, labels, weight)
                      : SquaredLoss::apply(scores, labels, weight);
}

template <class T>
double Perceptron<T>::gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                               ComputeContext& context) const {
  if (batch.empty()) return 0;
  Workspace work = make_workspace(data, batch.size(), context.arena);
  const T weight = T{1} / static_cast<T>(batch.size());
  Accumulator sums;
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    const Rows<T> x = work.reader.read(micro_batch);
    const std::span<T> z = work.last_outputs.first(micro_batch.size() * outputs());
    forward(w, x, work, z);
    sums += apply_loss(z, work.reader.labels(micro_batch), weight);
    backward(w, x, work, z, g);
  });
  return squared_error_factor(data) * sums.loss / static_cast<double>(batch.size());
}

template <class T>
Metrics Perceptron<T>::evaluate(std::span<const T> w, const Table& data, Batch batch,
                                ComputeContext& context) const {
  Workspace work = make_workspace(data, batch.size(), context.arena);
  Accumulator sums;
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    const std::span<T> z = work.last_outputs.first(micro_batch.size() * outputs());
    forward(w, work.reader.read(micro_batch), work, z);
    sums += apply_loss(z, work.reader.labels(micro_batch), T{1});
  });
  return classes_ > 0 ? mean_metrics<SoftmaxLoss>(sums, batch.size(), data)
                      : mean_metrics<SquaredLoss>(sums, batch.size(), data);
}

template <class T>
std::vector<TouchedRows> Perceptron<T>::touched(const Table& data, Batch batch) const {
  if (!is_sparse_) return {};
  return {{.parameter = 0, .rows = stored_columns(data, batch)}};
}

template <class T>
void Perceptron<T>::scores(std::span<const T> w, const Table& data, Batch batch,
                           ComputeContext& context, std::span<T> out) const {
  STARLING_CHECK(out.size() == batch.size() * outputs());
  Workspace work = make_workspace(data, batch.size(), context.arena);
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    forward(w, work.reader.read(micro_batch), work,
            out.subspan(offset(batch, micro_batch) * outputs(), micro_batch.size() * outputs()));
  });
}

template <class T>
void Perceptron<T>::predict(std::span<const T> w, const Table& data, Batch batch,
                            ComputeContext& context, std::span<float> out) const {
  const std::span<T> z = context.arena.allocate<T>(batch.size() * outputs());
  scores(w, data, batch, context, z);
  if (classes_ > 0) {
    decide_rows<SoftmaxLoss, T>(z, out);
  } else {
    decide_rows<SquaredLoss, T>(z, out);
  }
}

template class Perceptron<float>;
template class Perceptron<double>;

}  // namespace starling::models
