#include "starling/tools/run/flow_settings.hpp"

#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/program/byte_amount.hpp"

namespace starling::program {
namespace {

/// The most threads of an engine.
constexpr std::uint64_t engine_threads_max = 32;
/// The most workers of a flow on a cluster. The ids of all members of its job, also of those that
/// are not workers, must be below 256.
constexpr std::uint64_t flow_members_max = 128;
constexpr std::uint64_t memory_min = std::uint64_t{1} << 20U;
constexpr std::uint64_t memory_max = std::uint64_t{1} << 50U;

constexpr const char* options_group = "Options";

Result<std::uint64_t> parse_memory(const std::string& text) {
  const std::string expected = "bytes with a unit, such as 512MB or 2GiB, from 1MiB to 1024TiB";
  auto bytes = parse_bytes(text, expected);
  if (bytes && (*bytes < memory_min || *bytes > memory_max))
    return Error{quote(text) + " must be " + expected};
  return bytes;
}

KeyDescription input_key() {
  return {"input", ValueType::texts, "FILE", "a text file, plain or gzip; repeat it for more",
          options_group};
}

KeyDescription skip_key() {
  return {"skip-unreadable", ValueType::flag, "",
          "leave out files that cannot be opened, with a warning for each [default: they fail the "
          "flow]",
          options_group};
}

void add_own_keys(std::vector<KeyDescription>& keys, const FlowEntry& flow) {
  for (const FlowOption& option : flow.options)
    keys.push_back({option.name, option.value_name.empty() ? ValueType::flag : ValueType::text,
                    option.value_name, option.help, "Options of " + flow.name});
}

/// Checks a setting that a training job has too, and stores it in `job`.
Result<void> put_job_key(Job& job, const Registry& registry, const Settings& settings,
                         const char* key) {
  const std::string text = text_of(settings, key);
  if (text.empty()) return {};
  if (auto valid = find_key(key)->set({job, registry, text}); !valid)
    return std::move(valid).error().within(location_of(settings, key));
  return {};
}

}  // namespace

std::vector<KeyDescription> flags_of_flow(const FlowEntry& flow) {
  std::vector<KeyDescription> keys{
      input_key(),
      {"output", ValueType::text, "FOLDER",
       "write the result as files of a new folder, which appears when they are complete [the first "
       "lines on stdout]",
       options_group},
      {"lines", ValueType::count, "N", "how many lines stdout shows without --output [20]",
       options_group},
      {"workers", ValueType::count, "N",
       "threads that compute parts, to 32; the result is the same with any number [one for each "
       "processor]",
       options_group},
      {"memory", ValueType::text, "SIZE",
       "memory for records that are shuffled or cached, such as 512MB; what does not fit is "
       "spilled to the disk [1GiB]",
       options_group},
      {"spill", ValueType::text, "FOLDER",
       "the folder for spilled data [the system's, for temporary files]", options_group},
      {"parts", ValueType::count, "N",
       "number of parts of a shuffle and of files of the result; large files have about twice as "
       "many parts [16]",
       options_group},
      skip_key(),
      {"trace", ValueType::text, "FILE",
       "file for a timeline of what each worker computes when, for Perfetto", options_group},
      {"json", ValueType::flag, "", "one JSON object on stdout", options_group},
      {"quiet", ValueType::flag, "", "show no progress and no summary", options_group}};
  add_own_keys(keys, flow);
  return keys;
}

std::vector<KeyDescription> flags_of_submitted_flow(const FlowEntry& flow) {
  std::vector<KeyDescription> keys{
      input_key(),
      {"output", ValueType::text, "FOLDER",
       "write the result as files of a new folder, which appears when they are complete; every "
       "node must see it by this path: one machine, or a shared file system [the first lines on "
       "stdout]",
       options_group},
      {"lines", ValueType::count, "N",
       "how many lines stdout shows without --output, to 4 MiB of text [20]", options_group},
      {"workers", ValueType::count, "N",
       "members of the job, to 128, which are spread over the nodes; the result is the same with "
       "any number [4]",
       options_group},
      {"threads", ValueType::count, "N",
       "parts that each member computes at the same time, to 32 [1]", options_group},
      {"memory", ValueType::text, "SIZE",
       "of each node, for records that are shuffled or cached, such as 512MB; what does not fit "
       "is spilled to the disk [1GiB]",
       options_group},
      {"spill", ValueType::text, "FOLDER",
       "the folder of each node for spilled data [the system's, for temporary files]",
       options_group},
      {"parts", ValueType::count, "N",
       "number of parts of a shuffle and of files of the result; large files have about twice as "
       "many parts [16]",
       options_group},
      skip_key(),
      {"name", ValueType::text, "NAME",
       "what `status`, `stop` and `attach` call the job: letters, digits, - _ . [FLOW-FILE-N]",
       options_group},
      {"wait-for-nodes", ValueType::duration, "T",
       "how long the job waits for nodes that it cannot go on without, seconds or with a unit "
       "[30s]",
       options_group},
      {"json", ValueType::flag, "", "one JSON object on stdout", options_group},
      {"quiet", ValueType::flag, "", "show no progress and no summary", options_group}};
  add_own_keys(keys, flow);
  return keys;
}

Spec arguments_of(const FlowEntry& flow, const Settings& settings) {
  Spec spec{.name = flow.name, .options = {}};
  for (const FlowOption& option : flow.options) {
    const std::string text = text_of(settings, option.name);
    if (text.empty()) continue;
    if (option.value_name.empty())
      spec.options.emplace_back("", option.name);
    else
      spec.options.emplace_back(option.name, text);
  }
  return spec;
}

Result<std::vector<std::string>> input_files(const FlowEntry& flow, const Settings& settings) {
  std::vector<std::string> inputs;
  for (const Setting& setting : settings)
    if (setting.key == "input") inputs.push_back(setting.text);
  if (inputs.empty()) return Error{flow.name + ": no file to read was given; valid: --input FILE"};
  return inputs;
}

std::vector<std::string> files_read(const FlowEntry& flow, const Settings& settings,
                                    std::vector<std::string> inputs) {
  for (const FlowOption& option : flow.options)
    if (const std::string file = text_of(settings, option.name);
        option.value_name == "FILE" && !file.empty())
      inputs.push_back(file);
  return inputs;
}

Result<std::uint64_t> lines_max_of(const Settings& settings) {
  std::uint64_t lines = 20;
  if (auto given = put_count(lines, settings, "lines", 0, 1'000'000); !given)
    return std::move(given).error();
  return lines;
}

Result<flow::MapReduceOptions> engine_options(const Settings& settings,
                                              const std::string& threads_key,
                                              std::uint64_t threads) {
  flow::MapReduceOptions options;
  if (auto given = put_count(threads, settings, threads_key, 1, engine_threads_max); !given)
    return std::move(given).error();
  options.threads = threads;
  std::uint64_t parts = options.parts;
  if (auto given = put_count(parts, settings, "parts", 1, 10'000); !given)
    return std::move(given).error();
  options.parts = static_cast<flow::Part>(parts);
  if (auto given = put(options.memory_bytes, settings, "memory", parse_memory); !given)
    return std::move(given).error();
  options.spill_folder = text_of(settings, "spill");
  options.spill_bytes_max = UINT64_MAX;  // no flag bounds it, only the disk
  options.skip_unreadable = !text_of(settings, "skip-unreadable").empty();
  return options;
}

Result<SubmittedFlow> read_submitted_flow(const FlowEntry& flow, const Settings& settings,
                                          const Registry& registry) {
  SubmittedFlow read;
  read.flow = flow;
  read.spec = arguments_of(flow, settings);
  auto inputs = input_files(flow, settings);
  if (!inputs) return std::move(inputs).error();
  read.inputs = *std::move(inputs);
  read.output = text_of(settings, "output");
  const auto lines = lines_max_of(settings);
  if (!lines) return lines.error();
  read.lines_max = *lines;
  if (auto given = put_count(read.workers, settings, "workers", 1, flow_members_max); !given)
    return std::move(given).error();
  auto engine = engine_options(settings, "threads", 1);
  if (!engine) return std::move(engine).error();
  read.engine = *std::move(engine);
  Job job;
  for (const char* key : {"name", "wait-for-nodes"})
    if (auto valid = put_job_key(job, registry, settings, key); !valid)
      return std::move(valid).error();
  read.wait_for_nodes = job.train.job.wait_for_nodes;
  SpecReader reader{read.spec};
  if (auto valid = flow.check(reader); !valid) return std::move(valid).error();
  return read;
}

}  // namespace starling::program
