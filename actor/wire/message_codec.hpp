/// Serialises the cores' messages, field after field. Tensors go beside the archive.
#pragma once

#include "starling/actor/wire/archive.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::core {

template <class A>
void save_slice(A& archive, const Slice& slice) {
  const std::uint8_t width =
      slice.empty() ? 0 : static_cast<std::uint8_t>(slice.buffer->element_bytes());
  archive(width, wire::count_of(slice.count), slice.rows);
  if (width > 0) archive.attach({slice.buffer, slice.bytes()});
}

template <class A>
void load_slice(A& archive, Slice& slice) {
  std::uint8_t width = 0;
  std::uint32_t count = 0;
  archive(width, count, slice.rows);
  const bool is_known = count == 0 ? width == 0 : width == 4 || width == 8;
  if (!is_known) throw wire::DecodeError{"holds values of no type"};
  slice.offset = 0;
  slice.count = count;
  slice.buffer.reset();
  if (width == 0) return;
  const wire::Attachment values = archive.take_attached(std::size_t{count} * width);
  if (values.owner && Buffer::can_view(values.bytes, width)) {
    slice.buffer = Buffer::view(values.owner, values.bytes, width);
    return;
  }
  auto buffer = Buffer::make(count, width);
  std::ranges::copy(values.bytes, buffer->bytes().begin());
  slice.buffer = std::move(buffer);
}

template <class A>
void serialize(A& archive, Slice& slice) {
  if constexpr (wire::is_encoder<A>)
    save_slice(archive, slice);
  else
    load_slice(archive, slice);
}

template <class A>
void serialize(A& archive, Pull& m) {
  archive(m.worker, m.range, m.at, m.rows);
}
template <class A>
void serialize(A& archive, Value& m) {
  archive(m.range, m.at, m.value);
}
template <class A>
void serialize(A& archive, Push& m) {
  archive(m.worker, m.incarnation, m.range, m.step, m.samples, m.samples_sum, m.update, m.enters,
          m.view);
}
template <class A>
void serialize(A& archive, Ack& m) {
  archive(m.range, m.step, m.incarnation, m.view);
}
template <class A>
void serialize(A& archive, Ended& m) {
  archive(m.worker, m.step);
}
template <class A>
void serialize(A& archive, Arrived& m) {
  archive(m.worker, m.step);
}
template <class A>
void serialize(A& archive, Proceed& m) {
  archive(m.step);
}
template <class A>
void serialize(A& archive, WorkerStatus& m) {
  auto phase = static_cast<std::uint8_t>(m.phase);
  archive(m.member, phase, m.step, m.held);
  if (phase > static_cast<std::uint8_t>(WorkerStatus::Phase::ended))
    throw wire::DecodeError{"holds a worker in no known phase"};
  m.phase = static_cast<WorkerStatus::Phase>(phase);
}
template <class A>
void serialize(A& archive, StepQuery& m) {
  archive(m.from, m.draw);
}
template <class A>
void serialize(A& archive, StepAnswer& m) {
  archive(m.from, m.draw, m.step);
}
template <class A>
void serialize(A& archive, NotifyAt& m) {
  archive(m.from, m.draw, m.floor);
}
template <class A>
void serialize(A& archive, CaughtUp& m) {
  archive(m.from, m.draw);
}
template <class A>
void serialize(A& archive, LedgerEntry& m) {
  archive(m.incarnation, m.step, m.samples);
}
template <class A>
void serialize(A& archive, Awaited& m) {
  archive(m.worker, m.incarnation, m.from);
}
template <class A>
void serialize(A& archive, RangeState& m) {
  archive(m.range, m.value, m.slots, m.updates, m.samples, m.round, m.ledger, m.gathered, m.awaited,
          m.ticket);
}

template <class A>
void serialize(A& archive, Member& m) {
  archive(m.id, m.incarnation, m.works, m.owns, m.node);
}
template <class A>
void serialize(A& archive, RangeOwner& m) {
  archive(m.id, m.since, m.retiring);
}
template <class A>
void serialize(A& archive, Ownership& m) {
  archive(m.view, m.owners);
}
template <class A>
void serialize(A& archive, MemberIncarnation& m) {
  archive(m.id, m.incarnation);
}
template <class A>
void serialize(A& archive, Configuration& m) {
  archive(m.epoch, m.members, m.council, m.ranges, m.departed, m.coordinator);
}

template <class A>
void serialize(A& archive, Install& m) {
  archive(m.view, m.state);
  if (!m.state) throw wire::DecodeError{"installs nothing"};
}
template <class A>
void serialize(A& archive, Forward& m) {
  archive(m.range, m.view, m.number, m.push, m.ended);
}
template <class A>
void serialize(A& archive, Held& m) {
  archive(m.range, m.view, m.number);
}

template <class A>
void serialize(A& archive, Ballot& m) {
  archive(m.round, m.by);
}
template <class A>
void serialize(A& archive, Ask& m) {
  archive(m.epoch);
}
template <class A>
void serialize(A& archive, RangeReport& m) {
  archive(m.epoch, m.full);
}
template <class A>
void serialize(A& archive, Prepare& m) {
  archive(m.epoch, m.ballot);
}
template <class A>
void serialize(A& archive, Promise& m) {
  archive(m.epoch, m.ballot, m.accepted, m.value);
}
template <class A>
void serialize(A& archive, Nack& m) {
  archive(m.epoch, m.promised);
}
template <class A>
void serialize(A& archive, Accept& m) {
  archive(m.epoch, m.ballot, m.value);
}
template <class A>
void serialize(A& archive, Accepted& m) {
  archive(m.epoch, m.ballot);
}

template <class A>
void serialize(A& archive, SuspicionReport& m) {
  archive(m.silent);
}

template <class A>
void serialize(A& archive, JoinRequest& m) {
  archive(m.member);
}
template <class A>
void serialize(A& archive, LeaveRequest& m) {
  archive(m.member);
}

template <class A>
void serialize(A& archive, JoinRefused& m) {
  archive(m.why);
}

template <class A>
void serialize(A& archive, Envelope& m) {
  auto traffic_class = static_cast<std::uint8_t>(m.traffic_class);
  archive(m.from, m.to, m.epoch, traffic_class, m.packet.from, m.packet.to, m.packet.sequence,
          m.packet.acknowledged, m.packet.held, m.packet.payload);
  if (traffic_class > static_cast<std::uint8_t>(TrafficClass::data))
    throw wire::DecodeError{"has no known traffic class"};
  if (m.packet.payload && !*m.packet.payload) throw wire::DecodeError{"holds no message"};
  m.traffic_class = static_cast<TrafficClass>(traffic_class);
}

}  // namespace starling::core
