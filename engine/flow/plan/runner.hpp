/// The interface through which a flow computes its stages. A runner implements it: ThreadRunner
/// (actor/flow) on the threads of one process, ProgramRun (actor/flow_job) on the nodes of a job.
#pragma once

#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

class Runner {
 public:
  virtual ~Runner() = default;
  /// Computes a stage, and first those that it reads. Returns the outputs of its parts. Blocks.
  /// Thread-safe, because a function that the program passed to a task may call run() too. A runner
  /// may refuse such a call.
  virtual Result<std::vector<Output>> run(const StagePtr& last) = 0;
  /// Computes a stage whose outputs are kept, as run() does. Returns the stage to read them from.
  /// `former` is null, or a stage that an earlier call has returned. By passing it, the caller
  /// promises that nothing but `stage` reads it any more, so the runner may release its outputs.
  virtual Result<StagePtr> keep(const StagePtr& stage, const StagePtr& former) = 0;
  /// How many parts a source or a shuffle has if the program gives no number for it. This default
  /// does not depend on the number of threads, because the order of the records depends on the
  /// number of parts.
  [[nodiscard]] virtual Part default_parts() const = 0;
};

}  // namespace starling::flow
