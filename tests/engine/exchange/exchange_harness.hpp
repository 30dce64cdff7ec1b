/// Runs an exchange in which every worker has the whole model, message by message.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/exchange.hpp"

namespace starling::core {

/// Returns the message of an error; empty if there is none.
inline std::string message_of(const Result<void>& result) {
  return result.ok() ? "" : result.error().message;
}

/// The first members work; members that a test adds join. Each range has one element, to which each
/// update adds 1. T is the type of the elements.
template <class E, class T = double>
class ExchangeHarness : public testing::Test {
 protected:
  using Context = typename E::Context;
  using Effect = ExchangeEffect<typename Context::Messages>;
  using Sent = SendToMember<typename Context::Messages>;
  struct InFlight {
    MemberId from;
    Sent sent;
  };

  ExchangeHarness() { start(1, 3); }

  /// Starts a job of `workers` workers with `ranges` ranges.
  void start(std::size_t ranges, MemberId workers) {
    configuration_ = {};
    configuration_.epoch = 1;
    for (MemberId id = 0; id < workers; ++id) {
      configuration_.members.push_back({id, 1, true, true});
      configuration_.council.push_back(id);
    }
    start(ranges);
  }
  /// Starts the job anew with this number of ranges.
  void start(std::size_t ranges) {
    std::vector<models::Parameter> parameters;
    for (std::size_t r = 0; r < ranges; ++r)
      parameters.push_back({.name = std::to_string(r), .shape = {1}, .row_sparse = true});
    layout_ = std::make_shared<const Layout>(make_layout(std::move(parameters), sizeof(T), 1));
    ASSERT_EQ(layout_->ranges.size(), ranges);
    exchanges_.clear();
    epochs_.clear();
    in_flight_.clear();
    for (const Member& member : configuration_.members) adopt(member.id);
  }

  E& exchange(MemberId id) {
    const auto known = exchanges_.find(id);
    if (known != exchanges_.end()) return known->second;
    ExchangeOptions options;
    options.name = name_;
    options.self = {id, 1, true, true};
    options.layout = layout_;
    options.applier = applier_;
    options.workers = 3;
    options.workers_max = 128;
    options.window = window_;
    options.rounds_to_bf16 = rounds_to_bf16_;
    options.initial_states =
        std::make_shared<const std::vector<RangeState>>(initial_states(initial_of(id)));
    return exchanges_.emplace(id, E{options}).first->second;
  }

  [[nodiscard]] std::vector<RangeState> initial_states(double initial = 0) const {
    std::vector<RangeState> states;
    for (RangeId r = 0; r < layout_->ranges.size(); ++r) {
      auto value = Buffer::make<T>(1);
      value->template as<T>()[0] = static_cast<T>(initial);
      states.push_back({.range = r,
                        .value = {std::move(value), 0, 1, nullptr},
                        .slots = {},
                        .ledger = r == 0 && first_ledger_ ? *first_ledger_ : initial_ledger_});
    }
    return states;
  }

  template <class Event>
  void run(MemberId id, Event event) {
    ExchangeEffects<typename Context::Messages> effects;
    event(exchange(id), Context{time_, random_, effects});
    for (Effect& effect : effects) {
      if (auto* sent = std::get_if<Sent>(&effect))
        in_flight_.push_back({id, *sent});
      else if (std::holds_alternative<Written>(effect))
        ++written_[id];
      else if (auto* read = std::get_if<ReadDone>(&effect))
        reads_[id] = read->values.at(0).value.template as<T>()[0];
      else if (const auto* timer = std::get_if<SetTimer>(&effect))
        timer_at_ = timer->at;
      else if (const auto* failure = std::get_if<Fail>(&effect))
        failure_ = failure->why;
    }
  }
  void adopt(MemberId id) {
    run(id, [&](auto& e, const auto& c) {
      e.on_configuration(c, std::make_shared<const Configuration>(configuration_), epochs_[id]);
    });
    epochs_[id] = configuration_.epoch;
  }
  void write(MemberId id, Step step) { write(id, step, 1); }
  /// Each range's update is `change`.
  void write(MemberId id, Step step, double change) {
    auto one = Buffer::make<T>(1);
    one->template as<T>()[0] = static_cast<T>(change);
    Update update{.parts = {}, .samples = 1, .loss = losses_[id]};
    const std::shared_ptr<const Buffer> shared = std::move(one);
    for (RangeId r = 0; r < layout_->ranges.size(); ++r)
      update.parts.push_back({r, {shared, 0, 1, nullptr}});
    run(id, [&](auto& e, const auto& c) { e.write(c, {step, std::move(update), step}); });
  }
  void read(MemberId id, Step step) {
    run(id, [&](auto& e, const auto& c) { e.read(c, {step, std::nullopt}); });
  }
  /// Delivers a message.
  void deliver(const InFlight& message) {
    run(message.sent.to, [&](auto& e, const auto& c) {
      std::visit(
          [&]<class M>(const M& m) {
            if constexpr (std::is_same_v<M, Ended>)
              e.on(c, m);
            else if constexpr (requires { e.on(c, message.from, std::make_shared<const M>(m)); })
              (void)e.on(c, message.from, std::make_shared<const M>(m));
            else
              (void)e.on(c, message.from, m);
          },
          message.sent.message);
    });
  }
  /// Delivers a random message. Messages from one member to another arrive in order.
  void deliver_one_in_order() {
    const InFlight drawn = in_flight_[random_.below(in_flight_.size())];
    const auto first = std::ranges::find_if(in_flight_, [&](const InFlight& message) {
      return message.from == drawn.from && message.sent.to == drawn.sent.to;
    });
    const InFlight message = *first;
    in_flight_.erase(first);
    deliver(message);
  }
  /// Delivers the messages to `to` that are in flight now.
  void deliver(MemberId to) {
    for (InFlight& message : std::exchange(in_flight_, {})) {
      if (message.sent.to == to)
        deliver(message);
      else
        in_flight_.push_back(std::move(message));
    }
  }
  void drop_messages_of(MemberId from) {
    std::erase_if(in_flight_, [&](const InFlight& message) { return message.from == from; });
  }
  void remove(MemberId id) {
    ++configuration_.epoch;
    std::erase_if(configuration_.members, [&](const Member& member) { return member.id == id; });
    configuration_.departed.push_back({id, 1});
  }
  void add(MemberId id) {
    ++configuration_.epoch;
    configuration_.members.push_back({id, 1, true, true});
  }
  double sum(MemberId id, RangeId range = 0) { return exchange(id).template copy<T>(range)[0]; }
  /// Returns how many messages of a type are in flight from a member to another.
  template <class M>
  [[nodiscard]] std::ptrdiff_t in_flight(MemberId from, MemberId to) const {
    return std::ranges::count_if(in_flight_, [&](const InFlight& message) {
      return message.from == from && message.sent.to == to &&
             std::holds_alternative<M>(message.sent.message);
    });
  }
  /// The element with which a worker starts.
  [[nodiscard]] virtual double initial_of(MemberId) const { return 0; }

  std::string name_{E::name};
  ApplierPtr applier_ =
      merge_applier<double>([](const auto&, auto value, auto update) { value[0] += update[0]; });
  std::shared_ptr<const Layout> layout_;
  std::vector<LedgerEntry> initial_ledger_;
  /// The initial ledger of range 0, if it differs from that of the others.
  std::optional<std::vector<LedgerEntry>> first_ledger_;
  bool rounds_to_bf16_ = false;
  std::size_t window_ = 64;
  Configuration configuration_;
  std::map<MemberId, E> exchanges_;
  std::map<MemberId, Epoch> epochs_;
  std::vector<InFlight> in_flight_;
  std::map<MemberId, int> written_;
  std::map<MemberId, double> reads_;
  /// The loss of each worker's steps; 0 if it is not set.
  std::map<MemberId, double> losses_;
  Time time_{};
  Time timer_at_{};
  std::string failure_;
  Random random_{1};
};

}  // namespace starling::core
