/// A command refuses an output file that it also reads or writes otherwise, even if two different
/// paths lead to the file.
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// A command line in which two paths lead to one file.
struct Clash {
  std::string name;
  std::string line;
  /// Texts that the error message contains.
  std::vector<std::string> error_parts;
};

void PrintTo(const Clash& clash, std::ostream* out) { *out << clash.line; }

class Overwrite : public testing::TestWithParam<Clash> {
 protected:
  /// Writes the data d.csv, a job file, and the model and the checkpoint `ck` of that job. u/link
  /// leads to d.csv, and `ahead` to a file that does not exist yet.
  void SetUp() override {
    folder_.write("d.csv", "1,0\n2,1\n3,0\n4,1\n5,0\n");
    folder_.write("job.toml", "data = \"csv:d.csv\"\nworkers = 1\nbarrier = \"asp\"\nsteps = 3\n");
    const ProgramResult ran =
        starling(folder_, "train job.toml --quiet --save model --checkpoint ck");
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::filesystem::create_directory(folder_.path() / "u");
    std::filesystem::create_symlink("../d.csv", folder_.path() / "u" / "link");
    std::filesystem::create_symlink("new", folder_.path() / "ahead");
  }
  /// Returns the contents of all files that a command could overwrite.
  [[nodiscard]] std::string contents() const {
    std::string content;
    for (const char* name : {"d.csv", "job.toml", "model", "ck"}) content += folder_.read(name);
    return content;
  }
  Folder folder_;
};

TEST_P(Overwrite, IsRefusedAndKeepsAllFiles) {
  const std::string before = contents();
  const auto names = folder_.names();
  const ProgramResult ran = starling(folder_, GetParam().line);
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(contents(), before);
  EXPECT_EQ(folder_.names(), names);
  for (const std::string& part : GetParam().error_parts)
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\nis not in\n" << ran.err;
  EXPECT_EQ(ran.err.find("loading"), std::string::npos) << "before anything is read";
}

std::string name_of(const testing::TestParamInfo<Clash>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Files, Overwrite,
    testing::Values(Clash{"SaveData",
                          "train --data csv:d.csv --save d.csv",
                          {"--save: 'd.csv' is also the file of --data\n"}},
                    Clash{"SaveDataAnotherWay",
                          "train --data csv:d.csv --save ./u/../d.csv",
                          {"--save: './u/../d.csv' is also the file of --data, 'd.csv'"}},
                    Clash{"SaveDataByALink",
                          "train --data csv:d.csv --save u/link",
                          {"--save: 'u/link' is also the file of --data, 'd.csv'"}},
                    Clash{"SaveTest",
                          "train --data digits:n=300 --test csv:d.csv --save d.csv",
                          {"--save: 'd.csv' is also the file of --test"}},
                    Clash{"SaveLabels",
                          "train --data idx:images,d.csv --save d.csv",
                          {"--save: 'd.csv' is also the file of --data"}},
                    Clash{"MetricsData",
                          "train --data libsvm:d.csv --metrics d.csv",
                          {"--metrics: 'd.csv' is also the file of --data"}},
                    Clash{"MetricsJob",
                          "train job.toml --metrics ./job.toml",
                          {"--metrics: './job.toml' is also the file of the job, 'job.toml'"}},
                    Clash{"CheckpointDataOfTheJob",
                          "train job.toml --checkpoint d.csv",
                          {"--checkpoint: 'd.csv' is also the file of job.toml:1: data"}},
                    Clash{"SaveResumed",
                          "train job.toml --steps 9 --resume ck --save ck",
                          {"--save: 'ck' is also the file of --resume"}},
                    Clash{"MetricsResumed",
                          "train job.toml --steps 9 --resume ck --metrics ck",
                          {"--metrics: 'ck' is also the file of --resume"}},
                    Clash{"SaveMetrics",
                          "train --save x --metrics ./x",
                          {"--metrics: './x' is also the file of --save, 'x'"}},
                    Clash{"SaveCheckpoint",
                          "train --checkpoint x --save u/../x",
                          {"--save: 'u/../x' is also the file of --checkpoint, 'x'"}},
                    Clash{"SaveWhatALinkWouldMake",
                          "train --save new --metrics ahead",
                          {"--metrics: 'ahead' is also the file of --save, 'new'"}},
                    Clash{"PredictModel",
                          "predict --model-file model --data csv:d.csv --out ./model",
                          {"--out: './model' is also the file of the model, 'model'"}},
                    Clash{"PredictData",
                          "predict model --data csv:d.csv --out d.csv",
                          {"--out: 'd.csv' is also the file of the data"}},
                    Clash{"PredictDataOfTheModel",
                          "predict model --out d.csv",
                          {"--out: 'd.csv' is also the file of the data"}}),
    name_of);

TEST(Save, ReplacesTheFileThatALinkLeadsTo) {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "models");
  std::filesystem::create_symlink("models/m", folder.path() / "link");
  for (const char* steps : {"1", "2"}) {
    const ProgramResult ran =
        starling(folder, std::string{small_job} + "--save link --steps " + steps);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
    EXPECT_EQ(starling(folder, "evaluate models/m").code, 0);
  }
}

}  // namespace
}  // namespace starling::program
