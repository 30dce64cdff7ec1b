#include "starling/models/data/source/source.hpp"

#include <gtest/gtest.h>

namespace starling::models {
namespace {

TEST(Source, PrintsWhatItParsed) {
  for (const char* text : {"idx:a.gz,b.gz",
                           "csv:x.csv",
                           "csv:x.csv,label=first",
                           "csv:x.csv,label=price,task=value",
                           "csv:x.csv,task=class",
                           "libsvm:a9a",
                           "libsvm:a9a,features=123",
                           "libsvm:a9a,features=123,task=value",
                           "libsvm:a,features=2,base=0",
                           "libsvm:a,base=1",
                           "npy:x.npy",
                           "npy:x.npy,y.npy",
                           "npy:x.npy,label=last,task=value",
                           "npy:x.npy,y.npy,task=class",
                           "npy:x.npy,y.npy,mapped=yes",
                           "npz:a.npz",
                           "npz:a.npz,features=q,labels=none",
                           "npz:a.npz,task=value",
                           "images:pics",
                           "images:pics,size=28x30",
                           "images:pics,size=3x4,channels=3",
                           "digits:n=100",
                           "linear:d=3,n=5,noise=0.25",
                           "ratings:users=3,items=4,rank=2,n=9,noise=0"}) {
    const auto source = Source::parse(text);
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ(source->print(), text);
    EXPECT_EQ(Source::parse(source->print()).value(), *source);
  }
}

TEST(Source, FillsInDefaults) {
  EXPECT_EQ(Source::parse("digits").value(), Source{DigitsSource{}});
  EXPECT_EQ(Source::parse("digits").value().print(), "digits:n=6000");
  EXPECT_EQ(Source::parse("linear").value().print(), "linear:d=1000,n=20000,noise=0.1");
  EXPECT_EQ(Source::parse("ratings").value().print(),
            "ratings:users=500,items=400,rank=8,n=40000,noise=0.1");
  EXPECT_EQ(Source::parse("csv:f,label=last").value().print(), "csv:f,label=last");
}

TEST(Source, AcceptsFileNamesWithColonsAndSpaces) {
  EXPECT_EQ(std::get<CsvSource>(Source::parse("csv:/tmp/a b:c.csv").value().kind).file,
            "/tmp/a b:c.csv");
}

TEST(Source, NamesEverySourceOnce) {
  for (const auto& [name, line] : source_names()) {
    const bool takes_two_files = name == "idx" || name == "cifar10" || name == "npy";
    const bool takes_files =
        takes_two_files || name == "csv" || name == "libsvm" || name == "npz" || name == "images";
    EXPECT_EQ(Source::parse(takes_files ? name + ":a,b" : name).ok(),
              !takes_files || takes_two_files)
        << name;
    EXPECT_NE(line.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(source_names().size(), std::variant_size_v<decltype(Source::kind)>);
}

TEST(Source, RefusesInvalidTextsWithValidAlternatives) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "'' has no name; valid: NAME or NAME:OPTIONS"},
      {"digit",
       "unknown data source 'digit'; did you mean 'digits'? "
       "valid: idx, cifar10, csv, libsvm, npy, npz, images, digits, linear, ratings"},
      {"parquet:x",
       "unknown data source 'parquet'; valid: idx, cifar10, csv, libsvm, npy, npz, images, digits, "
       "linear, ratings"},
      {"idx", "idx: needs two files; valid: idx:IMAGES,LABELS, no ',' or '=' in a file's name"},
      {"idx:a", "idx: needs two files; valid: idx:IMAGES,LABELS, no ',' or '=' in a file's name"},
      {"idx:a,b,c", "idx: 'c' is one value too many; valid: at most 2 values without a key"},
      {"idx:a,b,task=class", "idx: unknown option 'task'; valid: values without a key"},
      {"csv",
       "csv: names no file; valid: csv:FILE[,label=NAME][,OPTION...], "
       "no ',' or '=' in a file's name"},
      {"csv:day=1/x.csv",
       "csv: names no file; valid: csv:FILE[,label=NAME][,OPTION...], "
       "no ',' or '=' in a file's name"},
      {"csv:f,task=clas", "csv: task=clas is unknown; did you mean 'class'? valid: class, value"},
      {"csv:f,lable=y",
       "csv: unknown option 'lable'; did you mean 'label'? valid: label, id, task, missing, "
       "ignore, category, separator, decimal, comment, header"},
      {"libsvm:label=1",
       "libsvm: names no file; valid: libsvm:FILE[,features=N][,base=0|1][,task=class|value], "
       "no ',' or '=' in a file's name"},
      {"libsvm:f,features=0", "libsvm: features=0 must be a whole number >= 1 and <= 2147483648"},
      {"libsvm:f,features=x", "libsvm: features=x must be a whole number >= 1 and <= 2147483648"},
      {"libsvm:f,base=2", "libsvm: base=2 must be a whole number >= 0 and <= 1"},
      {"npy",
       "npy: names no file; valid: "
       "npy:FILE[,LABELS][,label=last|first][,task=class|value][,mapped=yes], no ',' or '=' in a "
       "file's name"},
      {"npy:x,mapped=on", "npy: mapped=on is unknown; valid: yes, no"},
      {"npy:x,label=mid",
       "npy: label=mid is unknown; valid: last, first, or a file of labels: npy:FILE,LABELS"},
      {"npy:x,y,label=last",
       "npy: label=last and the file 'y' both say where the labels are; valid: one of them"},
      {"npy:x,y,z",
       "npy: 'z' is one value too many; valid: at most 2 values without a key, and options: label, "
       "task, mapped"},
      {"npz:f,label=y",
       "npz: unknown option 'label'; did you mean 'labels'? valid: features, labels, task"},
      {"images:f,size=28",
       "images: size=28 is not a size; valid: HEIGHTxWIDTH in pixels, each 1 to 16384, as in "
       "size=28x28"},
      {"images:f,size=0x3",
       "images: size=0x3 is not a size; valid: HEIGHTxWIDTH in pixels, each 1 to 16384, as in "
       "size=28x28"},
      {"images:f,size=3x16385",
       "images: size=3x16385 is not a size; valid: HEIGHTxWIDTH in pixels, each 1 to 16384, as in "
       "size=28x28"},
      {"images:f,channels=2",
       "images: channels=2 is unknown; valid: 1 (grey) or 3 (red, green, blue)"},
      {"images:f,channels=4", "images: channels=4 must be a whole number >= 1 and <= 3"},
      {"digits:n=0", "digits: n=0 must be a whole number >= 1 and <= 5478274"},
      {"digits:m=3", "digits: unknown option 'm'; did you mean 'n'? valid: n"},
      {"linear:d=0", "linear: d=0 must be a whole number >= 1 and <= 2147483648"},
      {"linear:n=-1", "linear: n=-1 must be a whole number >= 1 and <= 4294967295"},
      {"linear:noise=-1", "linear: noise=-1 must be a number from 0 to 1000000"},
      {"linear:noise=nan", "linear: noise=nan must be a number from 0 to 1000000"},
      {"linear:d=1000000,n=1000000",
       "linear: d=1000000,n=1000000 makes too many values; d * n must be <= 4294967296"},
      {"ratings:users=0", "ratings: users=0 must be a whole number >= 1 and <= 16777216"},
      {"ratings:rank=5000", "ratings: rank=5000 must be a whole number >= 1 and <= 4096"},
      {"ratings:users=16777216,rank=4096",
       "ratings: rank=4096 makes too many factors; (users + items) * rank must be <= 4294967296"},
  };
  for (const auto& [text, message] : cases) {
    const auto source = Source::parse(text);
    ASSERT_FALSE(source.ok()) << text;
    EXPECT_EQ(source.error().message, message) << text;
  }
}

}  // namespace
}  // namespace starling::models
