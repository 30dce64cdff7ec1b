/// Decodes the frames of nodes that do not belong to a job: membership messages, requests and
/// replies.
#include "starling/actor/wire/control.hpp"

#include "starling/engine/core/member/message_validator.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

/// Requires that is_valid() does not fail on any configuration that a message contains.
void validate(const core::ConfigurationPtr& configuration) {
  (void)core::is_valid(configuration, 16);
}
void validate(const wire::StartJob& start) { validate(start.initial_configuration); }
void validate(const wire::JobDescription& description) { validate(description.configuration); }
void validate(const wire::NodeStatus& status) {
  for (const wire::JobStatus& job : status.jobs) validate(job.configuration);
}
void validate(const wire::Request& request) {
  if (const auto* start = std::get_if<wire::StartJob>(&request.body)) validate(*start);
}
void validate(const wire::Reply& reply) {
  if (const auto* description = std::get_if<wire::JobDescription>(&reply.body))
    validate(*description);
  if (const auto* status = std::get_if<wire::NodeStatus>(&reply.body)) validate(*status);
}
/// membership_fuzz.cpp checks membership messages.
void validate(const core::MembershipMessage&) {}

}  // namespace

bool read(Input input) {
  const wire::FrameView frame = frame_in(input);
  const auto decoded =
      with_bounded_heap(heap_bound(input.size()), [&] { return decode_control(frame); });
  if (!decoded) return false;
  require_same(wire::encode(*decoded), frame);
  std::visit([](const auto& body) { validate(body); }, decoded->body);
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
