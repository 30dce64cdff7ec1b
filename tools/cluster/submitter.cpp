#include "starling/tools/cluster/submitter.hpp"

#include <algorithm>
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

/// A request is repeated after this time; meanwhile the loss of its node may be noticed.
constexpr auto ask_again_after = 1s;
constexpr auto close_within = 2s;
/// Nodes answer at once, but for one that is very busy.
constexpr auto silence_max = 4s;
/// Others that submit at the same moment may choose the same name again.
constexpr int tries_max = 8;

class Submitter {
 public:
  Submitter(Access& access, const wire::NodeStatus& node, wire::JobSettings settings,
            const OtherName& other_name)
      : client_(*access.client),
        settings_(std::move(settings)),
        other_name_(other_name),
        seed_(access.seed),
        name_(node.self.name) {
    learn(node);
  }

  Result<std::optional<Submitted>> run() {
    while (true) {
      const auto reply = ask(wire::SubmitJob{job_, settings_});
      if (reply) {
        const auto* refused = std::get_if<wire::Refused>(&*reply);
        if (refused != nullptr && refused->is_name_taken && rename()) continue;
        if (refused != nullptr) return Error{printable(refused->why)};
        if (const auto* begun = std::get_if<wire::JobBegun>(&*reply)) return take(*begun);
        return Error{"the node at " + wire::place_of(seed_) +
                     " gave an answer to another question"};
      }
      if (is_interrupted()) {
        drop();
        return std::optional<Submitted>{};
      }
      if (is_door_there()) continue;
      if (auto moved = move_on(); !moved) return std::move(moved).error();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<wire::ReplyBody> ask(const wire::RequestBody& body) {
    auto replies = client_.ask_all({seed_}, body, ask_again_after);
    if (replies.front()) heard_ = Clock::now();
    return std::move(replies.front());
  }

  std::optional<Submitted> take(const wire::JobBegun& begun) {
    for (const std::string& name : begun.lost)
      print_error("node " + printable(name) + " is gone: the job begins without it");
    return Submitted{begun.job, seed_, actor::text_of(settings_, "name")};
  }

  bool is_door_there() {
    const auto reply = ask(wire::GetStatus{});
    if (const auto* status = reply ? std::get_if<wire::NodeStatus>(&*reply) : nullptr)
      learn(*status);
    return Clock::now() < heard_ + silence_max;
  }

  /// Notes the node's name and the live nodes that it knows.
  void learn(const wire::NodeStatus& status) {
    name_ = printable(status.self.name);
    others_.clear();
    for (const core::NodeRecord& other : status.others)
      if (core::is_live(other.state)) others_.insert(other.address);
  }

  /// Gives the job another name; false where it has to keep its name.
  bool rename() {
    const std::string name = tries_++ < tries_max ? other_name_() : std::string{};
    if (name.empty()) return false;
    drop();
    job_ = wire::draw_id();
    for (auto& [key, text] : settings_)
      if (key == "name") text = name;
    return true;
  }

  /// Submits the job to another node under another number: the former node may live, and may still
  /// start the former job.
  Result<void> move_on() {
    const std::string silent = "node " + name_ + " at " + wire::place_of(seed_);
    drop();
    others_.erase(seed_);
    const std::vector<std::string> asked{others_.begin(), others_.end()};
    const auto replies = client_.ask_all(asked, wire::GetStatus{}, close_within);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto* status = replies[i] ? std::get_if<wire::NodeStatus>(&*replies[i]) : nullptr;
      if (status == nullptr) continue;
      seed_ = asked[i];
      job_ = wire::draw_id();
      heard_ = Clock::now();
      learn(*status);
      print_error(silent + " answers no more: the job is submitted to " + name_);
      return {};
    }
    return Error{silent + " answers no more" +
                 (asked.empty() ? ", and no other node is known" : ", nor does any other node")};
  }

  /// Has nodes drop the job, with the data that they have read for it.
  void drop() {
    std::vector<std::string> all{others_.begin(), others_.end()};
    all.push_back(seed_);
    (void)client_.ask_all(all, wire::CloseJob{job_}, close_within);
  }

  actor::ClusterClient& client_;
  wire::JobSettings settings_;
  const OtherName& other_name_;
  int tries_ = 0;
  std::string seed_;
  std::string name_;
  wire::JobId job_ = wire::draw_id();
  Clock::time_point heard_ = Clock::now();
  std::set<std::string> others_;
};

}  // namespace

Result<std::optional<Submitted>> submit_job(Access& access, const wire::NodeStatus& node,
                                            wire::JobSettings settings,
                                            const OtherName& other_name) {
  return Submitter{access, node, std::move(settings), other_name}.run();
}

}  // namespace starling::program
