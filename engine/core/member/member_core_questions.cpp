/// How a MemberCore answers questions of actors that are not members, and asks other members
/// theirs.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {

std::string name_of(const Member& member) {
  const std::string id = std::to_string(member.id);
  if (member.works) return "worker " + id;
  return member.owns ? "server (member " + id + ")" : "member " + id;
}

Answer MemberCore::answer(const Question& question) {
  if (state_ != State::member && state_ != State::failed)
    return Refusal{name_of(options_.self) + " is not in the job, or not any more"};
  if (std::holds_alternative<AskStep>(question)) {
    if (!worker_) return Refusal{name_of(options_.self) + " computes no updates"};
    return WorkerStep{worker_->step()};
  }
  if (std::holds_alternative<AskSteps>(question)) {
    if (!coordinator_) return Refusal{name_of(options_.self) + " is not the coordinator"};
    const auto [min, max] = coordinator_->spread();
    return StepsReport{min, max, coordinator_->max_lag(), coordinator_->draws(),
                       coordinator_->passes()};
  }
  const AskValue& wanted = std::get<AskValue>(question);
  // The worker's id in a Pull is where its answer goes; this one is not sent.
  const Pull pull{0, wanted.range, 0, wanted.rows};
  if (!replica_->is_primary(wanted.range) || !replica_->shard().is_valid(pull))
    return Refusal{"range " + std::to_string(wanted.range) + ": not owned by " +
                   name_of(options_.self) + ", or without such rows"};
  return replica_->shard().read(pull);
}

void MemberCore::ask(const MemberContext& context, std::optional<MemberId> to,
                     MemberQuestion question) {
  const auto refuse = [&](std::string why) {
    context.out.push_back(MemberAnswer{question.number, Refusal{std::move(why)}});
  };
  if (state_ != State::member)
    return refuse(name_of(options_.self) + " is not in the job, or not any more");
  if (!to && std::holds_alternative<AskSteps>(question.question)) to = configuration_->coordinator;
  if (const auto* wanted = std::get_if<AskValue>(&question.question)) {
    if (wanted->range >= configuration_->ranges.size())
      return refuse("range " + std::to_string(wanted->range) + ": valid: below " +
                    std::to_string(configuration_->ranges.size()));
    if (!to) to = configuration_->ranges[wanted->range].owners.front().id;
  }
  if (!to)
    return refuse(std::holds_alternative<AskStep>(question.question)
                      ? "no worker is named"
                      : "no member keeps the steps of all workers in this mode");
  if (configuration_->find(*to) == nullptr)
    return refuse("member " + std::to_string(*to) + " is not in the job, or not any more");
  post(context, *to, make_peer_message(std::move(question)));
  finish_event(context);
}

}  // namespace starling::core
