/// Connects the actor of a member with its node.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::actor {

/// Sends each packet to the member to which it is addressed. Several actors may call it at the same
/// time.
using SendEnvelopes = std::function<void(std::vector<core::Envelope>)>;

/// Connects a member of a job on several nodes with its node. A member of a job in one process has
/// a Directory instead, and reports to the job's observer.
struct NodeCallbacks {
  SendEnvelopes send = {};
  /// Called when the council excludes the member, which is final.
  std::function<void()> on_excluded = {};
  /// Called with the text of an exception that ends the actor. The actor answers no message after
  /// that.
  std::function<void(const std::string&)> report_exception = {};
  /// Called with the member's report and latest configuration: when the member's state, its
  /// configuration or its deal of samples has changed, when its work has ended, and for each
  /// report_atom.
  std::function<void(actor::MemberReport, core::ConfigurationPtr)> publish = {};
};

/// Handles a failed STARLING_CHECK: throws, which ends the actor only, and not the process.
[[noreturn]] inline void throw_broken_invariant(const char* condition, const char* file, int line) {
  throw std::logic_error{std::string{"broken invariant: "} + condition + ", " + file + ":" +
                         std::to_string(line)};
}

}  // namespace starling::actor
