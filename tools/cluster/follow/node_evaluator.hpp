/// Has nodes evaluate the models of a job that a program follows, so that the program needs neither
/// the data nor the model's code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/cluster/cluster_client.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Blocking: a call returns when a node has evaluated the model, or when no node answers. Not
/// thread-safe.
class NodeEvaluator final : public Evaluator {
 public:
  struct Options {
    wire::JobId job = 0;
    bool has_test_data = false;
    bool has_normalised_error = false;
    /// The metric of `until`; empty without it.
    std::string metric = {};
  };

  /// Asks the nodes that `follower` knows. Requires: `client` and `follower` outlive the object.
  NodeEvaluator(actor::ClusterClient& client, const Follower& follower, Options options)
      : client_(client), follower_(follower), options_(std::move(options)) {}

  [[nodiscard]] bool has_test_data() const override { return options_.has_test_data; }
  [[nodiscard]] models::Metrics on_training_data(
      const std::vector<core::RangeState>& states) const override;
  [[nodiscard]] models::Metrics on_test_data(
      const std::vector<core::RangeState>& states) const override;
  [[nodiscard]] std::optional<double> normalised_error(
      const std::vector<core::RangeState>& states) const override;
  [[nodiscard]] std::string error() const override { return error_; }

 private:
  /// Asks one node after the other to evaluate the model, until one has done so. Returns nullopt
  /// and sets error_ if none has.
  std::optional<wire::ModelMetrics> evaluate(const std::vector<core::RangeState>& states,
                                             wire::DataPart part) const;
  /// Sends the model to the node at `address`, and returns the metrics that the node computes.
  /// Returns an Error if the node refuses or does not answer, or once is_interrupted(), unless
  /// `was_interrupted`: the evaluation began after the interruption.
  Result<wire::ModelMetrics> evaluate_at(const std::string& address,
                                         const std::vector<core::RangeState>& states,
                                         wire::DataPart part, bool was_interrupted) const;
  /// Returns the addresses of the nodes with members of the job that answered at the last poll. The
  /// node that evaluated the last model comes first.
  [[nodiscard]] std::vector<std::string> addresses() const;

  actor::ClusterClient& client_;
  const Follower& follower_;
  const Options options_;
  /// The address of the node that evaluated the last model.
  mutable std::string last_address_;
  mutable std::string error_;
};

}  // namespace starling::program
