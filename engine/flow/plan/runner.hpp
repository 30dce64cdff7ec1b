/// The interface of the drivers that run the plans of data sets. actor/flow has the one with
/// threads.
#pragma once

#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

class Runner {
 public:
  virtual ~Runner() = default;
  /// Computes a stage, and first those that it reads. Returns the outputs of its parts. Blocks.
  /// Thread-safe: a function of a task may run another stage.
  virtual Result<std::vector<Output>> run(const StagePtr& last) = 0;
  /// Computes a stage whose outputs are kept, as run() does. Returns the stage to read them from.
  /// `former` is what an earlier call has returned, if no one but `stage` reads it any more, so
  /// that its outputs can be released; or null.
  virtual Result<StagePtr> keep(const StagePtr& stage, const StagePtr& former) = 0;
  /// The number of parts of sources and shuffles that do not name another. It does not depend on
  /// the number of threads, because the order of the records depends on the number of parts.
  [[nodiscard]] virtual Part default_parts() const = 0;
};

}  // namespace starling::flow
