#include "starling/tools/job/model_selection.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/text.hpp"

namespace starling::program {

Result<Keep> parse_keep(std::string_view text) {
  if (text == "best") return Keep::best;
  if (text == "last") return Keep::last;
  return Error{"'" + std::string{text} + "' is not a model to keep; valid: best, last"};
}

std::string print(Keep keep) { return keep == Keep::best ? "best" : "last"; }

void ModelSelection::add_evaluation(double step, const models::Metrics& test,
                                    const States& states) {
  const auto loss_metric = std::ranges::find(test, "loss", &models::Metric::name);
  const bool was_over = is_patience_over();
  if (!was_over) ++evaluations_without_gain_;
  if (loss_metric == test.end() || !std::isfinite(loss_metric->value)) return;
  const double loss = loss_metric->value;
  if (!reference_loss_ || loss < *reference_loss_ - gain_min * std::abs(*reference_loss_)) {
    reference_loss_ = loss;
    // The evaluation at the job's end may be better, but patience stays over.
    if (!was_over) evaluations_without_gain_ = 0;
  }
  if (best_ && loss >= best_->loss) return;
  best_ = Model{step, loss, test, keeps_best_states_ ? states : States{}};
}

}  // namespace starling::program
