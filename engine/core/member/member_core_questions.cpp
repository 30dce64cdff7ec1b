/// How a MemberCore answers questions of actors that are not members, and asks other members
/// theirs.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {
namespace {

/// A member asks at most this many questions at the same time. The oldest one gives way, because
/// the member that it was sent to may hang.
constexpr std::size_t open_questions_max = 1024;

/// Returns true if `answer` is one to `question`. A Refusal answers every question.
bool answers(const Answer& answer, const Question& question) {
  if (std::holds_alternative<Refusal>(answer)) return true;
  if (std::holds_alternative<AskStep>(question)) return std::holds_alternative<WorkerStep>(answer);
  if (std::holds_alternative<AskSteps>(question))
    return std::holds_alternative<StepsReport>(answer);
  const auto* value = std::get_if<Value>(&answer);
  const AskValue& wanted = std::get<AskValue>(question);
  if (value == nullptr || value->range != wanted.range) return false;
  if (!wanted.rows || !value->value.rows) return !wanted.rows && !value->value.rows;
  return *wanted.rows == *value->value.rows;
}

}  // namespace

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
  auto value = std::visit([&](auto& e) { return e.value(wanted.range, wanted.rows); }, exchange_);
  if (value) return *std::move(value);
  return Refusal{"range " + std::to_string(wanted.range) + ": not owned by " +
                 name_of(options_.self) + ", or without such rows, which must ascend, each once"};
}

void MemberCore::ask(const MemberContext& context, std::optional<MemberId> to,
                     MemberQuestion question) {
  open_question(context, to, std::move(question));
  finish_event(context);
}

void MemberCore::open_question(const MemberContext& context, std::optional<MemberId> to,
                               MemberQuestion question) {
  const auto refuse = [&](std::string why) {
    context.out.push_back(MemberAnswer{question.number, Refusal{std::move(why)}});
  };
  if (!open_questions_) open_questions_ = std::make_unique<std::map<std::uint64_t, OpenQuestion>>();
  if (open_questions_->size() >= open_questions_max) {
    const auto oldest = open_questions_->begin();  // numbers ascend
    context.out.push_back(MemberAnswer{
        oldest->first, Refusal{"no answer yet, and " + std::to_string(open_questions_max) +
                               " later questions by this node's member; valid: fewer at a time"}});
    open_questions_->erase(oldest);
  }
  if (state_ == State::idle || state_ == State::joining) {
    open_questions_->emplace(question.number,
                             OpenQuestion{std::nullopt, to, std::move(question.question)});
    return;
  }
  if (state_ != State::member)
    return refuse(name_of(options_.self) + " is not in the job, or not any more");
  if (!to && std::holds_alternative<AskSteps>(question.question)) to = configuration_->coordinator;
  if (const auto* wanted = std::get_if<AskValue>(&question.question)) {
    const std::size_t count = options_.exchange.layout->ranges.size();
    if (wanted->range >= count)
      return refuse("range " + std::to_string(wanted->range) + ": valid: below " +
                    std::to_string(count));
    if (!to) to = exchange_type(options_.exchange.name).answerer(*configuration_, wanted->range);
  }
  if (!to)
    return refuse(std::holds_alternative<AskSteps>(question.question)
                      ? "no member keeps the steps of all workers in this mode"
                      : "no member is named");
  const Member* asked = configuration_->find(*to);
  if (asked == nullptr)
    return refuse("member " + std::to_string(*to) + " is not in the job, or not any more");
  open_questions_->emplace(question.number, OpenQuestion{MemberIncarnation{*to, asked->incarnation},
                                                         to, question.question});
  post(context, *to, make_peer_message(std::move(question)));
}

/// Passes the answer on if it comes from the asked member and fits the question.
void MemberCore::receive_answer(const MemberContext& context, MemberId from,
                                const MemberAnswer& answer) {
  if (!open_questions_) return;
  const auto open = open_questions_->find(answer.number);
  if (open == open_questions_->end() || !open->second.asked || open->second.asked->id != from ||
      !answers(answer.answer, open->second.question))
    return;
  open_questions_->erase(open);
  context.out.push_back(answer);
}

/// After a change of the members, or when this member has failed: asks what was asked before this
/// member joined, and refuses the questions that nobody will answer any more.
void MemberCore::review_open_questions(const MemberContext& context) {
  if (!open_questions_) return;
  std::vector<std::pair<std::uint64_t, OpenQuestion>> not_sent;
  std::erase_if(*open_questions_, [&](auto& open) {
    const auto& asked = open.second.asked;
    if (!asked) {
      not_sent.emplace_back(open.first, std::move(open.second));
      return true;
    }
    if (state_ == State::member && configuration_->contains(asked->id, asked->incarnation))
      return false;
    const std::string who =
        state_ == State::member ? "member " + std::to_string(asked->id) : name_of(options_.self);
    context.out.push_back(MemberAnswer{open.first, Refusal{who + " has left the job"}});
    return true;
  });
  for (auto& [number, open] : not_sent)
    open_question(context, open.to, {number, std::move(open.question)});
}

}  // namespace starling::core
