/// `starling collective`, run as a program.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

TEST(Collective, PrintsTheCostAndTheMovesOfEachRound) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, "collective ring --members 3 --bytes 3M --latency 1ms --bandwidth 8Gbps");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "ring: all-reduce of 3 MB among 3 members; latency 1 ms, bandwidth 1 GB/s a port\n"
            "proof            each chunk counts each contribution once, and arrives\n"
            "rounds           4\n"
            "messages         12\n"
            "bytes per port   4000000, 1.333 of the vector\n"
            "time             8 ms\n"
            "time, pipelined  8 ms, one slice is best\n"
            "chunks           3\n"
            "\n"
            "round 1   0 -> 1 adds 2, 1 -> 2 adds 0, 2 -> 0 adds 1\n"
            "round 2   0 -> 1 adds 1, 1 -> 2 adds 2, 2 -> 0 adds 0\n"
            "round 3   0 -> 2 copies 0, 1 -> 0 copies 1, 2 -> 1 copies 2\n"
            "round 4   0 -> 2 copies 1, 1 -> 0 copies 2, 2 -> 1 copies 0\n");
}

TEST(Collective, PrintsAllOfItAsJson) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, "collective tree --members 4 --operation broadcast --root 2 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["collective"], "tree");
  EXPECT_EQ(json["root"], 2);
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_EQ(json["bytes"], 1e8);
  ASSERT_EQ(json["chunks"].size(), 1U);
  EXPECT_EQ(json["chunks"][0]["source"], 2);
  EXPECT_EQ(json["chunks"][0]["destination"], "all");
  ASSERT_EQ(json["schedule"].size(), 2U);
  EXPECT_EQ(json["schedule"][0][0]["from"], 2);
  EXPECT_EQ(json["schedule"][0][0]["action"], "copy");
  EXPECT_EQ(json["schedule"][1].size(), 2U);
}

TEST(Collective, ComparesAllAlgorithmsAndChoosesTheFastest) {
  const Folder folder;
  const std::string options = " --members 12 --bytes 1G";
  const ProgramResult compared = starling(folder, "collective" + options);
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_TRUE(contains(compared.out, "\nfastest: ring\n")) << compared.out;
  for (const char* name : {"tree", "double-tree", "doubling", "halving", "parts", "groups:4"})
    EXPECT_TRUE(contains(compared.out, std::string{"\n"} + name + " ")) << compared.out;
  const ProgramResult chosen = starling(folder, "collective auto" + options);
  EXPECT_EQ(chosen.out, starling(folder, "collective ring" + options).out);
  const Json json = Json::parse(starling(folder, "collective --json" + options).out);
  EXPECT_EQ(json["fastest"], "ring");
  EXPECT_EQ(json["collectives"].size(), 7U);
}

TEST(Collective, PacksTreesIntoATopology) {
  const Folder folder;
  folder.write("cycle.txt", "# four members in a cycle\n0 1\n1 2\n2 3\n3 0\n");
  const ProgramResult ran = starling(
      folder, "collective trees:cycle.txt --operation broadcast --latency 0s --bandwidth 1GB");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "among 4 members")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "bytes per link   50000000, 0.5 of the vector")) << ran.out;
}

TEST(Collective, DrawsAPicture) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "collective halving --members 4 --svg picture.svg");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string svg = folder.read("picture.svg");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n")) << svg;
  EXPECT_TRUE(contains(svg, "<title>0 -&gt; 2 adds chunk 2</title>")) << svg;
}

TEST(Collective, RunsAmongOneMember) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "collective ring --members 1 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["schedule"], Json::array());
  EXPECT_EQ(Json::parse(ran.out)["seconds"], 0);
}

TEST(Collective, RefusesBadInputWithItsPlace) {
  const Folder folder;
  folder.write("bad.txt", "0 1\n1 x\n");
  folder.write("apart.txt", "0 1\n2 3\n");
  folder.write("empty.txt", "");
  folder.write("pair.txt", "0 1\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"rings", "ALGORITHM: unknown collective 'rings'; did you mean 'ring'? valid: ring, tree"},
      {"ring --members 0", "--members: "},
      {"ring --members 257", "--members: "},
      {"ring --members 65 --operation all-to-all", "65 members; valid: all-to-all among 1 to 64"},
      {"bcube:k=2 --members 10",
       "bcube:k=2: 10 members do not fill a cube of k=2; valid: 1, 2^2, 3^2"},
      {"bcube:k=0", "bcube: k="},
      {"groups:0", "groups: the size of groups: '0'"},
      {"groups:9 --members 8", "groups of 9 among 8 members; valid: groups of 1 to 8"},
      {"trees", "the topology's file is missing; valid: trees:FILE"},
      {"trees:gone.txt", "gone.txt"},
      {"trees:bad.txt", "bad.txt:2: member 'x'"},
      {"trees:apart.txt", "apart.txt: no links lead from member 0 to member 2"},
      {"trees:empty.txt", "empty.txt: no links"},
      {"trees:pair.txt --members 3", "pair.txt has 2 members, and 3 are asked for; valid: 2"},
      {"ring --operation allreduce", "--operation: unknown operation 'allreduce'"},
      {"ring --operation reduce --root 8", "root 8 among 8 members; valid: 0 to 7"},
      {"ring --root 1", "--root: all-reduce has no root; valid: with reduce, broadcast"},
      {"ring --bytes 0", "--bytes: '0'; valid: bytes above 0"},
      {"ring --bytes 5X", "--bytes: '5X'; valid: bytes above 0"},
      {"ring --latency 5", "--latency: "},
      {"ring --bandwidth 10", "--bandwidth: '10'; valid: bits or bytes a second above 0: 10Gbps"},
      {"ring --bandwidth infGbps", "--bandwidth: 'infGbps'"},
      {"--svg a.svg", "--svg: the picture is of one algorithm; valid: an ALGORITHM, or auto"},
      {"ring --members 65 --svg a.svg", "--svg: 65 members and 128 rounds are too many"},
      {"ring --svg gone/a.svg", "gone/a.svg"},
      {"ring tree", "tree"},
      {"ring --memberz 5", "--memberz"}};
  const auto before = folder.names();
  for (const auto& [arguments, error] : cases) {
    const ProgramResult ran = starling(folder, "collective " + arguments);
    EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.out;
    EXPECT_TRUE(contains(ran.err, error)) << arguments << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << arguments;
  }
  EXPECT_EQ(folder.names(), before);
}

TEST(Collective, HasAHelpOfNarrowLines) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "collective --help");
  EXPECT_EQ(ran.code, 0);
  for (const auto& line : lines(ran.out)) EXPECT_LE(line.size(), 110U) << line;
  for (const char* form : {"ring", "double-tree", "groups:4", "bcube:k=2", "trees:FILE"})
    EXPECT_TRUE(contains(ran.out, std::string{"\n  "} + form + " ")) << ran.out;
}

}  // namespace
}  // namespace starling::program
