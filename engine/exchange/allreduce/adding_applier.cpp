#include "starling/engine/exchange/allreduce/adding_applier.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace starling::core {
namespace {

/// Adds the changes of copies. averages_rounds() says if the caller must pass their mean.
template <class T>
class AddingApplier final : public Applier {
 public:
  explicit AddingApplier(bool averages) : averages_(averages) {}

  [[nodiscard]] std::size_t element_bytes() const noexcept override { return sizeof(T); }
  [[nodiscard]] std::size_t slot_count() const noexcept override { return 0; }
  [[nodiscard]] double weight(std::uint32_t, std::size_t) const noexcept override { return 1; }
  void apply(const Layout& layout, RangeId range, RangeValues& values, const Slice& update,
             double weight) const override {
    adding_->apply(layout, range, values, update, weight);
  }
  void apply_round(const Layout& layout, RangeId range, RangeValues& values,
                   std::span<const RoundPart> round, RoundScratch& scratch) const override {
    adding_->apply_round(layout, range, values, round, scratch);
  }
  [[nodiscard]] bool averages_rounds() const noexcept override { return averages_; }

 private:
  bool averages_;
  ApplierPtr adding_ =
      merge_applier<T>([](const MergeTarget&, std::span<T> value, std::span<const T> change) {
        std::ranges::transform(value, change, value.begin(), std::plus<>{});
      });
};

}  // namespace

ApplierPtr adding_applier(const Applier& applier) {
  if (applier.element_bytes() == sizeof(float))
    return std::make_shared<AddingApplier<float>>(applier.averages_rounds());
  return std::make_shared<AddingApplier<double>>(applier.averages_rounds());
}

Slice change_between(const Buffer& before, const Buffer& after) {
  auto change = Buffer::make(after.size(), after.element_bytes());
  const auto subtract = [&]<class T>(std::span<const T> from) {
    std::ranges::transform(from, before.as<T>(), change->template as<T>().begin(), std::minus<>{});
  };
  if (after.element_bytes() == sizeof(float))
    subtract(after.as<float>());
  else
    subtract(after.as<double>());
  return {std::move(change), 0, after.size(), nullptr};
}

}  // namespace starling::core
