#include "starling/tools/cluster/run_on_nodes.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "starling/tools/cluster/follow/job_notes.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {
namespace {

constexpr std::chrono::seconds notes_timeout{10};
/// Notes of more bytes are refused: no data has so many columns.
constexpr std::size_t notes_bytes_max = std::size_t{1} << 30U;

Result<std::string> read_notes(Access& access, const std::string& address, wire::JobId id) {
  std::string notes;
  while (true) {
    auto part = access.client->ask_for<wire::JobNotes>(address, wire::GetJobNotes{id, notes.size()},
                                                       notes_timeout);
    if (!part) return std::move(part).error();
    notes += part->bytes;
    if (notes.size() >= part->size) return notes;
    if (part->bytes.empty() || notes.size() > notes_bytes_max)
      return Error{"the node at " + wire::without_key(address) +
                   " sends no valid notes on the job"};
  }
}

/// Calls `ask` with the address of each node that answered for `snapshot`, until one answers:
/// nodes that do not run the job refuse.
template <class Ask>
auto ask_one_of(const ClusterSnapshot& snapshot, Ask ask) -> decltype(ask(std::string{})) {
  Error last{"no node answers"};
  for (const std::string& address : snapshot.answering_addresses()) {
    auto answer = ask(address);
    if (answer) return answer;
    last = std::move(answer).error();
  }
  return last;
}

}  // namespace

Result<std::optional<RunOnNodes>> describe_run_on_nodes(Access& access,
                                                        const ClusterSnapshot& snapshot,
                                                        wire::JobId id, const Job& job,
                                                        const Settings& settings, bool is_resumed) {
  const auto fail = [&](const Error& error) {
    print_error("job " + std::to_string(id) + ": " + error.message);
    return std::optional<RunOnNodes>{};
  };
  const auto text =
      ask_one_of(snapshot, [&](const auto& address) { return read_notes(access, address, id); });
  if (!text) return fail(text.error());
  auto notes = read_job_notes(*text);
  if (!notes) return fail(notes.error());
  const bool has_normalised_error = notes->has_normalised_error;
  auto run = describe_run(job, settings, *std::move(notes));
  if (!run) return std::move(run).error();
  if (is_resumed) {
    auto description = ask_one_of(snapshot, [&](const auto& address) {
      return access.client->ask_for<wire::JobDescription>(address, wire::GetJob{id}, notes_timeout);
    });
    if (!description) return fail(description.error());
    auto& deals = description->former_deals;
    if (auto valid = models::check_deals(deals, run->resolved.train_samples); !valid)
      return fail(valid.error());
    run->resolved.updates_before = description->updates_before;
    run->resolved.steps_before = description->steps_before;
    run->resolved.options.job.former_deals = std::move(deals);
  }
  return std::optional{RunOnNodes{*std::move(run), has_normalised_error}};
}

}  // namespace starling::program
