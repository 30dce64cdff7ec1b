/// The order in which a member's parts adopt a configuration. It stands alone in this file, so that
/// a test can link other orders in its place.
#include "starling/engine/core/training/training.hpp"

namespace starling::core {

/// docs/design/0016-roles.md says why the parts come in this order.
void Training::on_configuration(const Context& context, const ConfigurationPtr& next,
                                const ConfigurationPtr& former) {
  configuration_ = next;
  inform_exchange(context, former.get());
  inform_coordinator(context, former.get());
  const bool deal_changes = dealer_ && dealer_->take_due_report(*next);
  if (deal_changes && worker_) worker_->hold();
  inform_worker(context, former.get());
  if (deal_changes) report_deal(context);
  send_status(context, former.get());
}

}  // namespace starling::core
