#include "tests/engine/sim/adoption/any_order.hpp"

#include "starling/engine/core/training/training.hpp"

namespace starling::core {
namespace {

std::string_view present_order = adoption_order;

}  // namespace

AdoptionOrder::AdoptionOrder(std::string_view order) { present_order = order; }
AdoptionOrder::~AdoptionOrder() { present_order = adoption_order; }

void Training::on_configuration(const Context& context, const ConfigurationPtr& next,
                                const ConfigurationPtr& former) {
  configuration_ = next;
  const bool deal_changes = dealer_ && dealer_->take_due_report(*next);
  for (const char part : present_order) {
    if (part == 'E') inform_exchange(context, former.get());
    if (part == 'C') inform_coordinator(context, former.get());
    if (part == 'H' && deal_changes && worker_) worker_->hold();
    if (part == 'W') inform_worker(context, former.get());
    if (part == 'D' && deal_changes) report_deal(context);
    if (part == 'S') send_status(context, former.get());
  }
}

}  // namespace starling::core
