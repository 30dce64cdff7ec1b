/// The grammar of algorithms.
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

#include <gtest/gtest.h>

namespace starling::collective {
namespace {

TEST(Algorithms, AreReadBackAsPrinted) {
  for (const std::string text :
       {"ring", "tree", "double-tree", "doubling", "halving", "parts", "groups:4", "groups:7",
        "bcube:k=2", "bcube:k=3", "trees:some.txt", "trees:0-1x2+1-2"}) {
    const auto algorithm = parse_algorithm(text);
    ASSERT_TRUE(algorithm) << algorithm.error().message;
    EXPECT_EQ(print(*algorithm), text);
  }
  EXPECT_EQ(print(parse_algorithm("bcube").value()), "bcube:k=2");
  EXPECT_EQ(print(parse_algorithm("groups").value()), "groups:4");
}

TEST(Algorithms, HaveFormsThatAreRead) {
  for_each_alternative<Algorithm>([]<class A>(const A&) {
    const auto algorithm = parse_algorithm(A::form);
    ASSERT_TRUE(algorithm) << algorithm.error().message;
    EXPECT_TRUE(std::holds_alternative<A>(*algorithm));
  });
}

TEST(Algorithms, WithMistakesAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"rings",
       "unknown collective 'rings'; did you mean 'ring'? valid: ring, tree, double-tree, "
       "doubling, halving, parts, groups, bcube, trees"},
      {"ring:4", "ring: "},
      {"groups:0", "groups: the size of groups: '0'"},
      {"groups:x", "groups: the size of groups: 'x'"},
      {"bcube:k=0", "bcube: k="},
      {"bcube:n=2", "bcube: "},
      {"trees", "trees: the topology's file is missing; valid: trees:FILE"},
      {"trees:0-1+2", "trees: link '2'; valid: A-B or A-BxLANES, such as 0-3x2"},
      {"trees:0x1-2", "trees: link '0x1-2'; valid: A-B or A-BxLANES"},
      {"trees:0-1x", "trees: link '0-1x'; valid: A-B or A-BxLANES"},
      {"trees:0-1+", "trees: link ''; valid: A-B or A-BxLANES"},
      {"trees:0-1+2-3", "trees: links: no links lead from member 0 to member 2"},
      {"trees:0-1+1-0", "trees: links:2: members 1 and 0 have a link already"},
      {"trees:0-64", "trees: links:1: member '64'"},
      {"trees:0-1x0", "trees: links:1: lanes '0'"}};
  for (const auto& [text, error] : cases) {
    const auto algorithm = parse_algorithm(text);
    ASSERT_FALSE(algorithm) << text;
    EXPECT_TRUE(algorithm.error().message.starts_with(error)) << algorithm.error().message;
  }
}

TEST(Algorithms, RefuseMembersThatDoNotFit) {
  const auto error = [](const Algorithm& algorithm, std::size_t members, Rank root = 0,
                        Operation operation = Operation::all_reduce) {
    const auto schedule = make_schedule(algorithm, operation, members, root);
    return schedule ? std::string{} : schedule.error().message;
  };
  EXPECT_EQ(error(BCube{2}, 10),
            "bcube:k=2: 10 members do not fill a cube of k=2; valid: 1, 2^2, 3^2, 4^2, ...");
  EXPECT_EQ(error(BCube{3}, 27), "");
  EXPECT_EQ(error(Groups{9}, 8), "groups:9: groups of 9 among 8 members; valid: groups of 1 to 8");
  EXPECT_EQ(error(Ring{}, 0), "0 members; valid: all-reduce among 1 to 256");
  EXPECT_EQ(error(Ring{}, 257), "257 members; valid: all-reduce among 1 to 256");
  EXPECT_EQ(error(Ring{}, 65, 0, Operation::all_to_all),
            "65 members; valid: all-to-all among 1 to 64");
  EXPECT_EQ(error(Ring{}, 8, 8, Operation::reduce), "root 8 among 8 members; valid: 0 to 7");
  const PackedTrees trees{"t.txt",
                          std::make_shared<Topology>(Topology::parse("0 1\n", "t.txt").value())};
  EXPECT_EQ(error(trees, 3), "trees:t.txt: t.txt has 2 members, and 3 are asked for; valid: 2");
  EXPECT_EQ(error(parse_algorithm("trees:t.txt").value(), 2),
            "trees:t.txt: t.txt is a file, which was not read; valid: links such as 0-1+0-3x2");
  EXPECT_EQ(error(parse_algorithm("trees:0-1").value(), 2), "");
}

TEST(Operations, AreReadBackAsNamed) {
  for (const Operation operation : operations())
    EXPECT_EQ(parse_operation(name(operation)).value(), operation);
  const auto unknown = parse_operation("allreduce");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message.substr(0, 63),
            "unknown operation 'allreduce'; did you mean 'all-reduce'? valid");
}

}  // namespace
}  // namespace starling::collective
