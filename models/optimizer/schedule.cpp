#include "starling/models/optimizer/schedule.hpp"

namespace starling::models {

Result<Schedule> parse_schedule(std::string_view text) {
  return parse_alternative<Schedule>("schedule", text);
}

std::string print(const Schedule& schedule) { return print_alternative(schedule); }

double factor(const Schedule& schedule, std::uint64_t samples_seen) {
  return std::visit([&](const ScheduleRule auto& rule) { return rule.factor(samples_seen); },
                    schedule);
}

}  // namespace starling::models
