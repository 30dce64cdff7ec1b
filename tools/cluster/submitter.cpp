#include "starling/tools/cluster/submitter.hpp"

#include <chrono>
#include <set>
#include <utility>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// A submission that has no answer after this time is sent again.
constexpr auto submit_reply_timeout = 1s;
constexpr auto close_timeout = 2s;
/// A node that has not answered for this time counts as dead. A live node takes so long only if it
/// is very busy.
constexpr auto silence_max = 4s;
/// The most new names that are tried. Several may be taken, because other programs that submit jobs
/// at the same moment may choose the same names.
constexpr int renames_max = 8;

/// Submits one job to a target node: at first the seed node, then others if it dies. See
/// submit_job().
class Submitter {
 public:
  Submitter(Access& access, const wire::NodeStatus& node, wire::JobSettings settings,
            const NameGenerator& new_name)
      : client_(*access.client),
        settings_(std::move(settings)),
        new_name_(new_name),
        target_(access.seed),
        target_name_(node.self.name) {
    update_from(node);
  }

  /// Returns the job once it has begun; nullopt if the program was interrupted.
  Result<std::optional<SubmittedJob>> run() {
    while (true) {
      const auto reply = ask(wire::SubmitJob{job_, settings_});
      if (reply) {
        const auto* refused = std::get_if<wire::Refused>(&*reply);
        if (refused != nullptr && refused->is_name_taken && rename()) continue;
        if (refused != nullptr) return Error{printable(refused->why)};
        if (const auto* started = std::get_if<wire::JobStarted>(&*reply))
          return result_of(*started);
        return Error{"the node at " + wire::without_key(target_) +
                     " sent a reply that does not fit the request"};
      }
      if (is_interrupted()) {
        drop();
        return std::optional<SubmittedJob>{};
      }
      if (ping_target()) continue;
      if (auto moved = move_to_next_node(); !moved) return std::move(moved).error();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Sends a request to the target node and returns the reply; nullopt if none arrives in time.
  std::optional<wire::ReplyBody> ask(const wire::RequestBody& body) {
    auto replies = client_.ask_all({target_}, body, submit_reply_timeout);
    if (replies.front()) last_reply_at_ = Clock::now();
    return std::move(replies.front());
  }

  /// Warns of nodes that died before the job began, and returns the job.
  std::optional<SubmittedJob> result_of(const wire::JobStarted& started) {
    for (const std::string& name : started.lost)
      print_error("node " + printable(name) + " is gone: the job begins without it");
    return SubmittedJob{started.job, target_, actor::setting_of(settings_, "name")};
  }

  /// Asks the target node for its status. Returns true if it has answered within silence_max.
  bool ping_target() {
    const auto reply = ask(wire::GetStatus{.job = job_});
    if (const auto* status = reply ? std::get_if<wire::NodeStatus>(&*reply) : nullptr)
      update_from(*status);
    return Clock::now() < last_reply_at_ + silence_max;
  }

  /// Stores the target node's name and the addresses of the other live nodes.
  void update_from(const wire::NodeStatus& status) {
    target_name_ = printable(status.self.name);
    other_addresses_.clear();
    for (const core::NodeRecord& other : status.others)
      if (core::is_live(other.state)) other_addresses_.insert(other.address);
  }

  /// Gives the job a new name and a new id. Returns false if the user chose the name, or if too
  /// many names were taken.
  bool rename() {
    const std::string name = renames_++ < renames_max ? new_name_() : std::string{};
    if (name.empty()) return false;
    drop();
    job_ = wire::draw_id();
    for (auto& [key, text] : settings_)
      if (key == "name") text = name;
    return true;
  }

  /// Makes the first other node that answers the target node. Gives the job a new id, because the
  /// former target may still live and start the job under the former id.
  Result<void> move_to_next_node() {
    const std::string former = "node " + target_name_ + " at " + wire::without_key(target_);
    drop();
    other_addresses_.erase(target_);
    const std::vector<std::string> asked{other_addresses_.begin(), other_addresses_.end()};
    const auto replies = client_.ask_all(asked, wire::GetStatus{.job = job_}, close_timeout);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto* status = replies[i] ? std::get_if<wire::NodeStatus>(&*replies[i]) : nullptr;
      if (status == nullptr) continue;
      target_ = asked[i];
      job_ = wire::draw_id();
      last_reply_at_ = Clock::now();
      update_from(*status);
      print_error(former + " no longer answers: the job is submitted to " + target_name_);
      return {};
    }
    return Error{former + " no longer answers" +
                 (asked.empty() ? ", and no other node is known" : ", nor does any other node")};
  }

  /// Asks all nodes to drop the job and the data that they have read for it.
  void drop() {
    std::vector<std::string> addresses{other_addresses_.begin(), other_addresses_.end()};
    addresses.push_back(target_);
    (void)client_.ask_all(addresses, wire::CloseJob{job_}, close_timeout);
  }

  actor::ClusterClient& client_;
  wire::JobSettings settings_;
  const NameGenerator& new_name_;
  int renames_ = 0;
  /// The address and the name of the node to which the job is submitted.
  std::string target_;
  std::string target_name_;
  wire::JobId job_ = wire::draw_id();
  Clock::time_point last_reply_at_ = Clock::now();
  std::set<std::string> other_addresses_;
};

}  // namespace

Result<std::optional<SubmittedJob>> submit_job(Access& access, const wire::NodeStatus& node,
                                               wire::JobSettings settings,
                                               const NameGenerator& new_name) {
  return Submitter{access, node, std::move(settings), new_name}.run();
}

}  // namespace starling::program
