/// Decodes the frames that nodes send each other apart from the packets of jobs: membership,
/// requests and replies.
#include "starling/actor/wire/control.hpp"

#include "starling/engine/core/member/message_validator.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

/// Requires that is_valid() can check any configuration that a message has.
void judge(const core::ConfigurationPtr& configuration) { (void)core::is_valid(configuration, 16); }
void judge(const wire::StartJob& start) { judge(start.initial_configuration); }
void judge(const wire::JobDescription& description) { judge(description.configuration); }
void judge(const wire::NodeStatus& status) {
  for (const wire::JobStatus& job : status.jobs) judge(job.configuration);
}
void judge(const wire::Request& request) {
  if (const auto* start = std::get_if<wire::StartJob>(&request.body)) judge(*start);
}
void judge(const wire::Reply& reply) {
  if (const auto* description = std::get_if<wire::JobDescription>(&reply.body)) judge(*description);
  if (const auto* status = std::get_if<wire::NodeStatus>(&reply.body)) judge(*status);
}
/// membership_fuzz.cpp checks these.
void judge(const core::MembershipMessage&) {}

}  // namespace

bool read(Input input) {
  const wire::FrameView frame = frame_in(input);
  const auto decoded = bounded(heap_bound(input.size()), [&] { return decode_control(frame); });
  if (!decoded) return false;
  require_same(wire::encode(*decoded), frame);
  std::visit([](const auto& body) { judge(body); }, decoded->body);
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& message : wire::example_control_messages())
    all.push_back(input_of(wire::encode(message)));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
