#include "tests/actor/fabric/order.hpp"

namespace starling::fabric {
namespace {

TEST(FabricOrder, ShowsNoFlagBeforeItsPayload) { expect_no_flag_before_its_payload(100'000); }

}  // namespace
}  // namespace starling::fabric
