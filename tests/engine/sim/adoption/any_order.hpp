/// The adoption of configurations in an order that tests choose. any_order.cpp replaces
/// engine/core/training/adoption.cpp in the program that links it.
#pragma once

#include <string_view>

namespace starling::core {

/// The parts of an adoption, a letter each: [E]xchange, [C]oordinator, [H]old the worker, [W]orker,
/// report for the [D]ealer, [S]tatus for a new coordinator.
inline constexpr std::string_view adoption_order = "ECHWDS";

/// Lets all members adopt configurations in this order as long as it exists. A part whose letter is
/// missing does not adopt. Not for several threads.
class AdoptionOrder {
 public:
  explicit AdoptionOrder(std::string_view order);
  ~AdoptionOrder();
  AdoptionOrder(const AdoptionOrder&) = delete;
  AdoptionOrder& operator=(const AdoptionOrder&) = delete;
};

}  // namespace starling::core
