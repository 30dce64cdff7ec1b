#include "starling/engine/core/flow/flow.hpp"

namespace starling::core {

RecordBytes RecordBytes::copy_of(std::span<const std::byte> bytes) {
  RecordBytes copy;
  copy.size = static_cast<std::uint32_t>(bytes.size());
  if (bytes.empty()) return copy;
  const std::size_t words = (bytes.size() + word_bytes - 1) / word_bytes;
  auto buffer = Buffer::make(words, word_bytes);
  const auto end = std::ranges::copy(bytes, buffer->bytes().begin()).out;
  // The last word may be longer than the rest of the bytes.
  std::fill(end, buffer->bytes().end(), std::byte{0});
  copy.words = {std::move(buffer), 0, words, nullptr, false};
  return copy;
}

void Flow::on_configuration(const Context& context, const ConfigurationPtr& next,
                            const ConfigurationPtr& former) {
  const bool is_coordinator = next->coordinator == self_.id;
  // A new coordinator knows no former configuration: members send it what they have and do
  // (FlowState).
  if (is_coordinator && !coordinator_) {
    coordinator_.emplace(*options_, executor_);
    coordinator_->on_configuration(context, next, nullptr);
  } else if (is_coordinator) {
    coordinator_->on_configuration(context, next, former);
  } else {
    coordinator_.reset();
  }
  executor_.on_configuration(context, next, former);
}

}  // namespace starling::core
