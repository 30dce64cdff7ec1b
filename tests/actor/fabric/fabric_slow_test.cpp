#include "tests/actor/fabric/order.hpp"

namespace starling::fabric {
namespace {

TEST(FabricOrder, ShowsNoFlagBeforeItsPayloadInTenMillionTransfers) {
  expect_no_flag_before_its_payload(10'000'000);
}

}  // namespace
}  // namespace starling::fabric
