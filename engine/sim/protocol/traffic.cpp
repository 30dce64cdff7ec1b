#include "starling/engine/sim/protocol/traffic.hpp"

#include "starling/base/check.hpp"

namespace starling::sim {
namespace {

struct Kind {
  std::string_view name;
  /// Bytes of the fields that are always there.
  std::size_t bytes;
  bool barrier_control;
};

/// By alternative of core::Message.
constexpr std::array<Kind, message_kinds> kinds{{{"pull", 16, false},
                                                 {"value", 12, false},
                                                 {"push", 40, false},
                                                 {"ack", 12, false},
                                                 {"ended", 12, false},
                                                 {"arrived", 12, true},
                                                 {"proceed", 8, true},
                                                 {"stop", 0, false},
                                                 {"query", 12, true},
                                                 {"answer", 20, true},
                                                 {"notify", 20, true},
                                                 {"caught-up", 12, true},
                                                 {"snapshot", 16, false},
                                                 {"state", 36, false}}};

std::size_t bytes_of(const core::Rows& rows) { return rows ? 4 * rows->size() : 0; }

std::size_t bytes_of(const core::Slice& slice, std::size_t element_bytes) {
  return slice.count * element_bytes + bytes_of(slice.rows);
}

template <class M>
std::size_t variable_bytes(const M& message, std::size_t element_bytes) {
  if constexpr (std::is_same_v<M, core::Pull>)
    return bytes_of(message.rows);
  else if constexpr (std::is_same_v<M, core::Value>)
    return bytes_of(message.value, element_bytes);
  else if constexpr (std::is_same_v<M, core::Push>)
    return bytes_of(message.update, element_bytes);
  else if constexpr (std::is_same_v<M, core::RangeState>)
    return bytes_of(message.value, element_bytes) + bytes_of(message.slots, element_bytes) +
           message.ledger.size() * sizeof(core::LedgerEntry);
  else
    return 0;
}

}  // namespace

std::string_view kind_of_message(std::size_t index) {
  STARLING_CHECK(index < kinds.size());
  return kinds[index].name;
}

std::size_t bytes_of(const core::Message& message, std::size_t element_bytes) {
  return kinds[message.index()].bytes +
         std::visit([&](const auto& m) { return variable_bytes(m, element_bytes); }, message);
}

Traffic total(const TrafficByKind& traffic) {
  Traffic sum;
  for (const Traffic& one : traffic) sum += one;
  return sum;
}

Traffic barrier_control(const TrafficByKind& traffic) {
  Traffic sum;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i].barrier_control) sum += traffic[i];
  return sum;
}

}  // namespace starling::sim
