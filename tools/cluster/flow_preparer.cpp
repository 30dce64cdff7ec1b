#include "starling/tools/cluster/flow_preparer.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/actor/flow_job/flow_job.hpp"
#include "starling/base/input.hpp"
#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/flow/values/hash.hpp"
#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flow_settings.hpp"
#include "starling/tools/run/flows.hpp"

namespace starling::program {
namespace {

/// The most bytes of the first lines of the result, because a node sends them in one message.
constexpr std::size_t first_lines_bytes_max = std::size_t{4} << 20U;

/// The settings that nodes receive, besides the flow's own options.
constexpr std::array<std::string_view, 13> sent_keys{
    "flow",   "name",  "workers", "input",          "output", "lines",          "parts",
    "memory", "spill", "threads", "wait-for-nodes", "token",  "skip-unreadable"};
constexpr std::size_t token_length_max = 64;

bool is_own(const FlowEntry& flow, std::string_view key) {
  return std::ranges::count(flow.options, key, &FlowOption::name) > 0;
}

Result<void> check_token(const std::string& token) {
  const auto is_plain = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); };
  if (!token.empty() && token.size() <= token_length_max && std::ranges::all_of(token, is_plain))
    return {};
  return Error{"'" + printable(token) +
               "' is not a token; valid: small letters and digits, 1 to 64 of them"}
      .within("--token");
}

/// Converts the settings that a node received. Returns an Error if one is not an option of the
/// flow.
Result<Settings> flow_from_wire(const FlowEntry& flow, const wire::JobSettings& received) {
  Settings settings;
  for (const auto& [sent, text] : received) {
    const bool has_prefix = sent.starts_with(own_option_prefix);
    const std::string key = has_prefix ? sent.substr(own_option_prefix.size()) : sent;
    if (has_prefix ? !is_own(flow, key) : std::ranges::count(sent_keys, key) == 0)
      return Error{quote(sent) + ": is not an option of the flow " + flow.name +
                   " that nodes receive"};
    if (printable(text) != text)
      return Error{"'" + printable(text) + "' holds characters that cannot be printed"}.within(
          "--" + key);
    settings.push_back({key, text, "--" + key});
  }
  return settings;
}

/// Returns a hash of this program's file. Nodes that run different programs must not run one flow,
/// because its functions may differ.
std::uint64_t hash_of_program() {
  static const std::uint64_t hash = [] {
    std::ifstream file{"/proc/self/exe", std::ios::binary};
    std::string chunk(std::size_t{1} << 20U, '\0');
    std::uint64_t sum = 0;
    while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0)
      sum = mix(sum ^ flow::hash_bytes(std::string_view{chunk}.substr(
                          0, static_cast<std::size_t>(file.gcount()))));
    return sum;
  }();
  return hash;
}

/// The hash that stands for a file that cannot be opened.
constexpr std::uint64_t unreadable_file = UINT64_MAX;

/// Returns a hash of all that must be the same on all nodes: the program, the settings, the sizes
/// of the files, and which files are skipped. Returns an Error if a file cannot be opened, unless
/// the flow skips unreadable files and another file can be opened.
Result<std::uint64_t> fingerprint_of(const SubmittedFlow& flow, const Settings& settings) {
  std::uint64_t sum = hash_of_program();
  const auto add = [&sum](std::uint64_t hash) { sum = mix(sum ^ hash); };
  for (const Setting& setting : settings) {
    add(flow::hash_bytes(setting.key));
    add(flow::hash_bytes(setting.text));
  }
  std::optional<Error> unreadable;
  bool has_readable = false;
  for (const std::string& file : files_read(flow.flow, settings, flow.inputs)) {
    const auto opened = InputDescriptor::open(file);
    has_readable |= opened.ok();
    if (!opened && !unreadable) unreadable = opened.error();
    add(opened ? opened->size().value_or(0) : unreadable_file);
  }
  if (unreadable && !(flow.engine.skip_unreadable && has_readable)) return *unreadable;
  return sum;
}

/// Returns an Error if the folder of the result cannot be made here.
Result<void> check_output(const std::string& output) {
  if (output.empty()) return {};
  if (!std::filesystem::path{output}.is_absolute())
    return Error{quote(output) +
                 " is not an absolute path; valid: the path by which every node "
                 "sees the folder"}
        .within("--output");
  if (auto valid = check_is_new(output); !valid) return valid;
  const std::string name = output.substr(0, output.find_last_not_of('/') + 1);
  const std::string parent = std::filesystem::path{name}.parent_path().string();
  std::error_code fault;
  if (!std::filesystem::is_directory(parent, fault) || ::access(parent.c_str(), W_OK) != 0)
    return Error{output + ": no folder can be made in " + quote(parent) +
                 "; valid: a new folder in a folder that exists on each node and in which each "
                 "node may write"}
        .within("--output");
  return {};
}

/// Runs the flow as one of its members does. The caller measures the time.
Result<wire::FlowResult> run_member(const SubmittedFlow& flow, const std::string& token,
                                    const flow::MapReduce& engine) {
  std::optional<flow::OutputFolder> output;
  if (!flow.output.empty()) {
    auto made = flow::OutputFolder::shared(flow.output, token);
    if (!made) return std::move(made).error().within("--output");
    output.emplace(*std::move(made));
  }
  FlowContext context{engine, flow.inputs, output ? &*output : nullptr, flow.lines_max,
                      first_lines_bytes_max};
  SpecReader reader{flow.spec};
  if (auto ran = flow.flow.run(reader, context); !ran) return std::move(ran).error();
  wire::FlowResult result;
  result.lines = context.lines();
  result.first_lines = context.first_lines();
  result.figures = context.figures();
  result.skipped = context.skipped_files();
  return result;
}

/// A flow that a node has prepared. No job changes the object, because the node may make several
/// jobs from it.
class PreparedFlow final : public actor::PreparedJob {
 public:
  PreparedFlow(SubmittedFlow flow, std::string token, std::uint64_t fingerprint)
      : flow_(std::make_shared<const SubmittedFlow>(std::move(flow))),
        token_(std::move(token)),
        fingerprint_(fingerprint) {
    // The job has no model: no member owns a range. Its coordinator gives tasks to the members.
    options_.mode = core::Mode::central;
    options_.shards = 1;
    options_.replication_factor = 1;
    options_.workers = flow_->workers;
    options_.compute_threads = flow_->engine.threads;
    options_.wait_for_nodes = flow_->wait_for_nodes;
  }

  [[nodiscard]] const actor::JobOptions& options() const override { return options_; }
  [[nodiscard]] std::size_t ranges() const override { return 0; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return fingerprint_; }
  [[nodiscard]] std::uint64_t data_fingerprint() const override { return fingerprint_; }
  [[nodiscard]] Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      actor::LocalJobOptions local) const override {
    return actor::make_flow_job(
        {.program = [flow = flow_, token = token_](
                        const flow::MapReduce& engine) { return run_member(*flow, token, engine); },
         .workers = flow_->workers,
         .engine = flow_->engine,
         .wait_for_nodes = flow_->wait_for_nodes},
        std::move(local));
  }

 private:
  actor::JobOptions options_;
  std::shared_ptr<const SubmittedFlow> flow_;
  std::string token_;
  std::uint64_t fingerprint_;
};

}  // namespace

wire::JobSettings flow_to_wire(const FlowEntry& flow, const Settings& settings,
                               const std::string& token) {
  wire::JobSettings sent{{"flow", flow.name}};
  if (location_of(settings, "workers").empty())
    sent.emplace_back("workers", std::to_string(SubmittedFlow{}.workers));
  for (const Setting& setting : settings) {
    if (is_own(flow, setting.key))
      sent.emplace_back(std::string{own_option_prefix} + setting.key, setting.text);
    else if (std::ranges::count(sent_keys, setting.key) > 0)
      sent.emplace_back(setting.key, setting.text);
  }
  sent.emplace_back("token", token);
  return sent;
}

Result<void> check_is_new(const std::string& output) {
  std::error_code fault;
  if (std::filesystem::symlink_status(output, fault).type() !=
      std::filesystem::file_type::not_found)
    return Error{output + ": exists already; valid: the name of a new folder"}.within("--output");
  return {};
}

Result<std::shared_ptr<const actor::PreparedJob>> prepare_flow(const Registry& registry,
                                                               const wire::JobSettings& received) {
  const std::string name = actor::setting_of(received, "flow");
  const std::vector<FlowEntry> flows = all_flows(registry);
  const auto flow = std::ranges::find(flows, name, &FlowEntry::name);
  if (flow == flows.end()) {
    std::vector<std::string> names;
    for (const FlowEntry& each : flows) names.push_back(each.name);
    return Error{"unknown flow " + quote(name) + "; " + suggest(name, names)};
  }
  const auto settings = flow_from_wire(*flow, received);
  if (!settings) return settings.error();
  auto read = read_submitted_flow(*flow, *settings, registry);
  if (!read) return std::move(read).error();
  std::string token = text_of(*settings, "token");
  if (auto valid = check_token(token); !valid) return std::move(valid).error();
  if (auto engine = flow::MapReduce::make(read->engine); !engine)
    return Error{engine.error()}.within("--spill");
  if (auto valid = check_output(read->output); !valid) return std::move(valid).error();
  const auto fingerprint = fingerprint_of(*read, *settings);
  if (!fingerprint) return fingerprint.error();
  return std::shared_ptr<const actor::PreparedJob>{
      std::make_shared<PreparedFlow>(*std::move(read), std::move(token), *fingerprint)};
}

}  // namespace starling::program
