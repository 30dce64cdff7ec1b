/// Replays every transcript in tests/scenarios, and compares the effects with those in the file.
#include "tests/engine/core/transcript.hpp"

#include <gtest/gtest.h>
#include "test_paths.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace starling::core {
namespace {

std::vector<std::filesystem::path> transcripts() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator{STARLING_SOURCE_DIR "/tests/scenarios"})
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

class Transcript : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Transcript, HasTheWrittenEffects) {
  std::stringstream written;
  written << std::ifstream{GetParam()}.rdbuf();
  const std::string output = replay(written.str());
  if (std::getenv("STARLING_REWRITE") != nullptr) std::ofstream{GetParam()} << output;
  EXPECT_EQ(written.str(), output)
      << "with STARLING_REWRITE=1, this test writes the present effects into " << GetParam();
}

std::string name(const testing::TestParamInfo<std::filesystem::path>& transcript) {
  std::string stem = transcript.param.stem().string();
  std::ranges::replace(stem, '-', '_');
  return stem;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Transcript, testing::ValuesIn(transcripts()), name);

TEST(Replay, ReplacesWrongEffects) {
  EXPECT_EQ(replay("# A story.\nnew worker id=0 owners=0\nat 0s start\n=> nonsense\n\n"),
            "# A story.\nnew worker id=0 owners=0\nat 0s start\n"
            "=> send owner 0 pull worker=0 range=0 at=0\n");
}

TEST(Replay, ReportsLinesThatItCannotRead) {
  EXPECT_EQ(
      replay("new worker id=0 owners=0\nat 0s start quickly\n"),
      "new worker id=0 owners=0\nat 0s start quickly\n=> error: 'quickly' is not understood\n");
  EXPECT_EQ(replay("at 0s start\n"),
            "at 0s start\n=> error: a line begins with #, new, at or =>; new comes first\n");
  EXPECT_EQ(replay("new shard\nat 0s <- ack range=0 step=1\n"),
            "new shard\nat 0s <- ack range=0 step=1\n"
            "=> error: this core has no handler for this message\n");
}

}  // namespace
}  // namespace starling::core
