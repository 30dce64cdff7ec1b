/// A value or an error. Every function of Starling that can fail returns a Result; exceptions are
/// for failures that no caller can handle. Plain values; any thread.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace starling {

/// A failure in one sentence, which names the bad value, its location, and valid values.
struct Error {
  std::string message;

  /// Returns the same error with its location or context in front: "CONTEXT: MESSAGE".
  Error within(std::string_view context) && {
    message.insert(0, std::string{context} + ": ");
    return std::move(*this);
  }
};

/// Either a value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }

  /// Requires: ok(). A violated precondition ends the program with the error's message.
  T& value() & {
    require();
    return std::get<0>(state_);
  }
  const T& value() const& {
    require();
    return std::get<0>(state_);
  }
  /// By value, so that `for (auto& one : f().value())` reads no destroyed object.
  T value() && {
    require();
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Requires: !ok().
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  void require() const {
    if (ok()) return;
    std::fprintf(stderr, "starling: a failed result was used as a value: %s\n",
                 error().message.c_str());
    std::abort();
  }

  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const noexcept { return !error_; }
  [[nodiscard]] bool ok() const noexcept { return !error_; }
  /// Requires: !ok().
  [[nodiscard]] const Error& error() const& { return *error_; }
  [[nodiscard]] Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace starling
