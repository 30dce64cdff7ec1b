/// A small role for tests: members pass tokens around a ring in the order of their ids. It shows
/// that a role needs nothing but a folder and a line in the list.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/role/role.hpp"

namespace starling::core {

class Tokens;

/// To the next member of the ring.
struct Token {
  /// The member that began it.
  MemberId origin = 0;
  std::uint32_t number = 0;
  /// How often it was passed on.
  std::uint32_t passes = 0;

  static constexpr std::string_view name = "token";
  static constexpr auto fields(auto& m) { return std::tie(m.origin, m.number, m.passes); }
  bool operator==(const Token&) const = default;
};
/// The driver wants this member to begin as many tokens.
struct BeginTokens {
  std::uint32_t count = 0;
};
/// For the driver: the token was passed on often enough.
struct TokenEnded {
  Token token;
};
/// Asks how many tokens a member has received; answered by TokenCount.
struct AskTokens {};
struct TokenCount {
  std::uint64_t received = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.received); }
};

struct TokensOptions {
  using Role = Tokens;
  std::uint32_t passes = 1;
  /// A member keeps each token for this time.
  Time hold = std::chrono::milliseconds{1};
};

class Tokens {
 public:
  static constexpr std::string_view name = "tokens";
  using Messages = TypeList<Token>;
  using Outputs = TypeList<TokenEnded>;
  using Inputs = TypeList<BeginTokens>;
  using Questions = TypeList<AskTokens>;
  using Answers = TypeList<TokenCount>;
  using Options = TokensOptions;
  struct Scratch {};
  using Context = RoleContext<Messages, Outputs, Scratch>;

  Tokens(std::shared_ptr<const TokensOptions> options, RoleSetup setup)
      : options_(std::move(options)), self_(setup.self) {}

  void on_configuration(const Context&, const ConfigurationPtr& next, const ConfigurationPtr&) {
    configuration_ = next;
  }
  void start(const Context&) {}
  void stop(const Context& context) { pass_on(context); }
  void leave(const Context& context) { stop(context); }
  void on_timer(const Context& context, std::uint32_t) { pass_on(context); }
  [[nodiscard]] bool is_done() const { return held_.empty(); }
  [[nodiscard]] bool fits(const Configuration& configuration) const {
    return configuration.ranges.empty();
  }

  [[nodiscard]] bool on(const Context& context, MemberId, const Token& token) {
    ++received_;
    if (token.passes < options_->passes)
      hold(context, token);
    else
      context.output(TokenEnded{token});
    return true;
  }
  void on(const Context& context, const BeginTokens& wanted) {
    for (std::uint32_t i = 0; i < wanted.count; ++i) hold(context, {self_.id, begun_++, 0});
  }
  template <class>
  static constexpr bool takes_when_failed = false;

  /// A token comes from the member before this one, and was passed on at least once.
  [[nodiscard]] bool is_valid(const MessageScope& scope, const Token& token) const {
    return token.origin < scope.members_max && token.passes > 0 && token.passes <= options_->passes;
  }

  [[nodiscard]] std::variant<Refusal, TokenCount> answer(const AskTokens&) const {
    return TokenCount{received_};
  }
  [[nodiscard]] Result<MemberId> addressee(const Configuration&, std::optional<MemberId> to,
                                           const AskTokens&) const {
    if (to) return *to;
    return Error{"no member is named"};
  }
  [[nodiscard]] bool is_valid_question(const MessageScope&, const AskTokens&) const { return true; }
  [[nodiscard]] bool is_valid_answer(const MessageScope&, const TokenCount&) const { return true; }
  static bool is_answer(const TokenCount&, const AskTokens&) { return true; }

  [[nodiscard]] Placement placement() const { return {}; }
  [[nodiscard]] std::vector<RangeId> full_ranges() const { return {}; }
  [[nodiscard]] std::uint64_t full_ranges_version() const { return 0; }

 private:
  void hold(const Context& context, Token token) {
    held_.push_back({context.now + options_->hold, token});
    context.out.push_back(RoleTimer{held_.back().first, 0});
  }

  /// Sends the tokens that are due to the next member.
  void pass_on(const Context& context) {
    const std::vector<Member>& members = configuration_->members;
    const Member* self = configuration_->find(self_.id);
    const Member& next = self == &members.back() ? members.front() : self[1];
    std::erase_if(held_, [&](const auto& held) {
      if (held.first > context.now) return false;
      context.send(next.id, Token{held.second.origin, held.second.number, held.second.passes + 1});
      return true;
    });
  }

  std::shared_ptr<const TokensOptions> options_;
  Member self_;
  ConfigurationPtr configuration_;
  /// The tokens that this member keeps, and until when.
  std::vector<std::pair<Time, Token>> held_;
  std::uint32_t begun_ = 0;
  std::uint64_t received_ = 0;
};

static_assert(Role<Tokens>);

}  // namespace starling::core
