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
  explicit PreparedTraining(Prepared ready)
      : ready_(std::move(ready)),
        fingerprint_(program::fingerprint(ready_.data.train) ^
                     program::fingerprint(ready_.running.options.resume)) {}

  [[nodiscard]] const actor::JobOptions& options() const override {
    return ready_.running.options.job;
  }
  [[nodiscard]] std::size_t ranges() const override {
    return ready_.model->layout(options()).ranges.size();
  }
  [[nodiscard]] core::Step steps_per_epoch() const override {
    return ready_.running.steps_per_epoch;
  }
  [[nodiscard]] Result<void> fits_one_of(std::size_t nodes) const override {
    return check_memory_of_node(*ready_.model, ready_.running.options, nodes);
  }
  /// Draws the model's first values, so that make_local_job() is quick.
  [[nodiscard]] Result<void> lay_out() const override {
    auto start = ready_.model->initial_state(ready_.data.train, ready_.running.options);
    if (!start) return std::move(start).error();
    ready_.running.options.resume = *std::move(start);
    return {};
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return fingerprint_; }
  [[nodiscard]] Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      actor::LocalJobOptions local_options) const override {
    return ready_.model->make_local_job(ready_.data.train, ready_.running.options,
                                        std::move(local_options));
  }

 private:
  /// Complete once lay_out() was called.
  mutable Prepared ready_;
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
  wire::JobSettings all;
  for (const Setting& setting : settings)
    if (!is_for_follower(setting.key)) all.emplace_back(setting.key, setting.text);
  return all;
}

Result<Settings> from_wire(const wire::JobSettings& told) {
  Settings settings;
  for (const auto& [key, text] : told) {
    if (is_for_follower(key) || find_key(key) == nullptr)
      return Error{"'" + key + "': is nothing that a node can be told of a job"};
    if (printable(text) != text)
      return Error{"'" + printable(text) + "' holds characters that nobody sees"}.within("--" +
                                                                                         key);
    settings.push_back({key, text, "--" + key});
  }
  return settings;
}

actor::JobPreparer job_preparer(const Registry& registry) {
  return [&registry](
             const wire::JobSettings& told) -> Result<std::shared_ptr<const actor::PreparedJob>> {
    auto read = from_wire(told);
    if (!read) return std::move(read).error();
    Settings settings = *std::move(read);
    settings.push_back({"quiet", "true", "--quiet"});
    auto ready = prepare(registry, settings, "");
    if (!ready) return std::move(ready).error();
    return std::shared_ptr<const actor::PreparedJob>{
        std::make_shared<PreparedTraining>(*std::move(ready))};
  };
}

}  // namespace starling::program
