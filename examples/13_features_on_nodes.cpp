// Trains a model on features that a map-reduce flow computes on the same nodes. The raw file has a
// row for each purchase: customer, amount, hour of the day, and whether the customer stays. The
// flow sums the purchases of each customer up, so it needs a shuffle. No file is written between
// the raw file and the model.
//
//     cmake --preset dev && cmake --build --preset dev --target 13_features_on_nodes
//     build/dev/examples/13_features_on_nodes write-raw purchases.csv
//     build/dev/examples/13_features_on_nodes train --data customers:purchases.csv --model logistic
//
// trains in less than a second, and its summary ends with a line such as
//
//     test        loss 0.4074, accuracy 84.8 %
//
// `evaluate` and `predict` read other raw files. `run` shows the features, with the label in the
// last column:
//
//     build/dev/examples/13_features_on_nodes run customers purchases.csv --lines 5
//
// Three nodes, here on one machine, do the same. Each node reads the raw file, so they must
// share it, or each must have a copy:
//
//     build/dev/examples/13_features_on_nodes node --listen 127.0.0.1:7401 &
//     build/dev/examples/13_features_on_nodes node --listen 127.0.0.1:7402 --join 127.0.0.1:7401 &
//     build/dev/examples/13_features_on_nodes node --listen 127.0.0.1:7403 --join 127.0.0.1:7401 &
//     build/dev/examples/13_features_on_nodes submit --to 127.0.0.1:7402 --workers 3
//         --data customers:purchases.csv,dear=60 --model logistic        (one line)
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/starling.hpp"
#include "starling/tools/registry/flow.hpp"

using namespace starling;

/// The purchases of a customer: how many there are, their total amount, how many of them are dear,
/// and how many are made at night; and whether the customer stays.
struct Customer {
  double purchases = 0;
  double amount = 0;
  double dear = 0;
  double at_night = 0;
  bool stays = false;

  static constexpr auto fields(auto& m) {
    return std::tie(m.purchases, m.amount, m.dear, m.at_night, m.stays);
  }
};

Customer add(Customer a, const Customer& b) {
  return {a.purchases + b.purchases, a.amount + b.amount, a.dear + b.dear, a.at_night + b.at_night,
          b.stays};
}

double number_of(std::string_view cell) {
  const auto number = parse_number(cell);
  if (!number) throw std::invalid_argument{quote(cell) + " is not a number"};
  return *number;
}

flow::Sample sample_of(const std::pair<std::string, Customer>& found) {
  const Customer& all = found.second;
  const auto mean = [&](double sum) { return static_cast<float>(sum / all.purchases); };
  return {{static_cast<float>(all.purchases), mean(all.amount), mean(all.dear), mean(all.at_night)},
          all.stays ? 1.0F : 0.0F};
}

struct Customers {
  static constexpr std::string_view name = "customers";
  static constexpr std::string_view summary =
      "for each customer: number of purchases, mean amount, shares of dear and night purchases";
  /// The smallest amount of a dear purchase.
  double dear = 50;

  static std::vector<FlowOption> flow_options() {
    return {{"dear", "AMOUNT", "the smallest amount of a dear purchase [50]"}};
  }
  static Customers parse(SpecReader& options) {
    return {.dear = options.number("dear", 50, 0, 1e6)};
  }

  Result<flow::Set<flow::Sample>> run(FlowContext& context) const {
    const auto lines = context.text(true);
    if (!lines) return lines.error();
    const auto purchase = [limit = dear](const std::string& line) {
      const auto cells = split(line, ',');
      if (cells.size() != 4) throw std::invalid_argument{"needs four cells: " + quote(line)};
      const double amount = number_of(cells[1]);
      const double hour = number_of(cells[2]);
      return std::pair{std::string{cells[0]},
                       Customer{1, amount, amount >= limit ? 1.0 : 0.0,
                                hour < 6 || hour >= 22 ? 1.0 : 0.0, cells[3] == "yes"}};
    };
    return flow::Set<flow::Sample>{lines->map(purchase).reduce_by_key(add).map(sample_of)};
  }
};

/// Writes purchases of 2,000 customers. Customers who stay buy more often, and less at night.
int write_raw(const char* path) {
  std::ofstream file{path};
  file << "customer,amount,hour,stays\n";
  for (std::uint64_t customer = 0; customer < 2000; ++customer) {
    Random random = Random::stream(1, customer);
    const bool stays = random.below(2) == 0;
    const std::uint64_t purchases = 1 + random.below(stays ? 20 : 10);
    for (std::uint64_t i = 0; i < purchases; ++i) {
      const bool at_night = random.below(10) < (stays ? 2U : 5U);
      const std::uint64_t hour = at_night ? (22 + random.below(8)) % 24 : 6 + random.below(16);
      file << 'c' << customer << ',' << random.below(stays ? 120 : 90) << ',' << hour << ','
           << (stays ? "yes" : "no") << '\n';
    }
  }
  if (file.flush()) return 0;
  std::fprintf(stderr, "%s: cannot be written\n", path);
  return 1;
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view{argv[1]} == "write-raw") {
    if (argc == 3) return write_raw(argv[2]);
    return std::fprintf(stderr, "write-raw takes one file; valid: write-raw FILE\n"), 2;
  }
  return starling::main(argc, argv, Registry{}.flow<Customers>());
}
