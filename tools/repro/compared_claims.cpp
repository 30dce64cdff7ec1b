#include "starling/tools/repro/compared_claims.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starling/tools/repro/repro_data.hpp"

namespace starling::program {

TextTable compared_claims_table(const std::vector<ComparedClaim>& claims) {
  TextTable table{{"claim", "published", "simulated", "live", "verdict"}, {}, true};
  for (const ComparedClaim& claim : claims)
    table.rows.push_back({claim.simulated.finding, claim.simulated.published, claim.simulated.here,
                          claim.live, print(claim.simulated.status)});
  return table;
}

std::size_t reproduced(const std::vector<ComparedClaim>& claims) {
  return static_cast<std::size_t>(std::ranges::count_if(claims, [](const ComparedClaim& claim) {
    return claim.simulated.status == ClaimStatus::reproduced;
  }));
}

void to_json(nlohmann::ordered_json& json, const ComparedClaim& claim) {
  to_json(json, claim.simulated);
  json["live"] = claim.live;
}

}  // namespace starling::program
