/// Runs the program with training data in a safetensors file.
#include "tests/tools/files/safetensors_file.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// Returns a safetensors file of 40 samples of two features. The first feature decides the class.
std::string forty_samples() {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (int i = 0; i < 40; ++i) {
    x.insert(x.end(), {i % 2 == 0 ? -1.0F : 1.0F, static_cast<float>(i) / 40});
    y.push_back(i % 2);
  }
  return file_of(
      {{"features", "F32", "[40,2]", bytes_of(x)}, {"labels", "I64", "[40]", bytes_of(y)}});
}

TEST(SafetensorsProgram, TrainsEvaluatesAndInspects) {
  const Folder folder;
  folder.write("d.safetensors", forty_samples());
  const std::string source = "safetensors:d.safetensors";
  const ProgramResult inspected = starling(folder, "inspect " + source);
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("(40 rows, 2 features, 2 classes)"), std::string::npos)
      << inspected.out;
  const ProgramResult trained =
      starling(folder, "train --data " + source +
                           " --model softmax --workers 2 --epochs 40 --batch 4 "
                           "--optimizer adam:lr=0.1 --quiet --save m");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const ProgramResult evaluated = starling(folder, "evaluate m --data " + source);
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("accuracy    1\n"), std::string::npos) << evaluated.out;
}

TEST(SafetensorsProgram, RefusesTestDataWhoseClassesBeginWithAnotherNumber) {
  const Folder folder;
  folder.write("test.safetensors", forty_samples());
  std::string train;
  for (int i = 0; i < 40; ++i) train += i % 2 == 0 ? "1,-1,0.5\n" : "2,1,0.5\n";
  folder.write("train.csv", train);
  const ProgramResult ran =
      starling(folder,
               "train --data csv:train.csv,label=first --test safetensors:test.safetensors "
               "--model softmax --save m");
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_NE(ran.err.find("safetensors:test.safetensors: its classes begin with 0, those of the "
                         "training data with 1; valid: labels numbered alike"),
            std::string::npos)
      << ran.err;
  EXPECT_FALSE(folder.has("m"));
}

TEST(SafetensorsProgram, DoesNotOverwriteItsData) {
  const Folder folder;
  folder.write("d.safetensors", forty_samples());
  const ProgramResult ran =
      starling(folder, "train --data safetensors:d.safetensors --save d.safetensors");
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_EQ(folder.read("d.safetensors"), forty_samples());
}

}  // namespace
}  // namespace starling::program
