/// The role of members that run a flow: a program of typed data sets (engine/flow). Each member
/// runs the whole program. When it needs a result, it begins an action, whose tasks the coordinator
/// gives to the members. An output stays where it was made, and other members fetch the pieces of
/// it that they read. If a member dies, the outputs that only it had are computed again.
/// docs/design/0021-map-reduce.md describes the protocol.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/flow/coordinator.hpp"
#include "starling/engine/core/flow/executor.hpp"
#include "starling/engine/core/flow/messages.hpp"
#include "starling/engine/core/role/role.hpp"

namespace starling::core {

class Flow {
 public:
  static constexpr std::string_view name = "map-reduce";
  using Messages = FlowMessages;
  using Outputs = FlowOutputs;
  using Inputs = FlowInputs;
  using Questions = TypeList<>;
  using Answers = TypeList<>;
  using Options = FlowOptions;
  using Scratch = FlowScratch;
  using Context = FlowContext;

  Flow(std::shared_ptr<const FlowOptions> options, RoleSetup setup)
      : options_(std::move(options)), self_(setup.self), executor_(*options_, self_.id) {}
  // Not copyable, because the coordinator refers to the executor.
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  void on_configuration(const Context& context, const ConfigurationPtr& next,
                        const ConfigurationPtr& former);
  void start(const Context&) {}
  void on_timer(const Context& context, std::uint32_t) {
    if (coordinator_) coordinator_->on_timer(context);
  }
  void stop(const Context& context) { executor_.stop(context); }
  void leave(const Context& context) { stop(context); }
  [[nodiscard]] bool is_done() const { return executor_.is_idle(); }
  [[nodiscard]] bool fits(const Configuration& configuration) const {
    return configuration.ranges.empty() && configuration.coordinator;
  }

  template <class M>
  requires IsIn<M, FlowMessages>
  [[nodiscard]] bool on(const Context& context, MemberId from, const M& message) {
    if constexpr (requires { coordinator_->on(context, from, message); }) {
      // A former coordinator still gets messages that were sent to it as the coordinator.
      if (coordinator_) coordinator_->on(context, from, message);
    } else if constexpr (std::is_same_v<M, FlowEnd>) {
      context.output(FlowEnded{});
    } else {
      executor_.on(context, from, message);
    }
    return true;
  }
  template <class I>
  requires IsIn<I, FlowInputs>
  void on(const Context& context, const I& input) { executor_.on(context, input); }
  template <class>
  static constexpr bool takes_when_failed = false;

  template <class M>
  requires IsIn<M, FlowMessages>
  [[nodiscard]] bool is_valid(const MessageScope& scope, const M& message) const {
    constexpr bool is_order = std::is_same_v<M, TaskOrder> || std::is_same_v<M, StageHolders> ||
                              std::is_same_v<M, ActionEnd> || std::is_same_v<M, ForgetActions> ||
                              std::is_same_v<M, FlowEnd>;
    if (is_order && scope.configuration.coordinator != scope.from) return false;
    if constexpr (std::is_same_v<M, StageHolders>)
      return std::ranges::all_of(message.holders,
                                 [&](MemberId id) { return id < scope.members_max; });
    if constexpr (std::is_same_v<M, PieceRequest>)
      return !message.pieces.empty() && message.pieces.size() <= PieceRequest::pieces_max;
    if constexpr (std::is_same_v<M, PieceChunks>) return !message.chunks.empty();
    return true;
  }

  // There are no questions.
  template <class Q>
  std::variant<Refusal> answer(const Q&) const = delete;
  template <class Q>
  Result<MemberId> addressee(const Configuration&, std::optional<MemberId>,
                             const Q&) const = delete;
  template <class Q>
  bool is_valid_question(const MessageScope&, const Q&) const = delete;
  template <class A>
  bool is_valid_answer(const MessageScope&, const A&) const = delete;
  template <class A, class Q>
  static bool is_answer(const A&, const Q&) = delete;

  [[nodiscard]] Placement placement() const { return {}; }
  [[nodiscard]] std::vector<RangeId> full_ranges() const { return {}; }
  [[nodiscard]] std::uint64_t full_ranges_version() const { return 0; }

 private:
  std::shared_ptr<const FlowOptions> options_;
  Member self_;
  FlowExecutor executor_;
  /// Present while this member is the coordinator.
  std::optional<FlowCoordinator> coordinator_;
};

static_assert(Role<Flow>);

}  // namespace starling::core
