#include "tests/engine/core/print.hpp"

#include "starling/base/text.hpp"

namespace starling::core {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

/// Returns " name=value".
template <class V>
std::string field(std::string_view name, V value) {
  return " " + std::string{name} + "=" + std::to_string(value);
}

std::string step(Step step) {
  return step == barrier::finished ? "finished" : std::to_string(step);
}

template <class Ns>
std::string list(const Ns& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + print_number(number);
  return text;
}

std::string rows(const Rows& rows) { return rows ? " rows=" + list(*rows) : ""; }

/// Requires: the elements are floats.
std::string slice(std::string_view name, const Slice& slice) {
  if (slice.empty()) return " " + std::string{name} + "=none";
  return " " + std::string{name} + "=" + list(slice.as<float>()) + rows(slice.rows);
}

std::string pace(const std::optional<PaceReport>& report) {
  if (!report) return {};
  const auto duration = [](std::uint64_t nanoseconds) {
    return print_duration(Time{static_cast<Time::rep>(nanoseconds)});
  };
  return " pushed-ago=" + duration(report->since_push_ns) +
         " interval=" + duration(report->interval_ns) + " took=" + duration(report->duration_ns) +
         (report->waits ? " waits" : "");
}

std::string address(const Address& to) {
  return std::visit(Overloaded{[](ToMember m) { return "worker " + std::to_string(m.id); },
                               [](ToCoordinator) { return std::string{"coordinator"}; }},
                    to);
}

/// Converts a message, which is of a type that transcripts contain.
template <class Narrow>
TranscriptMessage widen(const Narrow& message) {
  return std::visit(
      []<class M>(const M& m) -> TranscriptMessage {
        if constexpr (std::is_constructible_v<TranscriptMessage, const M&>) return m;
        return Stop{};
      },
      message);
}

}  // namespace

std::string to_text(const TranscriptMessage& message) {
  return std::visit(
      Overloaded{
          [](const Pull& m) {
            return "pull" + field("worker", m.worker) + field("range", m.range) +
                   field("at", m.after_step) + rows(m.rows);
          },
          [](const Value& m) {
            return "value" + field("range", m.range) + field("at", m.after_step) +
                   slice("values", m.value);
          },
          [](const Push& m) {
            return "push" + field("worker", m.worker) +
                   (m.incarnation > 0 ? field("incarnation", m.incarnation) : "") +
                   field("range", m.range) + field("step", m.step) + field("samples", m.samples) +
                   (m.samples_total != m.step * m.samples ? field("sum", m.samples_total) : "") +
                   slice("update", m.update);
          },
          [](const Ack& m) { return "ack" + field("range", m.range) + field("step", m.step); },
          [](const Ended& m) {
            return "ended" + field("worker", m.worker) + field("step", m.step);
          },
          [](const Arrived& m) {
            return "arrived" + field("worker", m.worker) + field("step", m.step) +
                   (m.goes_on ? " goes-on" : "");
          },
          [](const Proceed& m) {
            return "proceed" + field("step", m.step) +
                   (m.until > 0 ? field("until", m.until) : "") +
                   (m.awaited ? field("awaited", *m.awaited) : "");
          },
          [](const Stop&) { return std::string{"stop"}; },
          [](const BatchDone& m) {
            return "batch-done" + field("worker", m.worker) + field("step", m.step);
          },
          [](const HandIn& m) { return "hand-in" + field("step", m.step); },
          [](const StepQuery& m) {
            return "query" + field("from", m.from) + field("draw", m.draw);
          },
          [](const StepAnswer& m) {
            return "answer" + field("from", m.from) + field("draw", m.draw) +
                   " step=" + step(m.step) + pace(m.pace);
          },
          [](const NotifyRequest& m) {
            return "notify-request" + field("from", m.from) + field("draw", m.draw) +
                   field("floor", m.floor);
          },
          [](const Notice& m) { return "notice" + field("from", m.from) + field("draw", m.draw); },
          [](const Snapshot& m) {
            return "snapshot" + field("request_id", m.request_id) +
                   (m.round > 0 ? field("round", m.round) : "");
          },
          [](const RangeState& m) {
            std::string ledger;
            for (const LedgerEntry& entry : m.ledger)
              ledger += (ledger.empty() ? "" : ",") +
                        (entry.incarnation > 0 ? std::to_string(entry.incarnation) + ":" : "") +
                        std::to_string(entry.step);
            return "state" + field("range", m.range) + slice("values", m.value) +
                   (m.slots.empty() ? "" : slice("slots", m.slots)) + field("updates", m.updates) +
                   field("samples", m.samples) + (m.round > 0 ? field("round", m.round) : "") +
                   " ledger=" + ledger +
                   (m.request_id > 0 ? field("request_id", m.request_id) : "");
          }},
      message);
}

std::string to_text(const Effect& effect) {
  return std::visit(Overloaded{[](const Send& e) {
                                 return "send " + address(e.to) + " " + to_text(widen(e.message));
                               },
                               [](const SetTimer& e) { return "timer " + print_duration(e.at); },
                               [](const Plan& e) { return "plan" + field("step", e.step); },
                               [](const Compute& e) {
                                 std::string text = "compute" + field("step", e.step);
                                 for (const Value& value : e.values)
                                   text += " range" + field("", value.range).substr(2) + ":" +
                                           slice("", value.value).substr(2);
                                 return text;
                               },
                               [](const Done& e) { return "done" + field("step", e.step); },
                               [](const Fail& e) { return "fail " + e.why; },
                               [](const auto&) { return std::string{"for the exchange"}; }},
                    effect);
}

std::string to_text(const OwnershipEffect& effect) {
  const auto is_to_owner = []<class M>(const M&) { return IsIn<M, TypeList<Pull, Push, Ended>>; };
  return std::visit(
      Overloaded{[&](const SendToMember<OwnershipContext::Messages>& e) {
                   return (std::visit(is_to_owner, e.message) ? "send owner " : "send worker ") +
                          std::to_string(e.to) + " " + to_text(widen(e.message));
                 },
                 [](const ObservedState& e) { return "send observer " + to_text(*e.state); },
                 [](const auto&) { return std::string{"for the worker"}; }},
      effect);
}

std::string to_text(const ChannelEffect<std::string>& effect) {
  return std::visit(
      Overloaded{[](const Transmit<std::string>& e) {
                   const auto& [from, to, number, acknowledged, selective_acks, payload,
                                is_resend] = e.packet;
                   return "packet" + field("from", from) + (to ? field("to", *to) : "") +
                          (number > 0 ? field("number", number) : "") + field("ack", acknowledged) +
                          (selective_acks > 0 ? field("held", selective_acks) : "") +
                          (payload ? " payload=" + *payload : "") + (is_resend ? " again" : "");
                 },
                 [](const Deliver<std::string>& e) { return "deliver " + e.payload; },
                 [](const SetTimer& e) { return "timer " + print_duration(e.at); }},
      effect);
}

}  // namespace starling::core
