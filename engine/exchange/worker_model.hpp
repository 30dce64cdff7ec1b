/// A worker's own copy of the model, for exchanges in which the copies of workers differ: what the
/// worker reads, what observers see, and how a worker that joins gets a copy from another one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/exchange/exchange.hpp"
#include "starling/engine/exchange/whole_models.hpp"

namespace starling::core {

/// A worker that has joined asks another one for its copy of a range.
struct ModelRequest {
  RangeId range = 0;

  static constexpr std::string_view name = "model-request";
  static constexpr auto fields(auto& m) { return std::tie(m.range); }
};

/// Answers a ModelRequest. nullptr: the sender has no copy itself.
struct ModelReply {
  RangeId range = 0;
  std::shared_ptr<const ModelCopy> copy;

  static constexpr std::string_view name = "model-reply";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.copy); }
};

// Each returns true if the sender may send the message.
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const ModelRequest& request);
[[nodiscard]] bool is_valid(const ExchangeScope& scope, const ModelReply& reply);

/// The base of all exchanges in which the copies of workers differ. See the concept Exchange for
/// the public functions. Members that are no workers have no copy. The worker with the lowest id
/// answers observers, for the whole model.
class WorkerModel {
 public:
  static constexpr bool supports(Mode mode) { return mode == Mode::peer; }
  static constexpr bool gathers = false;
  static constexpr bool is_barrier = false;
  static constexpr ExchangeContent content = ExchangeContent::models;
  static constexpr bool places_ranges = false;

  explicit WorkerModel(ExchangeOptions options);

  template <class Context>
  void read(const Context& context, Read read) {
    waiting_read_ = std::move(read);
    finish_read(context);
  }
  template <class Context>
  void enter(const Context&, const Enter&) {}  // the exchange does not gather
  template <class Context>
  void on_timer(const Context& context) {
    if (source_.on_timer(context.now)) request_copy(context);
  }

  template <class Context>
  [[nodiscard]] bool on(const Context& context, MemberId from, const ModelRequest& request) {
    context.send(from, reply_to(request));
    return true;
  }
  template <class Context>
  void on(const Context& context, const Snapshot& request) const {
    send_states_to_observer(*this, context, request, values_.size());
  }

  [[nodiscard]] static std::optional<MemberId> answerer(std::string_view,
                                                        const Configuration& configuration,
                                                        RangeId) {
    return first_worker(configuration);
  }
  [[nodiscard]] bool answers_for(RangeId range) const { return has_copy(range) && is_answerer(); }
  [[nodiscard]] std::optional<Value> value(RangeId range, const Rows& rows) const;
  [[nodiscard]] RangeState state(RangeId range) const;
  [[nodiscard]] std::vector<WorkerProgress> progress() const { return progress_of(progress_); }
  [[nodiscard]] static ReadCounts read_counts() { return {}; }
  [[nodiscard]] std::vector<RangeId> full_ranges() const {
    return copied_ranges(*this, values_.size());
  }
  [[nodiscard]] std::uint64_t full_ranges_version() const { return full_ranges_version_; }

  /// True if this member has a copy of the range.
  [[nodiscard]] bool has_copy(RangeId range) const {
    return range < values_.size() && values_[range].value != nullptr;
  }
  /// Returns the values with which the worker computes. Requires: has_copy(range), and that T is
  /// their type.
  template <class T>
  [[nodiscard]] std::span<const T> copy(RangeId range) const {
    return std::as_const(*values_[range].value).template as<T>();
  }

 protected:
  [[nodiscard]] const ExchangeOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool has_configuration() const noexcept { return configuration_ != nullptr; }
  [[nodiscard]] const Configuration& configuration() const noexcept { return *configuration_; }
  [[nodiscard]] MemberIncarnation self() const {
    return {options_.self.id, options_.self.incarnation};
  }
  [[nodiscard]] std::vector<MemberIncarnation> others() const {
    return other_workers(*configuration_, options_.self.id);
  }
  [[nodiscard]] bool is_present(const MemberIncarnation& worker) const {
    return configuration_->contains(worker.id, worker.incarnation);
  }
  [[nodiscard]] bool is_answerer() const {
    return first_worker(*configuration_) == options_.self.id;
  }
  /// Returns the number of ranges; 0 if this member is no worker.
  [[nodiscard]] RangeId ranges() const { return static_cast<RangeId>(values_.size()); }
  [[nodiscard]] bool has_all_ranges() const { return full_ranges().size() == values_.size(); }
  [[nodiscard]] RangeValues& values(RangeId range) { return values_[range]; }
  [[nodiscard]] const RangeValues& values(RangeId range) const { return values_[range]; }

  /// Adopts this configuration. Returns the former one; null if there was none.
  ConfigurationPtr set_configuration(const ConfigurationPtr& next) {
    return std::exchange(configuration_, next);
  }
  /// Takes the states with which the job starts.
  void take_initial_states();
  /// True if the state of `range` with which the job starts contains this worker's update of
  /// `step`. A checkpoint of an exchange with owners may contain an update in some ranges only.
  [[nodiscard]] bool initial_state_contains(RangeId range, Step step) const;

  /// Records that `worker` has got to progress.step, unless a later step of it is known.
  void record_progress(const MemberIncarnation& worker, const WorkerSteps& progress);
  void record_progress(const std::vector<WorkerProgress>& workers);
  /// Returns how far a worker has got, as far as this worker knows.
  [[nodiscard]] WorkerSteps known_steps(const MemberIncarnation& worker) const;
  /// Returns the samples of all steps of which this worker knows.
  [[nodiscard]] std::uint64_t samples_of_all() const;

  /// Asks for the copies that this worker lacks, if it does not wait for one already.
  template <class Context>
  void request_missing_copies(const Context& context) {
    if (!source_.asked() || !is_present(*source_.asked())) request_copy(context);
  }
  /// Installs the copy of a range in `reply`, and returns true; the caller must then call
  /// request_copy(). Returns false if this worker has not asked `from`, or has a copy of the range.
  /// If the reply has no copy, or one that does not fit, asks the next worker and returns false.
  template <class Context>
  [[nodiscard]] bool install(const Context& context, MemberId from, const ModelReply& reply) {
    const bool is_asked = source_.asked() && source_.asked()->id == from;
    if (values_.empty() || has_copy(reply.range) || !is_asked) return false;
    if (install(reply)) return true;
    ask(context, source_.on_refusal(context.now, others()));
    return false;
  }
  /// Asks for the next copy that this worker lacks; answers a waiting read once it lacks none.
  template <class Context>
  void request_copy(const Context& context) {
    if (!has_all_ranges()) return ask(context, source_.begin(others()));
    source_.end();
    finish_read(context);
  }

 private:
  /// Answers the read if this worker has copies of all ranges.
  template <class Context>
  void finish_read(const Context& context) {
    if (!waiting_read_ || !has_all_ranges()) return;
    const Read read = *std::exchange(waiting_read_, std::nullopt);
    const auto values_of_range = [&](RangeId range) -> const RangeValues& {
      return values_[range];
    };
    context.out.push_back(read_from(*options_.layout, read, values_of_range));
  }
  /// Asks for the first range of which this worker has no copy, or waits, or ends the job.
  template <class Context>
  void ask(const Context& context, CopySource::Next next) {
    if (auto* timer = std::get_if<SetTimer>(&next)) return context.out.push_back(*timer);
    if (auto* failure = std::get_if<Fail>(&next)) return context.out.push_back(std::move(*failure));
    RangeId range = 0;
    while (has_copy(range)) ++range;
    context.send(std::get<MemberId>(next), ModelRequest{range});
  }
  [[nodiscard]] ModelReply reply_to(const ModelRequest& request) const;
  [[nodiscard]] bool install(const ModelReply& reply);

  ExchangeOptions options_;
  ConfigurationPtr configuration_;
  /// By range; the buffers are null where this worker has no copy. Empty if this member is no
  /// worker.
  std::vector<RangeValues> values_;
  /// How far each worker has got, as far as this worker knows.
  StepsOfWorkers progress_;
  /// A read that waits for copies.
  std::optional<Read> waiting_read_;
  /// Chooses the worker that is asked for the copies that this worker lacks.
  CopySource source_;
  /// How many copies have been installed, each of which adds a range to full_ranges().
  std::uint64_t full_ranges_version_ = 0;
};

}  // namespace starling::core
