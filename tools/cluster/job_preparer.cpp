#include "starling/tools/cluster/job_preparer.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "starling/base/text.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/memory.hpp"
#include "starling/tools/train/checkpoint.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

class PreparedTraining final : public actor::PreparedJob {
 public:
  explicit PreparedTraining(PreparedRun prepared)
      : prepared_(std::move(prepared)),
        fingerprint_(program::fingerprint(prepared_.data.train) ^
                     program::fingerprint(prepared_.running.options.resume)) {}

  [[nodiscard]] const actor::JobOptions& options() const override {
    return prepared_.running.options.job;
  }
  [[nodiscard]] std::size_t ranges() const override {
    return prepared_.model->layout(options()).ranges.size();
  }
  [[nodiscard]] core::Step steps_per_epoch() const override {
    return prepared_.running.steps_per_epoch;
  }
  [[nodiscard]] Result<void> fits_one_of(std::size_t nodes) const override {
    return check_memory_of_node(*prepared_.model, prepared_.running.options, nodes);
  }
  /// Draws the model's first values, so that make_local_job() is quick.
  [[nodiscard]] Result<void> make_initial_values() const override {
    auto start = prepared_.model->initial_state(prepared_.data.train, prepared_.running.options);
    if (!start) return std::move(start).error();
    prepared_.running.options.resume = *std::move(start);
    return {};
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return fingerprint_; }
  [[nodiscard]] Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      actor::LocalJobOptions local_options) const override {
    return prepared_.model->make_local_job(prepared_.data.train, prepared_.running.options,
                                           std::move(local_options));
  }

 private:
  /// Has the model's first values once make_initial_values() was called.
  mutable PreparedRun prepared_;
  std::uint64_t fingerprint_;
};

}  // namespace

bool is_for_follower(std::string_view key) {
  constexpr std::array<std::string_view, 10> keys{
      "save", "metrics",    "report",           "json",       "quiet",
      "keep", "checkpoint", "checkpoint-every", "eval-every", "patience"};
  return std::ranges::count(keys, key) > 0;
}

wire::JobSettings to_wire(const Settings& settings) {
  wire::JobSettings sent;
  for (const Setting& setting : settings)
    if (!is_for_follower(setting.key)) sent.emplace_back(setting.key, setting.text);
  return sent;
}

Result<Settings> from_wire(const wire::JobSettings& received) {
  Settings settings;
  for (const auto& [key, text] : received) {
    if (is_for_follower(key) || find_key(key) == nullptr)
      return Error{"'" + key + "': is not an option of a job that nodes receive"};
    if (printable(text) != text)
      return Error{"'" + printable(text) + "' holds characters that cannot be printed"}.within(
          "--" + key);
    settings.push_back({key, text, "--" + key});
  }
  return settings;
}

actor::JobPreparer job_preparer(const Registry& registry) {
  return
      [&registry](
          const wire::JobSettings& received) -> Result<std::shared_ptr<const actor::PreparedJob>> {
        auto read = from_wire(received);
        if (!read) return std::move(read).error();
        Settings settings = *std::move(read);
        settings.push_back({"quiet", "true", "--quiet"});
        auto prepared = prepare(registry, settings, "");
        if (!prepared) return std::move(prepared).error();
        return std::shared_ptr<const actor::PreparedJob>{
            std::make_shared<PreparedTraining>(*std::move(prepared))};
      };
}

}  // namespace starling::program
