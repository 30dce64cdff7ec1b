/// Converts between what collective::Executor sends and the messages of exchanges with rounds.
#pragma once

#include "starling/engine/exchange/allreduce/messages.hpp"
#include "starling/engine/exchange/collective/executor.hpp"

namespace starling::core {

/// Returns the message for a piece. The message shares the piece's elements. `is_compact` is as in
/// Slice.
template <class T>
[[nodiscard]] SumPiece to_message(const collective::Piece<T>& piece, Epoch epoch,
                                  bool is_compact = false) {
  SumPiece message{epoch, piece.collective, piece.slice, piece.chunk, piece.round, {}};
  const auto& [owner, elements] = piece.values;
  if (!elements.empty())
    message.values = {Buffer::view(owner, std::as_bytes(elements), sizeof(T)), 0, elements.size(),
                      nullptr, is_compact};
  return message;
}

[[nodiscard]] inline SumAck to_message(const collective::Ack& ack, Epoch epoch) {
  return {epoch, ack.collective, ack.slices};
}

/// Returns the piece in a message. The piece shares the message's elements. Requires: they are of
/// type T.
template <class T>
[[nodiscard]] collective::Piece<T> to_piece(const SumPiece& message) {
  return {message.sum,
          message.slice,
          message.chunk,
          message.move_round,
          {message.values.buffer, message.values.as<T>()}};
}

[[nodiscard]] inline collective::Ack to_ack(const SumAck& message) {
  return {message.sum, message.slices};
}

}  // namespace starling::core
