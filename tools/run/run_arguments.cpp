#include "starling/tools/run/run_arguments.hpp"

#include "starling/tools/run/flow_settings.hpp"
#include "starling/tools/run/run_command.hpp"

namespace starling::program {

RunArguments::RunArguments(CLI::App& program, const Registry& registry)
    : run_(program, "run", "process files by map-reduce: count, sort, join, rank, cluster"),
      flows_(run_, registry, flags_of_flow, "",
             "\nThe result, or its first lines, goes to stdout; progress and a summary go to "
             "stderr.\n"
             "Exit codes: 0 done, 1 the flow failed, 2 bad input, 130 interrupted.") {}

Result<int> RunArguments::run() const { return flows_.run("wordcount --input FILE", run_command); }

}  // namespace starling::program
