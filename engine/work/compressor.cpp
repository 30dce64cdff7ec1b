#include "starling/engine/work/compressor.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::core {

UpdateCompressor::UpdateCompressor(const models::Compression& rule,
                                   std::shared_ptr<const Layout> layout)
    : rule_(rule), layout_(std::move(layout)) {
  const bool takes_all = !models::sends_sparse(rule_);
  std::size_t size = 0;
  for (const Range& range : layout_->ranges) {
    for (const Segment& segment : range.segments) {
      if (!takes_all && !layout_->parameters[segment.parameter].trained) continue;
      const std::size_t offset = range.offset + segment.offset;
      if (!runs_.empty() && runs_.back().offset + runs_.back().count == offset)
        runs_.back().count += segment.count;
      else
        runs_.push_back({offset, segment.count});
      size += segment.count;
    }
  }
  residual_.resize(size);
}

void UpdateCompressor::compress(Update& update) {
  STARLING_CHECK(update.parts.size() == layout_->ranges.size());
  for (Update::Part& part : update.parts) part.values.is_compact = true;
  // A step without samples has nothing to send, and its update has no weight.
  if (update.samples == 0) return;
  const auto gradient = update.parts.front().values.buffer;
  const auto g = std::as_const(*gradient).as<float>();
  STARLING_CHECK(g.size() == layout_->size);
  const std::span<float> residual{residual_};
  if (samples_ != 0 && samples_ != update.samples)
    models::scale(static_cast<float>(samples_) / static_cast<float>(update.samples), residual);
  samples_ = update.samples;
  const auto buffer = Buffer::make<float>(layout_->size);
  const auto sent = buffer->as<float>();
  if (residual.size() == g.size()) {
    models::compress(rule_, g, residual, sent);
  } else {
    std::vector<float> taken;
    taken.reserve(residual.size());
    for (const auto& [offset, count] : runs_) {
      const auto run = g.subspan(offset, count);
      taken.insert(taken.end(), run.begin(), run.end());
    }
    std::vector<float> taken_and_sent(taken.size());
    models::compress(rule_, taken, residual, taken_and_sent);
    std::ranges::copy(g, sent.begin());
    auto from = taken_and_sent.begin();
    for (const auto& [offset, count] : runs_) {
      const auto end = from + static_cast<std::ptrdiff_t>(count);
      std::copy(from, end, sent.subspan(offset, count).begin());
      from = end;
    }
  }
  for (Update::Part& part : update.parts) part.values.buffer = buffer;
}

}  // namespace starling::core
