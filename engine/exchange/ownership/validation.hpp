/// Checks the messages of the ownership exchange before the exchange handles them. Pure functions;
/// thread-safe.
#pragma once

#include "starling/engine/exchange/ownership/messages.hpp"

namespace starling::core {

// Each returns true if the sender may send the message.
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Pull& pull);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Value& value);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Push& push);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Ack& ack);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Install& install);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Forward& forward);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const Held& held);

}  // namespace starling::core
