/// Holds a data set of any type, so that the program can train on tables and on data types of
/// users. Immutable; copies share the data. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"

namespace starling::program {

/// Data that can be divided into training and test samples: `select(rows)` returns these samples as
/// data of the same type.
template <class D>
concept DivisibleData = models::DataSet<D> &&
    requires(const D data, std::span<const std::uint32_t> rows) {
  { data.select(rows) } -> std::convertible_to<D>;
};

/// Data that knows the label of each sample.
template <class D>
concept LabelledData = models::DataSet<D> && requires(const D data) {
  { data.label(std::size_t{0}) } -> std::convertible_to<double>;
};

class AnyData {
 public:
  template <models::DataSet D>
  [[nodiscard]] static AnyData of(D data) {
    return AnyData{std::make_shared<const Holder<D>>(std::move(data))};
  }

  [[nodiscard]] std::size_t size() const { return held_->size(); }

  /// Returns the data as a D; null if it is of another type.
  template <class D>
  [[nodiscard]] const D* as() const noexcept {
    const auto* holder = dynamic_cast<const Holder<D>*>(held_.get());
    return holder == nullptr ? nullptr : &holder->data;
  }

  [[nodiscard]] const models::Table* table() const noexcept { return as<models::Table>(); }

  [[nodiscard]] bool is_divisible() const { return held_->is_divisible(); }
  /// Returns the samples `rows` as a data set. Requires: is_divisible(), each row < size().
  [[nodiscard]] AnyData select(std::span<const std::uint32_t> rows) const {
    return held_->select(rows);
  }

  /// Returns the label of the sample `row`; nothing if the data has no labels. Requires: `row` <
  /// size().
  [[nodiscard]] std::optional<double> label(std::size_t row) const { return held_->label(row); }

 private:
  struct Base {
    virtual ~Base() = default;
    [[nodiscard]] virtual std::size_t size() const = 0;
    [[nodiscard]] virtual bool is_divisible() const = 0;
    [[nodiscard]] virtual AnyData select(std::span<const std::uint32_t> rows) const = 0;
    [[nodiscard]] virtual std::optional<double> label(std::size_t row) const = 0;
  };

  template <class D>
  struct Holder final : Base {
    explicit Holder(D d) : data(std::move(d)) {}
    [[nodiscard]] std::size_t size() const override { return data.size(); }
    [[nodiscard]] bool is_divisible() const override { return DivisibleData<D>; }
    [[nodiscard]] AnyData select(std::span<const std::uint32_t> rows) const override {
      if constexpr (DivisibleData<D>) {
        return of<D>(data.select(rows));
      } else {
        (void)rows;
        STARLING_CHECK(false && "data that cannot be divided");
      }
    }
    [[nodiscard]] std::optional<double> label(std::size_t row) const override {
      if constexpr (std::is_same_v<D, models::Table>)
        if (!data.has_labels) return std::nullopt;
      if constexpr (LabelledData<D>) return static_cast<double>(data.label(row));
      (void)row;
      return std::nullopt;
    }
    D data;
  };

  explicit AnyData(std::shared_ptr<const Base> held) : held_(std::move(held)) {}

  std::shared_ptr<const Base> held_;
};

}  // namespace starling::program
