/// Makes and checks the files of tools/compare/flows. The same sizes make the same files.
///
///   flow_data text FILE BYTES           words, of which a few are frequent, as in a language
///   flow_data records FILE COUNT        lines of 100 bytes in random order
///   flow_data links FILE NODES COUNT    links from each node, most of them to few nodes
///   flow_data table FILE COUNT KEYS     rows KEY,VALUE with random keys below KEYS
///   flow_data keys FILE COUNT           rows KEY,VALUE with each key below COUNT once
///   flow_data check FILE...             prints the number of lines, whether they are sorted across
///                                       the files, and the sum of their hashes
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::benchmarks {
namespace {

std::string random_letters(Random& random, std::size_t count) {
  std::string text(count, ' ');
  for (char& c : text) c = static_cast<char>('a' + random.below(26));
  return text;
}

/// Returns the word with a rank, from 1. Frequent words are short.
std::string word_of(std::uint64_t rank) {
  std::string word;
  for (std::uint64_t rest = rank; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
  Random random{rank};
  return word + random_letters(random, random.below(7));
}

/// The probability of a word is about 1 / (rank * log(ranks)).
void write_text(std::ostream& out, std::uint64_t bytes) {
  constexpr double ranks = 1e6;
  std::vector<std::string> words;
  for (std::uint64_t rank = 1; rank <= static_cast<std::uint64_t>(ranks); ++rank)
    words.push_back(word_of(rank));
  Random random{1};
  for (std::uint64_t done = 0; done < bytes;) {
    std::string line;
    for (std::uint64_t left = 5 + random.below(15); left > 0; --left) {
      const auto rank = static_cast<std::size_t>(std::exp(random.real() * std::log(ranks)));
      line += words[rank - 1];
      line += left > 1 ? ' ' : '\n';
    }
    out << line;
    done += line.size();
  }
}

void write_records(std::ostream& out, std::uint64_t count) {
  constexpr std::size_t record_bytes = 100;
  Random random{2};
  for (std::uint64_t i = 0; i < count; ++i) out << random_letters(random, record_bytes - 1) << '\n';
}

void write_links(std::ostream& out, std::uint64_t nodes, std::uint64_t count) {
  Random random{3};
  for (std::uint64_t i = 0; i < count; ++i) {
    const double u = random.real();
    const auto target = static_cast<std::uint64_t>(u * u * static_cast<double>(nodes));
    out << i % nodes << ' ' << target << '\n';
  }
}

void write_table(std::ostream& out, std::uint64_t count, std::uint64_t keys) {
  Random random{4};
  for (std::uint64_t i = 0; i < count; ++i)
    out << random.below(keys) << ',' << random_letters(random, 12) << '\n';
}

void write_keys(std::ostream& out, std::uint64_t count) {
  Random random{5};
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = i;
  for (std::uint64_t i = count; i > 1; --i) std::swap(keys[i - 1], keys[random.below(i)]);
  for (const std::uint64_t key : keys) out << key << ',' << random_letters(random, 8) << '\n';
}

/// Returns false if a file cannot be read.
bool check(const std::vector<std::string>& paths) {
  std::uint64_t lines = 0;
  std::uint64_t hashes = 0;
  bool is_sorted = true;
  std::string line;
  std::string before;
  for (const std::string& path : paths) {
    std::ifstream in{path};
    if (!in) return std::cerr << path << ": cannot be opened\n", false;
    for (; std::getline(in, line); std::swap(line, before), ++lines) {
      is_sorted = is_sorted && before <= line;
      hashes += flow::hash_bytes(line);
    }
  }
  std::cout << R"({"lines": )" << lines << R"(, "is_sorted": )" << (is_sorted ? "true" : "false")
            << R"(, "hash_sum": )" << hashes << "}\n";
  return true;
}

int run(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t i) { return std::stoull(words.at(i)); };
  const std::string& what = words.at(0);
  if (what == "check") return check({words.begin() + 1, words.end()}) ? 0 : 1;
  std::ofstream out{words.at(1), std::ios::binary};
  if (what == "text") write_text(out, number(2));
  if (what == "records") write_records(out, number(2));
  if (what == "links") write_links(out, number(2), number(3));
  if (what == "table") write_table(out, number(2), number(3));
  if (what == "keys") write_keys(out, number(2));
  out.close();
  if (out) return 0;
  std::cerr << words[1] << ": cannot be written\n";
  return 1;
}

}  // namespace
}  // namespace starling::benchmarks

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    return starling::benchmarks::run({argv + 1, argv + argc});
  } catch (const std::exception& fault) {
    std::cerr << "flow_data: " << fault.what() << "; valid: see the head of flow_data.cpp\n";
    return 2;
  }
}
