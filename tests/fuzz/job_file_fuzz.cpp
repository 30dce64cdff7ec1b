/// Parses job files, with and without the keys of a simulation, and makes jobs of their settings.
#include "starling/tools/command_line/job_file.hpp"

#include "starling/tools/job/job.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace starling::fuzz {
namespace {

/// Parsing a job file may take this many times its size: each value is a node on the heap, which
/// stores its location and the name of its file.
constexpr std::size_t heap_factor = 2048;

/// Returns true if a setting may name a trace (a file of durations), which make_job() would read.
bool names_trace(const program::Settings& settings) {
  return std::ranges::any_of(settings, [](const program::Setting& s) {
    return s.text.find("trace") != std::string::npos;
  });
}

}  // namespace

bool read(Input input) {
  const std::string_view text = text_of(input);
  const auto settings = with_bounded_heap(heap_factor * input.size() + 65536, [&] {
    return program::parse_job_file(text, "job.toml");
  });
  const auto sim = program::parse_sim_file(text, "job.toml");
  require(settings.ok() || !sim.ok(), "a simulation refuses every file that a job refuses");
  if (!settings) return false;
  for (const program::Setting& setting : *settings)
    require(setting.location.starts_with("job.toml:"), "settings have a location");
  if (!names_trace(*settings)) (void)program::make_job(*settings, {});
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const char* text :
       {"", "workers = 8\n\ndata = \"digits:n=300\"  # a comment\nholdout = 0.25\n",
        "straggler = [\"1:4x\", \"5%:2x\"]\njson = false\nsplit = 8_000\nl2 = 1e-4\n",
        "data = 'idx:images.gz,labels.gz'\nmodel = \"mlp:784-64-10\"\nepochs = 2.5\n"
        "optimizer = \"adam:lr=0.003\"\nschedule = \"cosine:samples=100000\"\nclip = \"norm:5\"\n",
        "until = \"accuracy>=0.96\"\nmode = \"peer\"\nbarrier = \"pssp:s=4,beta=2\"\n"
        "recheck = \"notify+interval:5ms\"\ndelay = \"exp:5ms\"\nseed = 7\nseconds = \"200ms\"\n",
        "workers = 100\n\n[sim]\nbarrier = [\"bsp\", \"pbsp:beta=2\"]\nlevel = \"protocol\"\n",
        "\"workers\" = 0x10\nsave = \"\"\"\na\\u00e4\\\n   b\"\"\"\n"})
    all.push_back(bytes_of(text));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
