#include "starling/models/optimizer/optimizer.hpp"

#include "starling/base/check.hpp"
#include "starling/models/kernels/multiversioning.hpp"

namespace starling::models {
namespace {

using Size = std::size_t;

/// The memory that an update reads and changes: `size` elements of w and g, and their slots. Each
/// slot is a tensor; the slots begin `slot_stride` elements apart, from `slots` on.
template <class T>
struct Memory {
  T* w;
  const T* g;
  T* slots;
  Size slot_stride;
  Size size;
};

template <class T, UpdateOf<T> Update>
STARLING_INLINE void update_elements(const Update update, const T l2, const Memory<T> memory) {
#pragma omp simd
  for (Size i = 0; i < memory.size; ++i)
    update(memory.g[i] + l2 * memory.w[i], memory.w[i],
           Slots<T>{memory.slots, memory.slot_stride, i});
}

/// Updates the elements by the optimiser that the variant holds. Does not use std::visit, because
/// the compiler would not inline its calls, so that STARLING_MULTIVERSION would have no effect on
/// them.
template <class T, OptimizerRule... Os>
STARLING_INLINE void update_by_alternative(const std::variant<Os...>& optimizer,
                                           const ApplyOptions& options, const Memory<T>& memory) {
  const auto run_if_chosen = [&](const auto* chosen) __attribute__((always_inline)) {
    if (chosen)
      update_elements(chosen->template make_update<T>(options), static_cast<T>(options.l2), memory);
  };
  (run_if_chosen(std::get_if<Os>(&optimizer)), ...);
}

STARLING_MULTIVERSION void update_by(const Optimizer& optimizer, const ApplyOptions& options,
                                     const Memory<float>& memory) {
  update_by_alternative(optimizer, options, memory);
}
STARLING_MULTIVERSION void update_by(const Optimizer& optimizer, const ApplyOptions& options,
                                     const Memory<double>& memory) {
  update_by_alternative(optimizer, options, memory);
}

}  // namespace

Result<Optimizer> parse_optimizer(std::string_view text) {
  return parse_alternative<Optimizer>("optimizer", text);
}

std::string print(const Optimizer& optimizer) { return print_alternative(optimizer); }

std::size_t slot_count(const Optimizer& optimizer) {
  return std::visit([](const auto& rule) { return rule.slot_count(); }, optimizer);
}

double learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& rule) { return rule.lr; }, optimizer);
}

template <class T>
void apply(const Optimizer& optimizer, std::span<T> w, std::span<const std::type_identity_t<T>> g,
           std::span<std::type_identity_t<T>> state, std::size_t slot_stride,
           const ApplyOptions& options) {
  const Size count = slot_count(optimizer);
  STARLING_CHECK(g.size() == w.size() && slot_stride >= w.size());
  STARLING_CHECK(count == 0 || state.size() >= (count - 1) * slot_stride + w.size());
  update_by(optimizer, options, Memory<T>{w.data(), g.data(), state.data(), slot_stride, w.size()});
}

template void apply<float>(const Optimizer&, std::span<float>, std::span<const float>,
                           std::span<float>, std::size_t, const ApplyOptions&);
template void apply<double>(const Optimizer&, std::span<double>, std::span<const double>,
                            std::span<double>, std::size_t, const ApplyOptions&);

}  // namespace starling::models
