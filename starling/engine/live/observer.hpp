/// The actor that collects results. It has a thread of its own, so a slow display or disk delays
/// nobody: no barrier and no update ever waits for it.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "starling/engine/live/host.hpp"
#include "starling/engine/live/job.hpp"

namespace starling::live {

/// True where whole rounds are saved: in bulk-synchronous jobs.
[[nodiscard]] bool saves_rounds(const JobOptions& options);
/// The first of them after `round`, for owners to know before the first push.
[[nodiscard]] core::Snapshot first_saved(const JobOptions& options, core::Step round);

///     running -> stopping -> collecting -> evaluating -> over
///        \--------(failure)----^
class ObserverHost : public actor::ObserverActor::base {
 public:
  using Deliver = std::function<void(Outcome)>;

  /// `first` is where each worker starts from; `deliver` is called once, with the outcome.
  ObserverHost(caf::actor_config& config, ScenePtr scene, const JobOptions& options,
               const std::vector<core::LedgerEntry>& first, Deliver deliver);

  actor::ObserverActor::behavior_type make_behavior() override;
  /// Members know each other, and a circle of them would never be freed.
  void on_exit() override { directory_.reset(); }

 private:
  enum class Phase { running, stopping, collecting, evaluating, over };
  /// Why the ranges' states are being collected.
  struct Purpose {
    bool evaluate = false;
    bool save = false;
    bool last = false;
  };

  void on_report(const actor::Report& report);
  void note_step(core::Step from, const actor::Report& report);
  void on_state(const core::RangeState& state);
  void settle(std::vector<core::LedgerEntry>& ledger) const;
  void on_evaluated(const actor::Evaluated& evaluated);
  void on_failure(const actor::Failure& failure);
  void on_tick();

  template <class F>
  void call(std::string_view callback, F&& run);
  void save(const std::vector<core::RangeState>& states);
  void await_round(std::uint64_t ticket);
  void ask_for_round(core::Step round);
  void stop(Outcome::End why);
  void collect(Purpose purpose);
  void collected();
  void evaluate(bool last);
  void ask_coordinator();
  void show();
  void check_target();
  void finish();
  void update_figures();
  void take_loss();
  [[nodiscard]] double mean_step() const;

  ScenePtr scene_;
  const JobOptions& options_;
  Deliver deliver_;
  actor::DirectoryPtr directory_;

  Phase phase_ = Phase::running;
  Outcome outcome_;
  Progress figures_;
  std::vector<actor::Report> reports_;
  std::vector<core::Time> ended_;
  std::size_t running_;
  double loss_sum_ = 0;
  std::uint64_t losses_ = 0;
  /// Steps computed in this run.
  std::uint64_t computed_ = 0;
  /// How many running workers stand at each step, as far as they have said.
  std::map<core::Step, std::size_t> standing_;

  std::optional<Purpose> purpose_;
  std::uint64_t last_ticket_;
  std::uint64_t ticket_ = 0;
  std::vector<core::RangeState> states_;
  /// The states that reached the target: the job's result, whatever the steps then under way do.
  std::vector<core::RangeState> reached_;
  /// By worker: how far it was when the states were asked for. Its owners held all of that.
  std::vector<core::LedgerEntry> settled_;
  /// States on their way of the next round to be saved; 0 where no rounds are.
  std::uint64_t round_ticket_ = 0;
  std::vector<core::RangeState> round_states_;
  bool evaluating_ = false;
  /// What the evaluation under way evaluates.
  std::vector<core::RangeState> evaluated_;
  core::Time next_show_{};
  double next_evaluation_;
  double next_checkpoint_;
  core::Time give_up_ = core::Time::max();
};

}  // namespace starling::live
