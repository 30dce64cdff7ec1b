/// The lines of text files as the source of a chain. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/flow/text_splits.hpp"
#include "starling/engine/flow/chain/chain.hpp"

namespace starling::flow {

/// Each split is one part.
class TextChain {
 public:
  using Value = std::string;

  explicit TextChain(std::vector<TextSplit> splits)
      : splits_(std::make_shared<const std::vector<TextSplit>>(std::move(splits))) {}

  [[nodiscard]] Part parts() const { return static_cast<Part>(splits_->size()); }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return {}; }
  void add_reads(Part, std::vector<StageRead>&) const {}
  [[nodiscard]] std::string operations() const { return "text"; }
  [[nodiscard]] std::uint64_t source_hash() const { return hash_of(*splits_); }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    read_lines((*splits_)[part], [&](std::string& line) {
      task.count_read();
      return sink(std::move(line));
    });
  }

 private:
  std::shared_ptr<const std::vector<TextSplit>> splits_;
};

}  // namespace starling::flow
