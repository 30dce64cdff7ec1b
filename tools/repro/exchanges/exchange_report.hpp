/// The report of a study of exchanges as a document, with its claims, its plots, and its data as
/// CSV and JSON. Plain values and pure functions; thread-safe to read and call.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/repro/compared_claims.hpp"
#include "starling/tools/repro/exchanges/exchange_study.hpp"

namespace starling::program {

/// A report with the plots whose pictures it shows, which are not drawn yet.
struct ExchangeReport {
  Document document;
  std::vector<ComparedClaim> claims{};
  std::vector<Plot> plots{};
};

/// Returns the report. `flags` are the flags with which the command makes it again.
[[nodiscard]] ExchangeReport report_of(const ExchangeStudy& study, const std::string& flags);

/// Returns the claims. The status of a claim about learning judges the live runs.
[[nodiscard]] std::vector<ComparedClaim> exchange_claims(const ExchangeStudy& study);

/// Returns CSV with a row for each exchange, barrier and seed: the accuracy that the job reached.
[[nodiscard]] std::string learning_csv(const ExchangeStudy& study);
/// Returns one JSON object with the claims.
[[nodiscard]] std::string study_json(const ExchangeStudy& study,
                                     const std::vector<ComparedClaim>& claims);

}  // namespace starling::program
