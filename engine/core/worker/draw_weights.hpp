/// Remembers how other workers have answered, to weight a worker's draws (barrier::Weighting).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/barrier/sampling.hpp"
#include "starling/barrier/weighting.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::core {

/// A worker that does not answer a step query within this time counts as behind.
inline constexpr Time query_timeout = std::chrono::seconds{1};

/// The weight of a worker of which nothing is remembered is 1.
///
/// `availability`: a mean of the outcomes of the questions that were sent to the worker, 1 if it
/// has answered within query_timeout, else 0. The mean begins with one answered question and the
/// first question that was not answered. From the eighth outcome on, each outcome changes the mean
/// by an eighth of the difference, so that the mean follows about the last eight outcomes. The
/// weight is the mean, but at least 1/16.
///
/// `speed`: the weight is (steps + 2) / (v * time + 2), from 1/16 to 4. Here `steps` is the number
/// of steps that the worker has made, and `time` the number of seconds that have passed, between
/// its last answers; each answer reduces the earlier sums to 7/8. v is the mean speed of all
/// remembered workers, in steps per second. So the weight is the worker's speed relative to v, as
/// if its first two steps had been made at speed v, and a few answers do not decide it.
///
/// So each live worker is the next one drawn with at least 1/16 (`availability`) or 1/64 (`speed`)
/// of its chance under uniform draws: no worker is left out.
///
/// Remembers the last `remembered_max` of the workers about which there was anything to remember;
/// for `availability`, these are the workers that did not answer lately. Takes O(remembered) time
/// for each draw. One call at a time; not thread-safe.
class DrawWeights {
 public:
  static constexpr double least = 1.0 / 16;
  static constexpr double most = 4;
  static constexpr std::size_t remembered_max = 512;
  /// At most this many questions are open at a time. A further one replaces the oldest, which then
  /// does not count as an outcome.
  static constexpr std::size_t open_max = 256;

  /// A question (StepQuery) that has no answer (StepAnswer) yet.
  struct OpenQuestion {
    MemberId to = 0;
    Time asked_at{};
  };

  /// Requires: weighting != uniform.
  explicit DrawWeights(barrier::Weighting weighting) : weighting_(weighting) {}

  /// `peer` is asked for its step. If a question to it is open already, this one remains.
  void on_question(MemberId peer, Time now);
  /// `peer` has answered that it is at `step`. Ignored if no question to it is open.
  void on_answer(MemberId peer, Step step, Time now);
  /// Forgets the workers `changed`, because they are gone or have a new incarnation.
  void forget(std::span<const MemberId> changed);

  /// Returns the weights of the remembered workers, as barrier::draw_weighted() takes them. The
  /// number of a worker is its position in `workers` without the one at `own_position`. Questions
  /// that have been open for query_timeout count as not answered. Requires: `workers` ascend. The
  /// result is valid until the next call.
  [[nodiscard]] std::span<const barrier::Weighted> weights(std::span<const MemberId> workers,
                                                           std::uint32_t own_position, Time now);

  /// Returns the weight of one worker.
  [[nodiscard]] double weight_of(MemberId peer) const;
  [[nodiscard]] std::span<const OpenQuestion> open_questions() const noexcept { return open_; }
  [[nodiscard]] std::size_t remembered() const noexcept { return records_.size(); }

 private:
  struct Record {
    MemberId peer = 0;
    /// `availability`: the number of outcomes, counted up to 6, and the mean of them and of one
    /// answered question with which the record begins.
    std::uint32_t outcomes = 0;
    float answered = 1;
    /// `speed`: the steps made and the seconds passed between the last answers.
    float steps = 0;
    float seconds = 0;
    /// `speed`: the last answer.
    Step step = 0;
    /// When the record was last changed.
    Time changed_at{};
  };

  void record_outcome(MemberId peer, bool answered, Time now);
  void record_step(MemberId peer, Step step, Time now);
  void expire_questions(Time now);
  Record& remember(MemberId peer, Time now);
  [[nodiscard]] double weight_of(const Record& record, double mean_speed) const;
  /// Returns the mean speed of the remembered workers in steps per second; 0 if there is none yet.
  [[nodiscard]] double mean_speed() const;

  barrier::Weighting weighting_;
  /// Ascending by `peer`.
  std::vector<Record> records_;
  /// From the oldest to the newest.
  std::vector<OpenQuestion> open_;
  /// The result of weights().
  std::vector<barrier::Weighted> weights_;
};

}  // namespace starling::core
