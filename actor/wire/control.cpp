#include "starling/actor/wire/control.hpp"

#include "starling/actor/wire/framing.hpp"
#include "starling/actor/wire/message_codec.hpp"

namespace starling::core {

template <class A>
void serialize(A& archive, NodeRecord& m) {
  auto state = static_cast<std::uint8_t>(m.state);
  archive(m.id, m.address, m.name, m.workers, m.incarnation, state);
  if (state > static_cast<std::uint8_t>(NodeState::left))
    throw wire::DecodeError{"holds a member in no known state"};
  m.state = static_cast<NodeState>(state);
}
template <class A>
void serialize(A& archive, NodeUpdate& m) {
  archive(m.record, m.by);
}
template <class A>
void serialize(A& archive, Ping& m) {
  archive(m.to, m.sequence);
}
template <class A>
void serialize(A& archive, PingAck& m) {
  archive(m.sequence);
}
template <class A>
void serialize(A& archive, PingRequest& m) {
  archive(m.target, m.sequence);
}
template <class A>
void serialize(A& archive, PingNack& m) {
  archive(m.sequence);
}
template <class A>
void serialize(A& archive, Digest& m) {
  archive(m.buckets, m.answer);
}
template <class A>
void serialize(A& archive, Records& m) {
  archive(m.records);
}
template <class A>
void serialize(A& archive, NameTaken& m) {
  archive(m.to, m.holder);
}
template <class A>
void serialize(A& archive, MembershipMessage& m) {
  archive(m.from, m.body, m.updates);
}

}  // namespace starling::core

namespace starling::wire {
namespace {

template <class A>
void take_state(A& archive, JobState& state) {
  auto number = static_cast<std::uint8_t>(state);
  archive(number);
  if (number > static_cast<std::uint8_t>(JobState::failed))
    throw DecodeError{"holds a job in no known state"};
  state = static_cast<JobState>(number);
}

}  // namespace

template <class A>
void serialize(A& archive, JobSummary& m) {
  take_state(archive, m.state);
  archive(m.why, m.figures);
}
template <class A>
void serialize(A& archive, SubmitJob& m) {
  archive(m.job, m.settings);
}
template <class A>
void serialize(A& archive, PrepareJob& m) {
  archive(m.job, m.settings, m.nodes, m.client);
}
template <class A>
void serialize(A& archive, StartJob& m) {
  archive(m.job, m.first, m.former);
}
template <class A>
void serialize(A& archive, AskJob& m) {
  archive(m.job);
}
template <class A>
void serialize(A& archive, ReadRanges& m) {
  archive(m.job, m.from, m.whole);
}
template <class A>
void serialize(A& archive, StopJob& m) {
  archive(m.job, m.is_done);
}
template <class A>
void serialize(A& archive, CloseJob& m) {
  archive(m.job, m.summary);
}
template <class A>
void serialize(A& archive, PauseJob& m) {
  archive(m.job, m.milliseconds);
}
template <class A>
void serialize(A& archive, AskLog& m) {
  archive(m.from);
}
template <class A>
void serialize(A& archive, LogLine& m) {
  archive(m.time_us, m.job, m.text);
}
template <class A>
void serialize(A& archive, LogLines& m) {
  archive(m.from, m.lines, m.next);
}
template <class A>
void serialize(A& archive, Refused& m) {
  archive(m.why, m.is_name_taken);
}
template <class A>
void serialize(A& archive, JobPrepared& m) {
  archive(m.fingerprint, m.ranges);
}
template <class A>
void serialize(A& archive, JobBegun& m) {
  archive(m.job, m.lost);
}
template <class A>
void serialize(A& archive, MemberStatus& m) {
  archive(m.member, m.incarnation, m.state, m.why, m.step, m.samples, m.waited_ns, m.loss_sum,
          m.losses, m.draws, m.passes, m.drawn, m.is_paused, m.held);
}
template <class A>
void serialize(A& archive, JobStatus& m) {
  archive(m.job, m.settings, m.here, m.configuration, m.worked_ms, m.client, m.hindrance, m.failure,
          m.since_ms, m.steps_total, m.steps_in_epoch, m.time_max_ms, m.updates_per_s, m.loss,
          m.losses);
  take_state(archive, m.state);
}
template <class A>
void serialize(A& archive, NodeStatus& m) {
  auto& c = m.counts;
  archive(m.self, m.others, c.probes, c.probes_failed, c.suspicions, c.deaths, c.refutations,
          m.jobs, m.revoked);
}
template <class A>
void serialize(A& archive, JobRecord& m) {
  archive(m.job, m.name, m.what, m.client, m.summary, m.is_told, m.began_ms, m.ended_ms, m.updates,
          m.step_max, m.steps_total);
}
template <class A>
void serialize(A& archive, JobRecords& m) {
  archive(m.jobs);
}
template <class A>
void serialize(A& archive, JobFacts& m) {
  archive(m.settings, m.workers, m.configuration, m.age_ms, m.client);
}
template <class A>
void serialize(A& archive, Ranges& m) {
  archive(m.states, m.next);
}
template <class A>
void serialize(A& archive, Request& m) {
  archive(m.number, m.body);
}
template <class A>
void serialize(A& archive, Reply& m) {
  archive(m.number, m.body);
}
template <class A>
void serialize(A& archive, ControlMessage& m) {
  archive(m.from, m.address, m.body);
}

Frame encode(const ControlMessage& message) {
  return encode_as(Kind::control, [&](Encoder& encoder) { encoder(message); });
}

Result<ControlMessage> decode_control(const FrameView& frame) {
  return decode_as<ControlMessage>(
      frame, Kind::control, [](Decoder& decoder, ControlMessage& message) { decoder(message); });
}

}  // namespace starling::wire
