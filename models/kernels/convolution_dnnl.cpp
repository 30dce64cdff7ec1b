#include "starling/models/kernels/convolution_dnnl.hpp"

#include "starling/base/check.hpp"

#ifdef STARLING_HAS_DNNL
#include <algorithm>
#include <dnnl.hpp>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/models/kernels/kernels.hpp"
#include "starling/models/kernels/one_thread.hpp"

namespace starling::models {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  return engine;
}

memory::dim dim(std::size_t extent) { return static_cast<memory::dim>(extent); }

/// Describes the memory layout of a tensor; Tag::any lets oneDNN choose the layout.
memory::desc desc(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

/// A ConvolutionShape and batch size in oneDNN's types.
struct Geometry {
  memory::dims x;
  memory::dims w;
  memory::dims b;
  memory::dims y;
  memory::dims strides;
  memory::dims padding;

  Geometry(const ConvolutionShape& s, std::size_t n)
      : x{dim(n), dim(s.channels), dim(s.height), dim(s.width)},
        w{dim(s.outputs), dim(s.channels), dim(s.kernel), dim(s.kernel)},
        b{dim(s.outputs)},
        y{dim(n), dim(s.outputs), dim(s.out_height()), dim(s.out_width())},
        strides{dim(s.stride), dim(s.stride)},
        padding{dim(s.padding), dim(s.padding)} {}

  [[nodiscard]] memory::desc image() const { return desc(x, Tag::nhwc); }
  [[nodiscard]] memory::desc result() const { return desc(y, Tag::nhwc); }
  /// The weights in the layout that oneDNN chooses.
  [[nodiscard]] memory::desc free_weights() const { return desc(w, Tag::any); }
  /// The weights in the layout of the parameter vector.
  [[nodiscard]] memory::desc stored_weights() const { return desc(w, Tag::hwio); }
  [[nodiscard]] memory::desc bias() const { return desc(b, Tag::x); }
};

/// Returns attributes of a primitive whose scratchpad the caller provides.
dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// Plans a primitive: makes oneDNN's primitive descriptor. `arguments` are the arguments that
/// versions 2 and 3 of oneDNN have in common, in oneDNN's order. `hint` is the plan of the forward
/// primitive if the planned primitive is a backward one, else absent.
template <class Primitive, class... Arguments, class... Hint>
typename Primitive::primitive_desc make_plan(const std::tuple<Arguments...>& arguments,
                                             const Hint&... hint) {
#if DNNL_VERSION_MAJOR < 3
  return {std::make_from_tuple<typename Primitive::desc>(arguments), user_scratchpad(),
          cpu_engine(), hint...};
#else
  return std::make_from_tuple<typename Primitive::primitive_desc>(std::tuple_cat(
      std::tie(cpu_engine()), arguments, std::tie(hint...), std::tuple{user_scratchpad()}));
#endif
}

constexpr auto direct = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc plan_forward(const Geometry& g) {
  return make_plan<dnnl::convolution_forward>(
      std::tuple{dnnl::prop_kind::forward_training, direct, g.image(), g.free_weights(), g.bias(),
                 g.result(), g.strides, g.padding, g.padding});
}

dnnl::convolution_backward_weights::primitive_desc plan_backward_weights(const Geometry& g) {
  return make_plan<dnnl::convolution_backward_weights>(
      std::tuple{direct, g.image(), g.free_weights(), g.bias(), g.result(), g.strides, g.padding,
                 g.padding},
      plan_forward(g));
}

dnnl::convolution_backward_data::primitive_desc plan_backward_input(const Geometry& g) {
  return make_plan<dnnl::convolution_backward_data>(
      std::tuple{direct, g.image(), g.free_weights(), g.result(), g.strides, g.padding, g.padding},
      plan_forward(g));
}

dnnl::reorder::primitive_desc plan_reorder(const memory::desc& from, const memory::desc& to) {
  return {cpu_engine(), from, cpu_engine(), to, user_scratchpad()};
}

/// A primitive with the layouts of its arguments. run() sets the memory of the arguments and
/// executes the primitive. The last argument is the primitive's scratchpad, which run() allocates
/// in the arena.
class BoundPrimitive {
 public:
  using Arguments = std::initializer_list<std::pair<int, memory::desc>>;

  template <class Plan, class Primitive>
  static BoundPrimitive make(const Plan& plan, const Primitive& primitive, Arguments arguments) {
    return BoundPrimitive{primitive, arguments, plan.scratchpad_desc()};
  }

  void run(const dnnl::stream& stream, std::initializer_list<const void*> data, Arena& arena) {
    STARLING_CHECK(data.size() + 1 == memories_.size());
    std::size_t i = 0;
    for (const void* start : data) memories_[i++].set_data_handle(const_cast<void*>(start));
    memories_[i].set_data_handle(arena.allocate<std::byte>(scratchpad_bytes_).data());
    const auto status = dnnl_primitive_execute(
        primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data());
    STARLING_CHECK(status == dnnl_success);
  }

 private:
  BoundPrimitive(dnnl::primitive primitive, Arguments arguments, const memory::desc& scratchpad)
      : primitive_(std::move(primitive)), scratchpad_bytes_(scratchpad.get_size()) {
    for (const auto& [argument, description] : arguments) add(argument, description);
    add(DNNL_ARG_SCRATCHPAD, scratchpad);
  }

  void add(int argument, const memory::desc& description) {
    memories_.emplace_back(description, cpu_engine(), static_cast<void*>(nullptr));
    arguments_.push_back({argument, memories_.back().get()});
  }

  dnnl::primitive primitive_;
  std::vector<memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::size_t scratchpad_bytes_;
};

/// A convolution primitive, and the primitive that converts the weights between the layout of the
/// parameter vector and the layout that oneDNN has chosen (packed).
struct PrimitivePair {
  BoundPrimitive reorder;
  BoundPrimitive convolution;
  /// The size of the packed weights.
  std::size_t packed_floats;
};

/// The primitives for batches of n samples, for one thread at a time. Each primitive is made at its
/// first use.
class PrimitiveSet {
 public:
  PrimitiveSet(const ConvolutionShape& shape, std::size_t n)
      : n_(n), geometry_(shape, n), stream_(cpu_engine()) {}

  [[nodiscard]] std::size_t n() const { return n_; }

  void forward(const float* x, const float* w, const float* b, float* y, Arena& arena) {
    if (!forward_) forward_ = make_forward();
    auto& [reorder, convolution, packed_floats] = *forward_;
    const auto packed = arena.allocate<float>(packed_floats);
    reorder.run(stream_, {w, packed.data()}, arena);
    convolution.run(stream_, {x, packed.data(), b, y}, arena);
  }

  void backward_weights(const float* x, const float* dy, std::span<float> dw, std::span<float> db,
                        Arena& arena) {
    if (!backward_weights_) backward_weights_ = make_backward_weights();
    auto& [reorder, convolution, packed_floats] = *backward_weights_;
    const auto packed = arena.allocate<float>(packed_floats);
    const auto new_dw = arena.allocate<float>(dw.size());
    const auto new_db = arena.allocate<float>(static_cast<std::size_t>(geometry_.b[0]));
    convolution.run(stream_, {x, dy, packed.data(), new_db.data()}, arena);
    reorder.run(stream_, {packed.data(), new_dw.data()}, arena);
    axpy<float, float>(1, new_dw, dw);
    if (!db.empty()) axpy<float, float>(1, new_db, db);
  }

  void backward_input(const float* dy, const float* w, float* dx, Arena& arena) {
    if (!backward_input_) backward_input_ = make_backward_input();
    auto& [reorder, convolution, packed_floats] = *backward_input_;
    const auto packed = arena.allocate<float>(packed_floats);
    reorder.run(stream_, {w, packed.data()}, arena);
    convolution.run(stream_, {dy, packed.data(), dx}, arena);
  }

 private:
  static std::size_t count_floats(const memory::desc& d) { return d.get_size() / sizeof(float); }

  [[nodiscard]] static BoundPrimitive make_reorder(const memory::desc& from,
                                                   const memory::desc& to) {
    const auto plan = plan_reorder(from, to);
    return BoundPrimitive::make(plan, dnnl::reorder{plan},
                                {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  [[nodiscard]] PrimitivePair make_forward() const {
    const auto plan = plan_forward(geometry_);
    const auto packed = plan.weights_desc();
    return {make_reorder(geometry_.stored_weights(), packed),
            BoundPrimitive::make(plan, dnnl::convolution_forward{plan},
                                 {{DNNL_ARG_SRC, geometry_.image()},
                                  {DNNL_ARG_WEIGHTS, packed},
                                  {DNNL_ARG_BIAS, geometry_.bias()},
                                  {DNNL_ARG_DST, geometry_.result()}}),
            count_floats(packed)};
  }

  [[nodiscard]] PrimitivePair make_backward_weights() const {
    const auto plan = plan_backward_weights(geometry_);
    const auto packed = plan.diff_weights_desc();
    return {make_reorder(packed, geometry_.stored_weights()),
            BoundPrimitive::make(plan, dnnl::convolution_backward_weights{plan},
                                 {{DNNL_ARG_SRC, geometry_.image()},
                                  {DNNL_ARG_DIFF_DST, geometry_.result()},
                                  {DNNL_ARG_DIFF_WEIGHTS, packed},
                                  {DNNL_ARG_DIFF_BIAS, geometry_.bias()}}),
            count_floats(packed)};
  }

  [[nodiscard]] PrimitivePair make_backward_input() const {
    const auto plan = plan_backward_input(geometry_);
    const auto packed = plan.weights_desc();
    return {make_reorder(geometry_.stored_weights(), packed),
            BoundPrimitive::make(plan, dnnl::convolution_backward_data{plan},
                                 {{DNNL_ARG_DIFF_DST, geometry_.result()},
                                  {DNNL_ARG_WEIGHTS, packed},
                                  {DNNL_ARG_DIFF_SRC, geometry_.image()}}),
            count_floats(packed)};
  }

  std::size_t n_;
  Geometry geometry_;
  dnnl::stream stream_;
  std::optional<PrimitivePair> forward_;
  std::optional<PrimitivePair> backward_weights_;
  std::optional<PrimitivePair> backward_input_;
};

}  // namespace

/// Keeps the primitive sets that no thread uses.
class DnnlConvolution::Pool {
 public:
  explicit Pool(const ConvolutionShape& shape) : shape_(shape) { idle_.reserve(idle_max); }

  [[nodiscard]] const ConvolutionShape& shape() const { return shape_; }

  /// Calls `use` with a primitive set for batches of n samples that no other thread uses.
  void use_primitives(std::size_t n, auto use) {
    const OneThread one_thread;
    auto primitives = acquire(n);
    use(*primitives);
    release(std::move(primitives));
  }

 private:
  /// The largest number of idle sets. Usually there are fewer: at most one for each thread and
  /// batch size. If there would be more, the pool destroys the set that has been idle longest.
  static constexpr std::size_t idle_max = 64;

  /// Removes an idle set from the pool and returns it; makes a new one if none is idle.
  std::unique_ptr<PrimitiveSet> acquire(std::size_t n) {
    {
      const std::scoped_lock lock{mutex_};
      const auto found =
          std::ranges::find_if(idle_, [n](const auto& set) { return set->n() == n; });
      if (found != idle_.end()) {
        auto primitives = std::move(*found);
        idle_.erase(found);
        return primitives;
      }
    }
    return std::make_unique<PrimitiveSet>(shape_, n);
  }

  void release(std::unique_ptr<PrimitiveSet> primitives) {
    const std::scoped_lock lock{mutex_};
    if (idle_.size() == idle_max) idle_.erase(idle_.begin());
    idle_.push_back(std::move(primitives));
  }

  ConvolutionShape shape_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PrimitiveSet>> idle_;
};

std::shared_ptr<const DnnlConvolution> DnnlConvolution::make(const ConvolutionShape& shape) {
  try {
    const Geometry geometry{shape, 1};
    (void)plan_forward(geometry);
    (void)plan_backward_weights(geometry);
    (void)plan_backward_input(geometry);
    return std::make_shared<const DnnlConvolution>(shape);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

DnnlConvolution::DnnlConvolution(const ConvolutionShape& shape)
    : pool_(std::make_unique<Pool>(shape)) {}
DnnlConvolution::~DnnlConvolution() = default;

void DnnlConvolution::forward(std::size_t n, std::span<const float> x, std::span<const float> w,
                              std::span<const float> b, std::span<float> y, Arena& arena) const {
  if (n == 0) return;
  std::span<const float> bias = b;
  if (b.empty()) {
    const auto zeros = arena.allocate<float>(pool_->shape().outputs);
    std::ranges::fill(zeros, 0.0F);
    bias = zeros;
  }
  pool_->use_primitives(n, [&](PrimitiveSet& primitives) {
    primitives.forward(x.data(), w.data(), bias.data(), y.data(), arena);
  });
}

void DnnlConvolution::backward_weights(std::size_t n, std::span<const float> x,
                                       std::span<const float> dy, std::span<float> dw,
                                       std::span<float> db, Arena& arena) const {
  if (n == 0) return;
  pool_->use_primitives(n, [&](PrimitiveSet& primitives) {
    primitives.backward_weights(x.data(), dy.data(), dw, db, arena);
  });
}

void DnnlConvolution::backward_input(std::size_t n, std::span<const float> dy,
                                     std::span<const float> w, std::span<float> dx,
                                     Arena& arena) const {
  if (n == 0) return;
  pool_->use_primitives(n, [&](PrimitiveSet& primitives) {
    primitives.backward_input(dy.data(), w.data(), dx.data(), arena);
  });
}

}  // namespace starling::models

#else

namespace starling::models {

class DnnlConvolution::Pool {};

std::shared_ptr<const DnnlConvolution> DnnlConvolution::make(const ConvolutionShape&) { return {}; }
DnnlConvolution::~DnnlConvolution() = default;
void DnnlConvolution::forward(std::size_t, std::span<const float>, std::span<const float>,
                              std::span<const float>, std::span<float>, Arena&) const {
  STARLING_CHECK(false && "oneDNN is absent");
}
void DnnlConvolution::backward_weights(std::size_t, std::span<const float>, std::span<const float>,
                                       std::span<float>, std::span<float>, Arena&) const {
  STARLING_CHECK(false && "oneDNN is absent");
}
void DnnlConvolution::backward_input(std::size_t, std::span<const float>, std::span<const float>,
                                     std::span<float>, Arena&) const {
  STARLING_CHECK(false && "oneDNN is absent");
}

}  // namespace starling::models
#endif
