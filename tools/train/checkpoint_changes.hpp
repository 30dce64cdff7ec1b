/// Lets a job go on from the checkpoint of a job with other workers, or in another mode or under
/// another barrier. Internal to read_checkpoint().
#pragma once

#include "starling/tools/train/checkpoint.hpp"

namespace starling::program {

/// Returns the name under which the metadata of a checkpoint holds the key `key` of a JobIdentity.
[[nodiscard]] std::string metadata_key(const std::string& key);

/// Keys of a checkpoint's metadata that are not part of the job's identity: the schedule (written
/// even if it is the default one), the number of updates that the states contain, and the exchange.
inline constexpr const char* schedule_value_key = "schedule-value";
inline constexpr const char* updates_key = "updates";
inline constexpr const char* exchange_key = "exchange";
/// Stands for the schedule in the identity of a job that has the default one, because the default
/// schedule depends on the job's length.
inline constexpr const char* default_schedule = "the default";

/// Returns true if the job that wrote the checkpoint had the same value of the setting `key` as
/// `job`: `value` in the identity of `job`. Two schedules are the same if both are the default, or
/// if they give the same rates. Requires: the checkpoint has the key.
[[nodiscard]] bool is_same_value(const StoredModel& stored, const std::string& key,
                                 const std::string& value, const ResolvedJob& job);

/// Returns the number of updates that the states of a checkpoint contain. If the file does not give
/// it, this is the sum of the steps of the `workers` workers of the job that wrote the file.
[[nodiscard]] Result<std::uint64_t> updates_in(const StoredModel& stored,
                                               const std::vector<core::RangeState>& states,
                                               std::size_t workers);

/// Returns the job that wrote the checkpoint, so that its states can be interpreted: a copy of
/// `job` with the workers, batch, mode, servers, barrier, exchange and former deals that the file
/// gives. Returns an Error if another setting of the two jobs differs, or if any setting differs
/// and `job` does not learn by gradients.
[[nodiscard]] Result<ResolvedJob> writer_of(const StoredModel& stored, const ResolvedJob& job,
                                            const JobIdentity& identity);

/// The tensor that holds a job's former deals.
inline constexpr const char* deals_name = "starling.deals";

/// Returns the elements of the tensor `deals_name`; an empty vector if `deals` is empty.
[[nodiscard]] std::vector<std::uint64_t> encode_deals(const std::vector<models::FormerDeal>& deals);

/// Lets a job with `options` go on from `states` after the deals `former`: all workers begin at one
/// step, the first one of the deal that follows. Returns this step. `samples` is the number of
/// samples that former workers have taken, and `train_samples` that of the data. Refuses deals that
/// no job can have had.
[[nodiscard]] Result<core::Step> restart_ledgers_after(
    const std::vector<models::FormerDeal>& former, const actor::TrainOptions& options,
    std::uint64_t train_samples, std::uint64_t samples, std::vector<core::RangeState>& states);

/// Returns the former deals of a job with `options` that goes on after `deal`. `taken` says which
/// part of `deal` each of its workers has taken. `samples` is the number of samples that all
/// workers have taken, and `train_samples` that of the data. Changes `states` as
/// restart_ledgers_after() does.
[[nodiscard]] Result<std::vector<models::FormerDeal>> end_deal(
    const core::Deal& deal, std::vector<models::Taken> taken, const actor::TrainOptions& options,
    std::uint64_t train_samples, std::uint64_t samples, std::vector<core::RangeState>& states);

/// Returns what a worker has taken of its part of a deal if a ledger holds `entry` for it.
/// Requires: the worker began its part at a known step.
[[nodiscard]] models::Taken taken_of(const core::DealtWorker& worker,
                                     const core::LedgerEntry& entry,
                                     const actor::TrainOptions& options);

/// Does what the end_deal() above does, for a job in one process whose last deals are `deals`, the
/// latest one last. The ledgers of `states` say what was taken. Returns an Error if some of the
/// updates in `states` belong to one deal and some to the next; after the workers' next steps this
/// is no longer so.
[[nodiscard]] Result<std::vector<models::FormerDeal>> end_deal(
    const std::vector<std::shared_ptr<const core::Deal>>& deals, const actor::TrainOptions& options,
    std::uint64_t train_samples, std::vector<core::RangeState>& states);

/// Returns the ledgers and the former deals with which `job` resumes from the states of `writer`,
/// and what has changed: all workers begin at one step, and take first what is left of the epochs
/// begun. `states` and the result have the ranges of `writer`.
[[nodiscard]] Result<Checkpoint> change_workers(const ResolvedJob& writer, const ResolvedJob& job,
                                                std::vector<core::RangeState> states);

/// Returns the counters and ledgers of `states`, which have the ranges of `from`, for the ranges of
/// `to`. The states returned have no values and no slots. Requires: all ledgers are equal.
[[nodiscard]] std::vector<core::RangeState> counters_for(
    const core::Layout& from, const core::Layout& to, const std::vector<core::RangeState>& states);

}  // namespace starling::program
