/// How a MemberCore answers questions of actors that are not members, and passes such questions on
/// to other members.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {
namespace {

/// A member asks at most this many questions at the same time. A further question replaces the
/// oldest one, because the member to which that was sent may hang.
constexpr std::size_t open_questions_max = 1024;

/// Calls `function(question)` if the role R has questions of this type; else returns `otherwise`.
template <class R, class T, class Function>
T ask_role(const Question& question, T otherwise, Function function) {
  return std::visit(
      [&]<class Q>(const Q& one) -> T {
        if constexpr (IsIn<Q, typename R::Questions>)
          return function(one);
        else
          return otherwise;
      },
      question);
}

/// Returns true if `answer` is one to `question` in a job of role R. A Refusal answers every
/// question.
template <class R>
bool is_answer(const Answer& answer, const Question& question) {
  if (std::holds_alternative<Refusal>(answer)) return true;
  return ask_role<R>(question, false, [&](const auto& asked) {
    return std::visit(
        [&]<class A>(const A& one) {
          if constexpr (IsIn<A, typename R::Answers>)
            return R::is_answer(one, asked);
          else
            return false;
        },
        answer);
  });
}

}  // namespace

Answer MemberCore::answer(const Question& question) {
  if (state_ != State::member && state_ != State::failed)
    return Refusal{name_of(options_.self) + " is not in the job, or not any more"};
  return std::visit(
      [&]<class R>(R& role) {
        Answer unknown = Refusal{"a job of " + std::string{R::name} + " has no such question"};
        return ask_role<R>(question, std::move(unknown), [&](const auto& asked) {
          return std::visit([](auto&& answer) { return Answer{std::move(answer)}; },
                            role.answer(asked));
        });
      },
      role_);
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
                               " later questions by this node's member; valid: at most " +
                               std::to_string(open_questions_max) + " open questions at a time"}});
    open_questions_->erase(oldest);
  }
  if (state_ == State::idle || state_ == State::joining) {
    open_questions_->emplace(question.number,
                             OpenQuestion{std::nullopt, to, std::move(question.question)});
    return;
  }
  if (state_ != State::member)
    return refuse(name_of(options_.self) + " is not in the job, or not any more");
  const auto addressee = std::visit(
      [&]<class R>(const R& role) {
        Result<MemberId> unknown =
            Error{"a job of " + std::string{R::name} + " has no such question"};
        return ask_role<R>(question.question, std::move(unknown), [&](const auto& asked) {
          return role.addressee(*configuration_, to, asked);
        });
      },
      role_);
  if (!addressee) return refuse(addressee.error().message);
  to = *addressee;
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
      !std::visit(
          [&]<class R>(const R&) { return is_answer<R>(answer.answer, open->second.question); },
          role_))
    return;
  open_questions_->erase(open);
  context.out.push_back(answer);
}

/// After a change of the members, or when this member has failed: sends the questions that were
/// asked before this member joined, and refuses the questions that nobody will answer any more.
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
