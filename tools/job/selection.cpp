#include "starling/tools/job/selection.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/text.hpp"

namespace starling::program {

Result<Keep> parse_keep(std::string_view text) {
  if (text == "best") return Keep::best;
  if (text == "last") return Keep::last;
  return Error{"'" + std::string{text} + "' is no model to keep; valid: best, last"};
}

std::string print(Keep keep) { return keep == Keep::best ? "best" : "last"; }

void Selection::see(double step, const models::Metrics& test, const States& states) {
  const auto figure = std::ranges::find(test, "loss", &models::Metric::name);
  const bool was_enough = is_enough();
  if (!was_enough) ++idle_;
  if (figure == test.end() || !std::isfinite(figure->value)) return;
  const double loss = figure->value;
  if (!reference_ || loss < *reference_ - better_by * std::abs(*reference_)) {
    reference_ = loss;
    // The model at the end may be better than those that ended the job.
    if (!was_enough) idle_ = 0;
  }
  if (best_ && loss >= best_->loss) return;
  best_ = Model{step, loss, test, holds_best_ ? states : States{}};
}

}  // namespace starling::program
