#include "starling/tools/registry/default_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/models/data/load.hpp"
#include "starling/tools/registry/built_in.hpp"

namespace starling::program {
namespace {

/// Returns `text`, or if it is mf without the number of users or items, `text` with the number that
/// suits all parts of the data.
std::string add_id_counts(std::string text, const TrainAndTest& data) {
  const auto spec = Spec::parse(text);
  if (!spec || spec->name != "mf") return text;
  constexpr float ids_max = 16'777'216;  // mf refuses larger ids
  for (const auto& [key, column] : {std::pair{"users", 0U}, {"items", 1U}}) {
    float largest = 0;
    for (const AnyData* part : {&data.train, data.test ? &*data.test : nullptr}) {
      const models::Table* table = part == nullptr ? nullptr : part->table();
      if (table == nullptr || table->is_sparse() || table->features() != 2) return text;
      for (std::size_t row = 0; row < table->size(); ++row)
        largest = std::max(largest, table->dense_row(row)[column]);
    }
    if (SpecReader{*spec}.has(key)) continue;
    text += (text.find(':') == std::string::npos ? ":" : ",") + std::string{key} + "=" +
            print_number(double{std::min(std::floor(largest) + 1, ids_max)});
  }
  return text;
}

}  // namespace

std::string default_model(const Registry& registry, const std::string& source,
                          const AnyData& data) {
  const models::Table* table = data.table();
  if (table == nullptr) return {};
  const auto built_in = models::Source::parse(source);
  if (built_in && !is_registered_source(registry, source)) {
    if (std::holds_alternative<models::DigitsSource>(built_in->kind)) return "mlp:784-128-10";
    if (const auto* ratings = std::get_if<models::RatingsSource>(&built_in->kind))
      return "mf:rank=" + std::to_string(ratings->rank) +
             ",users=" + std::to_string(ratings->users) +
             ",items=" + std::to_string(ratings->items);
  }
  return table->classes() > 0 ? "softmax" : "linear";
}

std::string complete_model(const Registry& registry, std::string text, const DataRequest& request,
                           const TrainAndTest& data, std::optional<ElementType> type) {
  if (text.empty()) text = default_model(registry, request.data, data.train);
  if (request.test || !data.test) return text;
  std::string sized = add_id_counts(text, data);
  // A user's own `mf` may have no such options.
  return sized != text && make_model(registry, sized, data.train, type) ? sized : text;
}

}  // namespace starling::program
