#include "starling/engine/core/flow/output_store.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "starling/base/check.hpp"
#include "starling/base/exception_text.hpp"
#include "starling/engine/flow/values/codec.hpp"

namespace starling::core {

void OutputStore::begin(ActionPtr action, flow::Plan plan) {
  ActionState& state = actions_[action->id];
  state.action = std::move(action);
  for (flow::PlannedStage& planned : plan.stages)
    state.stages.push_back({std::move(planned.stage), nullptr});
}

OutputStore::StageState& OutputStore::stage(const StageName& name) {
  return actions_.at(name.action).stages.at(name.stage);
}

const std::shared_ptr<flow::SpillFile>& OutputStore::file_of(StageState& stage) {
  if (!stage.file) stage.file = memory_->make_spill_file();
  return stage.file;
}

// --- tasks --------------------------------------------------------------------------------------

OutputStore::RunnableTask OutputStore::make_task(const RunTask& run,
                                                 const std::function<bool()>& is_stopped) {
  const PartName& name = run.task;
  const ActionState& state = actions_.at(name.stage.action);
  StageState& own = stage(name.stage);
  std::map<flow::StageId, flow::KeptOutputs::Parts> read_parts;
  for (const Action::Read& read : state.action->reads(name.stage.stage, name.part)) {
    const flow::Part parts = state.action->stages[read.stage].parts;
    flow::KeptOutputs::Parts& outputs = read_parts[read.stage];
    outputs.resize(parts);
    const flow::Part end = read.part ? *read.part + 1 : parts;
    for (flow::Part part = read.part.value_or(0); part < end; ++part) {
      const PartName output = state.action->output_of(read.stage, part);
      const auto whole = outputs_.find(output);
      outputs[part] =
          whole != outputs_.end() ? whole->second.output : pieces_.at({output, read.piece}).output;
    }
  }
  std::vector<flow::StageOutputs> inputs;
  for (auto& [id, parts] : read_parts)
    inputs.push_back({state.stages[id].stage.get(),
                      std::make_shared<const flow::KeptOutputs::Parts>(std::move(parts))});
  return {own.stage, flow::Task{name.part, run.is_last_attempt, std::move(inputs), *memory_,
                                file_of(own), is_stopped}};
}

void OutputStore::put(const PartName& task, flow::Output output) {
  const auto action = actions_.find(task.stage.action);
  if (action == actions_.end()) return;
  outputs_[action->second.action->output_of(task.stage.stage, task.part)] = {
      std::move(output), stage(task.stage).stage->form};
}

std::vector<flow::Output> OutputStore::results(ActionId id) const {
  const Action& action = *actions_.at(id).action;
  std::vector<flow::Output> results;
  for (flow::Part part = 0; part < action.stages[action.last()].parts; ++part)
    results.push_back(outputs_.at(action.output_of(action.last(), part)).output);
  return results;
}

// --- sending ------------------------------------------------------------------------------------

PieceChunks OutputStore::execute(const ReadPieces& read) {
  PieceChunks answer{read.request.fetch, {}};
  std::uint32_t number = read.request.chunk;
  std::size_t left = chunk_bytes_;
  for (const PieceName& piece : read.request.pieces) {
    answer.chunks.push_back(read_chunk(read.reader, piece, number, left));
    const PieceChunk& chunk = answer.chunks.back();
    left -= std::min<std::size_t>(left, chunk.bytes.size);
    if (left == 0) break;
    number = 0;
  }
  return answer;
}

PieceChunk OutputStore::read_chunk(MemberId reader, const PieceName& piece, std::uint32_t number,
                                   std::size_t bytes_max) {
  const std::pair key{reader, piece};
  PieceChunk missing{piece, number};
  missing.is_missing = true;
  auto reading = readings_.find(key);
  if (reading != readings_.end() && reading->second.last_chunk.chunk == number &&
      reading->second.reader)
    return reading->second.last_chunk;  // asked for once more
  const auto output = outputs_.find(piece.output);
  if (output == outputs_.end()) return missing;
  if (number != 0 && (reading == readings_.end() || reading->second.last_chunk.chunk + 1 != number))
    return missing;
  try {
    if (number == 0) {
      reading = readings_.insert_or_assign(key, Reading{}).first;
      reading->second.reader = output->second.form.read(output->second.output, piece.piece);
      reading->second.last_chunk.piece = piece;
    }
    read_next(reading->second, number, bytes_max);
  } catch (const std::exception& fault) {
    readings_.erase(key);
    missing.is_missing = false;
    missing.error = "an output cannot be read: " + exception_text(fault);
    return missing;
  }
  PieceChunk chunk = reading->second.last_chunk;
  if (chunk.is_last) readings_.erase(reading);
  return chunk;
}

/// Each block travels after its size in 4 bytes, so that the receiver finds its end.
void OutputStore::read_next(Reading& reading, std::uint32_t number, std::size_t bytes_max) {
  // Does not erase the sent bytes at each chunk, because a block may be much larger than a chunk.
  if (reading.sent >= reading.rest.size() / 2) {
    reading.rest.erase(reading.rest.begin(),
                       reading.rest.begin() + static_cast<std::ptrdiff_t>(reading.sent));
    reading.sent = 0;
  }
  while (!reading.is_at_end && reading.rest.size() - reading.sent < bytes_max) {
    const std::vector<std::byte> block = reading.reader->next();
    reading.is_at_end = block.empty();
    if (block.empty()) break;
    if (block.size() > UINT32_MAX) throw std::length_error{"a record of more than 4 GiB"};
    flow::put(reading.rest, static_cast<std::uint32_t>(block.size()));
    reading.rest.insert(reading.rest.end(), block.begin(), block.end());
  }
  const std::span rest = std::span{reading.rest}.subspan(reading.sent);
  const std::span sent = rest.first(std::min(bytes_max, rest.size()));
  reading.sent += sent.size();
  PieceChunk& chunk = reading.last_chunk;
  chunk.chunk = number;
  chunk.bytes = RecordBytes::copy_of(sent);
  chunk.is_last = reading.is_at_end && reading.sent == reading.rest.size();
}

// --- receiving ----------------------------------------------------------------------------------

PieceStored OutputStore::execute(const StorePiece& store) {
  const PieceChunk& chunk = store.chunk;
  PieceStored stored{store.fetch, chunk.piece, chunk.chunk, chunk.is_last, {}};
  try {
    if (chunk.chunk == 0) {
      StageState& from = stage(store.stage);
      Piece piece;
      piece.form = from.stage->form;
      piece.task =
          std::make_unique<flow::Task>(chunk.piece.output.part, false,
                                       std::vector<flow::StageOutputs>{}, *memory_, file_of(from));
      piece.writer = piece.form.write(*piece.task, chunk.piece.piece);
      pieces_[chunk.piece] = std::move(piece);
    }
    Piece& piece = pieces_.at(chunk.piece);
    if (!piece.writer) throw flow::DecodeError{"a piece of records has bytes after its last chunk"};
    add_bytes(piece, chunk.bytes.get());
    if (!chunk.is_last) return stored;
    if (!piece.partial.empty()) throw flow::DecodeError{"a piece of records ends too early"};
    piece.output = piece.writer->finish();
    piece.writer.reset();
    piece.task.reset();
  } catch (const std::exception& fault) {
    stored.error = exception_text(fault);
    if (stored.error.empty()) stored.error = "records could not be stored";
    pieces_.erase(chunk.piece);
  }
  return stored;
}

void OutputStore::add_bytes(Piece& piece, std::span<const std::byte> bytes) {
  piece.partial.insert(piece.partial.end(), bytes.begin(), bytes.end());
  std::span<const std::byte> rest{piece.partial};
  for (;;) {
    std::uint32_t size = 0;
    if (rest.size() < sizeof size) break;
    std::memcpy(&size, rest.data(), sizeof size);
    if (rest.size() - sizeof size < size) break;
    piece.writer->add(rest.subspan(sizeof size, size));
    rest = rest.subspan(sizeof size + size);
  }
  piece.partial.erase(piece.partial.begin(),
                      piece.partial.end() - static_cast<std::ptrdiff_t>(rest.size()));
}

void OutputStore::execute(const KeepPiece& keep) {
  const auto piece = pieces_.find(keep.piece);
  STARLING_CHECK(piece != pieces_.end() && piece->second.output != nullptr);
  outputs_[keep.piece.output] = {piece->second.output, piece->second.form};
  pieces_.erase(piece);
}

void OutputStore::execute(const DropOutput& drop) {
  outputs_.erase(drop.output);
  std::erase_if(readings_,
                [&](const auto& reading) { return reading.first.second.output == drop.output; });
}

void OutputStore::execute(const DropReader& drop) {
  std::erase_if(readings_, [&](const auto& reading) { return reading.first.first == drop.reader; });
}

void OutputStore::execute(const DropActions& drop) {
  std::erase_if(actions_, [&](const auto& action) { return action.first < drop.before; });
}

}  // namespace starling::core
