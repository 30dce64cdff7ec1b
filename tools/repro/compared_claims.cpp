#include "starling/tools/repro/compared_claims.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starling/tools/repro/repro_data.hpp"

namespace starling::program {

TextTable compared_claims_table(const std::vector<ComparedClaim>& claims) {
  TextTable table{{"claim", "published", "simulated", "live", "verdict"}, {}, true};
  for (const ComparedClaim& compared : claims)
    table.rows.push_back({compared.claim.finding, compared.claim.published, compared.claim.here,
                          compared.live, print(compared.claim.status)});
  return table;
}

std::size_t reproduced(const std::vector<ComparedClaim>& claims) {
  return static_cast<std::size_t>(std::ranges::count_if(claims, [](const ComparedClaim& compared) {
    return compared.claim.status == ClaimStatus::reproduced;
  }));
}

void to_json(nlohmann::ordered_json& json, const ComparedClaim& compared) {
  to_json(json, compared.claim);
  json["live"] = compared.live;
}

}  // namespace starling::program
