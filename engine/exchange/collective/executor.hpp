/// Runs schedules at one member: messages in, messages and results out. It has no I/O, clock or
/// thread; the caller carries the messages between executors, in any order, each exactly once
/// (core/channel/channel.hpp).
///
///     executor.start(effects, id, program, values, slices)   -> Send ...
///     executor.on(effects, from, message)                    -> Send ..., Completed
///
/// Each chunk is cut into slices, and each slice of a chunk follows its own instructions. So the
/// slices flow one behind another without waiting for the rounds of others, as far as the window
/// allows, and several collectives run at the same time. The result does not depend on the order in
/// which messages arrive, not even in its last bit: a member adds in the order of the schedule.
///
/// Bounds: a member sends slice s to a receiver only when the receiver has finished slice s -
/// window. A receiver acknowledges what it has finished (Ack) after every half window, as long as
/// the sender may wait for that. So at most `window` slices of a collective wait at a member. A
/// collective stays open until this member has finished it and knows that all its receivers have
/// begun it. A receiver that contributes to this member's results has begun it by then; every other
/// receiver acknowledges the last slice. At most `open_max` collectives are open at a member, so
/// messages of at most `open_max` collectives reach a member that has not started them yet. No
/// deadlock follows: every member may always send the lowest slice that any member has not
/// finished.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/tensor_pool.hpp"
#include "starling/engine/exchange/collective/program.hpp"

namespace starling::collective {

/// The number of a collective, the same at all its members.
using CollectiveId = std::uint64_t;

/// Elements in memory that `owner` keeps alive, such as the memory of a received message.
template <class Element>
struct SharedElements {
  std::shared_ptr<const void> owner;
  std::span<const Element> elements;

  /// Copies the elements into memory of the pool, because fresh pages cost more than the copy.
  static SharedElements copy_of(std::span<const Element> elements) {
    static_assert(std::is_trivially_copyable_v<Element>);
    const std::size_t bytes = elements.size_bytes();
    const std::shared_ptr<Element> copy{
        static_cast<Element*>(tensor_pool::allocate(bytes)),
        [bytes](Element* memory) { tensor_pool::release(memory, bytes); }};
    std::ranges::copy(elements, copy.get());
    return {copy, {copy.get(), elements.size()}};
  }
};

/// A message with one slice of a chunk.
template <class Element>
struct Piece {
  CollectiveId collective = 0;
  std::uint32_t slice = 0;
  ChunkId chunk = 0;
  /// The round of the move in the schedule.
  std::uint32_t round = 0;
  SharedElements<Element> values;
};

/// The sender of this message has finished the first `slices` slices of all chunks.
struct Ack {
  CollectiveId collective = 0;
  std::uint32_t slices = 0;
};

template <class Element>
using Message = std::variant<Piece<Element>, Ack>;

/// Send `message` to the member `to`.
template <class Element>
struct Send {
  Rank to;
  Message<Element> message;
};

/// A slice of a chunk, and where it is in the vector.
struct SliceId {
  ChunkId chunk = 0;
  std::uint32_t slice = 0;
  /// The index of its first element.
  std::size_t first = 0;
};

/// The collective is finished at this member. In `values`, chunks of which this member is not a
/// destination have no meaning.
template <class Element>
struct Completed {
  CollectiveId collective;
  std::vector<Element> values;
};

template <class Element>
using Effects = std::vector<std::variant<Send<Element>, Completed<Element>>>;

struct ExecutorOptions {
  /// At most this many slices of a collective are in progress. At least 1.
  std::uint32_t window = 4;
  /// At most this many collectives are open. At least 1.
  std::size_t open_max = 8;
};

/// One call at a time; not thread-safe. Element has +=.
template <class Element>
class Executor {
 public:
  /// Called with the elements of a slice before they are sent, once for each receiver, and after
  /// they were received and added or copied. May change them: the member goes on with the changed
  /// elements.
  using Hook = std::function<void(const Instruction& instruction, const SliceId& slice,
                                  std::span<Element> elements)>;

  /// Requires: `window` and `open_max` are at least 1.
  explicit Executor(ExecutorOptions options = {}, Hook hook = {})
      : options_(options), hook_(std::move(hook)) {
    STARLING_CHECK(options.window >= 1 && options.open_max >= 1);
  }

  /// Starts a collective with this member's values. All members start it with the same schedule,
  /// number of values, and number of slices. Requires: !is_full(), slices >= 1, and `id` is above
  /// the ids of all collectives that this member has started.
  void start(Effects<Element>& out, CollectiveId id, std::shared_ptr<const Program> program,
             std::vector<Element> values, std::uint32_t slices) {
    auto bounds = slice_bounds(program->chunks, values.size(), slices);
    start(out, id, std::move(program), std::move(values), std::move(bounds));
  }
  /// As above, but with slices of any sizes. `bounds` says where they begin: first the slices of
  /// the first chunk, and so on; and at last the number of values. Requires also: `bounds` ascends
  /// from 0, and all chunks have the same number of slices.
  void start(Effects<Element>& out, CollectiveId id, std::shared_ptr<const Program> program,
             std::vector<Element> values, std::vector<std::size_t> bounds) {
    const std::size_t chunks = program->chunks.size();
    STARLING_CHECK(!is_full() && (id > last_started_ || !has_started_));
    STARLING_CHECK(bounds.size() > chunks && (bounds.size() - 1) % chunks == 0 &&
                   std::ranges::is_sorted(bounds) && bounds.back() == values.size());
    has_started_ = true;
    last_started_ = id;
    OpenCollective& open = open_[id];
    open.slices = static_cast<std::uint32_t>((bounds.size() - 1) / chunks);
    open.bounds = std::move(bounds);
    open.program = std::move(program);
    open.values = std::move(values);
    for (const Rank to : open.program->receivers) open.finished_by[to] = 0;
    auto early = early_.extract(id);
    open_window(out, id, open);
    if (!early.empty())
      for (auto& [from, message] : early.mapped()) std::ignore = on(out, from, std::move(message));
    finish(out, id);
  }

  /// Handles a message from another member. Returns false, and does nothing, if the message does
  /// not fit its collective, or if the collective is closed. An Ack of a correct member may come
  /// after the collective was closed if a later message has overtaken the Ack.
  [[nodiscard]] bool on(Effects<Element>& out, Rank from, Message<Element> message) {
    const CollectiveId id = std::visit([](const auto& m) { return m.collective; }, message);
    if (!has_started_ || id > last_started_) return keep_early(id, from, std::move(message));
    const auto found = open_.find(id);
    if (found == open_.end()) return false;
    const bool is_valid = std::visit(
        [&](auto& m) { return on(out, id, found->second, from, std::move(m)); }, message);
    finish(out, id);
    return is_valid;
  }

  /// True if no collective can be started now.
  [[nodiscard]] bool is_full() const { return open_.size() >= options_.open_max; }
  /// Returns how many collectives are open.
  [[nodiscard]] std::size_t open_count() const { return open_.size(); }
  /// Returns how many pieces have arrived before this member could use them.
  [[nodiscard]] std::size_t waiting_pieces() const {
    std::size_t pieces = 0;
    for (const auto& [id, open] : open_) pieces += open.arrived.size();
    for (const auto& [id, messages] : early_) pieces += messages.size();
    return pieces;
  }

 private:
  /// Names a piece that arrives: slice, chunk, round and sender.
  using Key = std::tuple<std::uint32_t, ChunkId, std::uint32_t, Rank>;

  /// A slice in progress.
  struct SliceState {
    /// By chunk: the next instruction.
    std::vector<std::size_t> next;
    /// The number of chunks of which instructions are left.
    std::size_t chunks_left = 0;
  };

  struct OpenCollective {
    std::shared_ptr<const Program> program;
    std::vector<Element> values;
    /// Where the slices begin: first those of the first chunk.
    std::vector<std::size_t> bounds;
    /// The number of slices of each chunk.
    std::uint32_t slices = 1;
    /// The slices in progress, and the number of slices before them, which are finished.
    std::deque<SliceState> in_progress;
    std::uint32_t finished = 0;
    /// The number of slices in the last Ack.
    std::uint32_t acked = 0;
    bool is_completed = false;
    std::map<Key, SharedElements<Element>> arrived;
    /// By receiver: how many slices it has finished.
    std::map<Rank, std::uint32_t> finished_by;
  };

  bool keep_early(CollectiveId id, Rank from, Message<Element> message) {
    if (!early_.contains(id) && early_.size() >= options_.open_max) return false;
    early_[id].emplace_back(from, std::move(message));
    return true;
  }

  bool on(Effects<Element>& out, CollectiveId id, OpenCollective& open, Rank from,
          Piece<Element> piece) {
    if (piece.slice < open.finished || piece.slice >= open.slices ||
        piece.slice - open.finished >= options_.window ||
        piece.chunk >= open.program->chunks.size() ||
        piece.values.elements.size() != size_of(open, piece.slice, piece.chunk))
      return false;
    const auto& instructions = open.program->instructions[piece.chunk];
    const bool is_expected = std::ranges::any_of(instructions, [&](const Instruction& i) {
      return i.kind == Instruction::Kind::receive && i.peer == from && i.round == piece.round;
    });
    if (!is_expected) return false;
    open.arrived[{piece.slice, piece.chunk, piece.round, from}] = std::move(piece.values);
    execute(out, id, open, piece.slice, piece.chunk);
    return true;
  }

  bool on(Effects<Element>& out, CollectiveId id, OpenCollective& open, Rank from, Ack ack) {
    const auto found = open.finished_by.find(from);
    if (found == open.finished_by.end() || ack.slices > open.slices) return false;
    found->second = std::max(found->second, ack.slices);
    const std::uint32_t first = open.finished;
    for (std::uint32_t s = first; s < first + open.in_progress.size(); ++s)
      for (ChunkId c = 0; c < open.program->chunks.size(); ++c) execute(out, id, open, s, c);
    return true;
  }

  [[nodiscard]] static std::size_t begin_of(const OpenCollective& open, std::uint32_t slice,
                                            ChunkId chunk) {
    return open.bounds[std::size_t{chunk} * open.slices + slice];
  }
  [[nodiscard]] static std::size_t size_of(const OpenCollective& open, std::uint32_t slice,
                                           ChunkId chunk) {
    return open.bounds[std::size_t{chunk} * open.slices + slice + 1] - begin_of(open, slice, chunk);
  }

  /// Executes the instructions of one slice of a chunk as far as possible.
  void execute(Effects<Element>& out, CollectiveId id, OpenCollective& open, std::uint32_t s,
               ChunkId chunk) {
    SliceState& slice = open.in_progress[s - open.finished];
    const auto& instructions = open.program->instructions[chunk];
    std::size_t& next = slice.next[chunk];
    if (next == instructions.size()) return;
    for (; next < instructions.size(); ++next)
      if (!execute(out, id, open, s, chunk, instructions[next])) return;
    --slice.chunks_left;
  }

  /// Executes one instruction. Returns false if it must wait.
  bool execute(Effects<Element>& out, CollectiveId id, OpenCollective& open, std::uint32_t s,
               ChunkId chunk, const Instruction& instruction) {
    const SliceId slice{chunk, s, begin_of(open, s, chunk)};
    const auto elements = std::span{open.values}.subspan(slice.first, size_of(open, s, chunk));
    if (instruction.kind == Instruction::Kind::send) {
      if (s >= open.finished_by.at(instruction.peer) + options_.window) return false;
      if (hook_) hook_(instruction, slice, elements);
      out.push_back(Send<Element>{instruction.peer,
                                  Piece<Element>{id, s, chunk, instruction.round,
                                                 SharedElements<Element>::copy_of(elements)}});
      return true;
    }
    const auto found = open.arrived.find({s, chunk, instruction.round, instruction.peer});
    if (found == open.arrived.end()) return false;
    const std::span<const Element> values = found->second.elements;
    if (instruction.action == ReceiveAction::copy)
      std::ranges::copy(values, elements.begin());
    else  // gcc 12 vectorizes this loop, but no std::ranges::transform
      for (std::size_t i = 0; i < values.size(); ++i) elements[i] += values[i];
    open.arrived.erase(found);
    if (hook_) hook_(instruction, slice, elements);
    return true;
  }

  /// Begins slices until the window is full or all are in progress.
  void open_window(Effects<Element>& out, CollectiveId id, OpenCollective& open) {
    const std::size_t chunks = open.program->chunks.size();
    while (open.in_progress.size() < options_.window &&
           open.finished + open.in_progress.size() < open.slices) {
      const auto s = static_cast<std::uint32_t>(open.finished + open.in_progress.size());
      SliceState& slice = open.in_progress.emplace_back();
      slice.next.assign(chunks, 0);
      for (const auto& instructions : open.program->instructions)
        slice.chunks_left += instructions.empty() ? 0 : 1;
      // Members begin with different chunks, so that they do not all send to the same one first.
      for (ChunkId c = 0; c < chunks; ++c)
        execute(out, id, open, s, static_cast<ChunkId>((open.program->self + 1 + c) % chunks));
    }
  }

  /// Removes finished slices, acknowledges them to the senders, and ends the collective after the
  /// last slice.
  void finish(Effects<Element>& out, CollectiveId id) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;  // finished by a message that had come early
    OpenCollective& open = found->second;
    while (!open.in_progress.empty() && open.in_progress.front().chunks_left == 0) {
      open.in_progress.pop_front();
      ++open.finished;
      open_window(out, id, open);
    }
    const bool is_last = open.finished == open.slices;
    const auto acknowledge = [&](const std::vector<Rank>& senders) {
      open.acked = open.finished;
      for (const Rank to : senders) out.push_back(Send<Element>{to, Ack{id, open.finished}});
    };
    // The senders may not send all of the rest yet.
    const bool senders_wait = !is_last && open.acked + options_.window < open.slices;
    if (senders_wait && open.finished - open.acked >= (options_.window + 1) / 2)
      acknowledge(open.program->senders);
    if (!is_last) return;
    if (!std::exchange(open.is_completed, true)) {
      acknowledge(open.program->last_acks_to);
      out.push_back(Completed<Element>{id, std::move(open.values)});
    }
    if (std::ranges::all_of(open.program->last_acks_from,
                            [&](Rank to) { return open.finished_by.at(to) == open.slices; }))
      open_.erase(found);
  }

  ExecutorOptions options_;
  Hook hook_;
  std::map<CollectiveId, OpenCollective> open_;
  /// Messages of collectives that this member has not started.
  std::map<CollectiveId, std::vector<std::pair<Rank, Message<Element>>>> early_;
  bool has_started_ = false;
  CollectiveId last_started_ = 0;
};

}  // namespace starling::collective
