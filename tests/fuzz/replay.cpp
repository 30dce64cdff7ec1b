/// Runs a fuzzer without libFuzzer:
///
///     NAME_replay CORPUS COUNT   reads the seeds, the files of the folder CORPUS, and COUNT copies
///                                of these with random damage, the same in each run. If an input
///                                takes longer than 5 s or violates an invariant, writes the input
///                                to the file NAME_replay.input, and fails. Also fails if the
///                                process takes 1 GiB
///     NAME_replay --seeds FOLDER writes the seeds into FOLDER, for libFuzzer to begin with
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace starling::fuzz {
namespace {

/// The size to which damaged inputs are truncated, in bytes.
constexpr std::size_t input_bytes_max = 8192;
/// Limits of integer types and other numbers with which code often compares.
constexpr std::array<std::uint64_t, 10> boundary_numbers{
    0, 1, 2, 127, 255, 256, 65536, UINT32_MAX, std::uint64_t{1} << 63U, UINT64_MAX};

/// Makes damaged copies of inputs, with one to four changes each.
class InputDamager {
 public:
  explicit InputDamager(const std::vector<Bytes>& inputs) : inputs_(inputs) {}

  Bytes next() {
    Bytes input = random_input();
    for (std::size_t count = 1 + random_.below(4); count > 0; --count) change(input);
    if (input.size() > input_bytes_max) input.resize(input_bytes_max);
    return input;
  }

 private:
  const Bytes& random_input() { return inputs_[random_.below(inputs_.size())]; }
  /// Returns a random offset from 0 to the input's size.
  std::size_t random_offset(const Bytes& input) { return random_.below(input.size() + 1); }
  static auto at(Bytes& input, std::size_t offset) {
    return input.begin() + static_cast<std::ptrdiff_t>(offset);
  }

  void change(Bytes& input) {
    const std::size_t from = random_offset(input);
    const std::size_t size = std::min<std::size_t>(random_.below(16), input.size() - from);
    switch (random_.below(8)) {
      case 0:
        input.resize(from);
        break;
      case 1:
        input.erase(at(input, from), at(input, from + size));
        break;
      case 2: {  // copies a part to another offset
        const Bytes part{at(input, from), at(input, from + size)};
        input.insert(at(input, random_offset(input)), part.begin(), part.end());
        break;
      }
      case 3: {  // replaces the rest by the end of another input
        const Bytes& other = random_input();
        input.resize(from);
        input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(random_offset(other)),
                     other.end());
        break;
      }
      case 4: {
        const std::uint64_t number = boundary_numbers.at(random_.below(boundary_numbers.size()));
        if (size > 0)
          std::memcpy(input.data() + from, &number, std::min<std::size_t>(size, sizeof number));
        break;
      }
      case 5:
        if (size > 0) input[from] ^= static_cast<std::byte>(1U << random_.below(8));
        break;
      case 6:
        if (size > 0) input[from] = static_cast<std::byte>(random_.below(256));
        break;
      default:
        input.insert(at(input, from), static_cast<std::byte>(random_.below(256)));
    }
  }

  const std::vector<Bytes>& inputs_;
  Random random_{1};
};

/// Exists while one input is read. If that takes more than 5 s or violates an invariant, the input
/// is written to a file and the program ends.
class ReadGuard {
 public:
  /// Installs the signal handlers. `program` is the path of this program.
  static void install(const std::string& program) {
    path() = program + ".input";
    for (const int signal : {SIGALRM, SIGABRT}) std::signal(signal, on_signal);
  }

  explicit ReadGuard(const Bytes& input) {
    current() = &input;
    ::alarm(seconds_max);
  }
  ReadGuard(const ReadGuard&) = delete;
  ReadGuard& operator=(const ReadGuard&) = delete;
  ~ReadGuard() {
    ::alarm(0);
    current() = nullptr;
  }

  static constexpr unsigned seconds_max = 5;

 private:
  static std::string& path() {
    static std::string crash_file;
    return crash_file;
  }
  static const Bytes*& current() {
    static const Bytes* input = nullptr;
    return input;
  }
  static void on_signal(int signal) {
    if (signal == SIGALRM)
      std::fputs("fuzz: broken invariant: an input takes at most 5 s\n", stderr);
    if (const Bytes* input = std::exchange(current(), nullptr)) {
      std::ofstream{path(), std::ios::binary} << text_of(*input);
      std::fprintf(stderr, "fuzz: the input is in %s\n", path().c_str());
    }
    std::_Exit(1);
  }
};

/// Returns the peak memory of the process in MiB.
long peak_mebibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

void check_memory() {
#ifndef __SANITIZE_ADDRESS__
  require(peak_mebibytes() < 1024, "no input takes a gibibyte");
#endif
}

bool read_guarded(const Bytes& input) {
  const ReadGuard guard{input};
  return read(input);
}

/// Returns the contents of the files of a folder in the order of their names. Returns no contents
/// if there is no folder.
std::vector<Bytes> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator{folder})
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Bytes> contents;
  for (const auto& path : paths) {
    std::ifstream stream{path, std::ios::binary};
    contents.push_back(bytes_of(
        std::string{std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{}}));
  }
  return contents;
}

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (const Bytes& seed : seeds()) {
    std::ofstream stream{folder / ("seed-" + std::to_string(number++)), std::ios::binary};
    stream << text_of(seed);
    require(stream.flush().good(), "seeds are written");
  }
}

void replay(const std::filesystem::path& corpus, std::size_t count) {
  std::vector<Bytes> inputs = seeds();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    require(read_guarded(inputs[i]), ("seed " + std::to_string(i) + " is accepted").c_str());
  const std::size_t seed_count = inputs.size();
  for (Bytes& file : files_in(corpus)) inputs.push_back(std::move(file));
  for (const Bytes& input : inputs) (void)read_guarded(input);
  InputDamager damager{inputs};
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes input = damager.next();
    if (read_guarded(input)) ++accepted;
    if (i % 1024 == 0) check_memory();
  }
  check_memory();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf(
      "%zu seeds, %zu files, %zu damaged inputs of which %zu were accepted; %.1f s, %ld MiB at "
      "most\n",
      seed_count, inputs.size() - seed_count, count, accepted, elapsed.count(), peak_mebibytes());
  require(count == 0 || (accepted > 0 && accepted < count),
          "some damaged inputs are accepted, and some are refused");
}

}  // namespace
}  // namespace starling::fuzz

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "--seeds") {
    starling::fuzz::write_seeds(words[1]);
    return 0;
  }
  const auto count = starling::parse_count(words.size() == 2 ? words[1] : "");
  if (!count) {
    std::fprintf(stderr, "usage: NAME_replay CORPUS COUNT | --seeds FOLDER\n");
    return 2;
  }
  starling::fuzz::ReadGuard::install(argv[0]);
  starling::fuzz::replay(words[0], *count);
  return 0;
}
