/// The requests by which a program that follows a job reads the job's model and trace, and has
/// models evaluated, and their replies. A requester may send each again: they are idempotent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/actor/wire/frame.hpp"
#include "starling/engine/core/message.hpp"

namespace starling::wire {

/// Asks for ranges whose primary is a member on the receiver, from `first_range` on.
struct ReadRanges {
  JobId job = 0;
  core::RangeId first_range = 0;
  /// False: the reply holds the values of the ranges. True: a job can resume from the reply.
  bool with_optimizer_state = false;
  static constexpr auto fields(auto& m) {
    return std::tie(m.job, m.first_range, m.with_optimizer_state);
  }
};
/// The reply to ReadRanges.
struct Ranges {
  std::vector<core::RangeState> states;
  /// The number of the range to ask for next; 0 if there are no more.
  core::RangeId next = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.states, m.next); }
};
/// Asks for the intervals of the receiver's workers of a job, from interval number `from` on.
struct GetTrace {
  JobId job = 0;
  std::uint64_t from = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.from); }
};
/// An interval of a worker (actor::Interval), in ns since the job started on its node.
struct TraceInterval {
  core::MemberId worker = 0;
  std::uint64_t from_ns = 0;
  std::uint64_t duration_ns = 0;
  core::Step step = 0;
  std::optional<core::MemberId> awaited = {};
  std::uint8_t activity = 0;
  static constexpr auto fields(auto& m) {
    return std::tie(m.worker, m.from_ns, m.duration_ns, m.step, m.awaited, m.activity);
  }
};
/// The reply to GetTrace. The intervals of a worker are in the order of time.
struct TraceIntervals {
  /// The sending node, and the time of this reply, in ns since the job started there.
  NodeId node = 0;
  std::uint64_t now_ns = 0;
  /// The number of the first interval; above GetTrace::from if intervals before it were dropped.
  std::uint64_t first = 0;
  std::vector<TraceInterval> intervals;
  static constexpr auto fields(auto& m) { return std::tie(m.node, m.now_ns, m.first, m.intervals); }
};
/// Asks for the receiver's notes on a job, from byte `from` on (actor::PreparedJob::notes()).
struct GetJobNotes {
  JobId job = 0;
  std::uint64_t from = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.from); }
};
/// The reply to GetJobNotes.
struct JobNotes {
  /// The number of bytes of all notes; 0 if the job has none.
  std::uint64_t size = 0;
  std::string bytes;
  static constexpr auto fields(auto& m) { return std::tie(m.size, m.bytes); }
};

/// The part of a job's data over which a node evaluates a model. With `none`, it computes only the
/// normalised error.
enum class DataPart : std::uint8_t { training, test, none };
constexpr DataPart last_of(DataPart) { return DataPart::none; }

/// Sends ranges of a model to the receiver, and asks for the model's metrics. The receiver
/// evaluates the model once it has all ranges. The client draws `evaluation`, and sends the same
/// number with all ranges of one model. When it has sent all ranges, it repeats the request without
/// ranges until the reply has the metrics.
struct EvaluateModel {
  JobId job = 0;
  std::uint64_t evaluation = 0;
  DataPart part = DataPart::test;
  /// The name of a further metric to compute, such as `auc`; empty for none.
  std::string metric;
  /// The ranges' values, without slots and ledger.
  std::vector<core::RangeState> states;
  static constexpr auto fields(auto& m) {
    return std::tie(m.job, m.evaluation, m.part, m.metric, m.states);
  }
};
/// The reply to EvaluateModel.
struct ModelMetrics {
  /// The first range that the node has not received; the number of ranges if it has all.
  core::RangeId next = 0;
  /// True if the node has evaluated the model: the fields below are valid.
  bool is_done = false;
  std::vector<std::pair<std::string, double>> metrics = {};
  /// The distance of the model from the parameters with which the data was generated, divided by
  /// the distance of the initial parameters from them; absent if the data was not generated from
  /// parameters of the model.
  std::optional<double> normalised_error = {};
  static constexpr auto fields(auto& m) {
    return std::tie(m.next, m.is_done, m.metrics, m.normalised_error);
  }
};

}  // namespace starling::wire
