#include "starling/tools/collective/collective_arguments.hpp"

#include <vector>

#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"
#include "starling/tools/collective/collective_command.hpp"
#include "starling/tools/job/keys.hpp"

namespace starling::program {
namespace {

const std::vector<KeyDescription>& collective_keys() {
  static const std::vector<KeyDescription> keys{
      {"members", ValueType::count, "N", "the number of members [8, or those of the topology]",
       "Options"},
      {"operation", ValueType::text, "NAME",
       "all-reduce | reduce | broadcast | gather | scatter | reduce-scatter | all-gather | "
       "all-to-all",
       "Options"},
      {"root", ValueType::count, "N", "the member that has or gets the whole vector [0]",
       "Options"},
      {"bytes", ValueType::text, "AMOUNT",
       "the size of a member's vector: 4096, 100M, 64MiB [100M]", "Options"},
      {"latency", ValueType::text, "TIME",
       "the time that each message takes in addition to that of its bytes [50us]", "Options"},
      {"bandwidth", ValueType::text, "AMOUNT",
       "of each port, or of each lane of a topology: 10Gbps, 20GB (a second) [10Gbps]", "Options"},
      {"json", ValueType::flag, "", "one JSON object, with all moves", "Options"},
      {"svg", ValueType::text, "FILE", "draw the moves of each round", "Options"}};
  return keys;
}

std::string algorithms_list() {
  std::string text;
  for_each_alternative<collective::Algorithm>([&]<class A>(const A&) {
    text += "  " + std::string{A::form} + std::string(14 - A::form.size(), ' ') +
            std::string{A::summary} + "\n";
  });
  return text;
}

}  // namespace

CollectiveArguments::CollectiveArguments(CLI::App& program)
    : arguments_(program, "collective", "show who sends what to whom in a collective, and its cost",
                 collective_keys()) {
  arguments_.command().add_argument("ALGORITHM", algorithm_,
                                    "one of those below, or auto for the fastest [compare them]");
  arguments_.command().set_footer(
      "\nAlgorithms:\n" + algorithms_list() +
      "\nProves that each chunk is summed exactly once and arrives where it should, and computes "
      "the "
      "time:\na message takes the latency, and its bytes divided by the bandwidth; a port sends "
      "one "
      "message at\na time, and receives one at the same time. With pipelining, chunks are cut into "
      "slices that follow\none another. The lines of a topology are A B [LANES]: two members, and "
      "the "
      "lanes between them.\nExit codes: 0 done, 1 nothing could be written, 2 bad input.");
}

Result<int> CollectiveArguments::run() const {
  const auto settings = arguments_.settings();
  if (!settings) return settings.error();
  return collective_command(algorithm_, *settings);
}

}  // namespace starling::program
