/// Data in unknown formats, and arrays and images that are damaged or do not fit the job. The error
/// names the file, the location in the file and the valid input. The exit code is 2, and no file is
/// left behind.
#include <cmath>

#include "tests/models/data/numpy.hpp"
#include "tests/models/data/pictures.hpp"
#include "tests/tools/refused.hpp"

namespace starling::program {
namespace {

using models::little;
using models::npy;
using models::zip_of;

const std::string four_rows = npy("<f4", "4, 2", little<float>({1, 2, 3, 4, 5, 6, 7, 8}));
const std::string four_labels = npy("<i8", "4,", little<std::int64_t>({0, 1, 0, 1}));
const std::string png_of_one_pixel = models::png_of(1, 1, {7});

class BadData : public testing::TestWithParam<RefusedLine> {};

TEST_P(BadData, IsRefusedWithFileAndLocation) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Formats, BadData,
    testing::Values(
        RefusedLine{"Parquet",
                    "train --data t.parquet",
                    {},
                    {"--data: 't.parquet' has a format that Starling does not read",
                     "this command converts it: ",
                     "python3 -c \"import pandas; pandas.read_parquet('t.parquet').to_csv('t.csv', "
                     "index=False)\""}},
        RefusedLine{"Excel", "train --data t.xlsx", {}, {"read_excel('t.xlsx').to_csv('t.csv'"}},
        RefusedLine{"Json", "train --data t.json", {}, {"read_json('t.json').to_csv('t.csv'"}},
        RefusedLine{"JsonLines", "train --data t.jsonl", {}, {"read_json('t.jsonl', lines=True)"}},
        RefusedLine{
            "Arff", "train --data d/t.arff", {}, {"loadarff('d/t.arff')", "to_csv('d/t.csv'"}},
        RefusedLine{"Hdf", "train --data t.h5", {}, {"h5py.File('t.h5')", "numpy.savez('t.npz'"}},
        RefusedLine{"Pickle", "train --data t.pkl", {}, {"read_pickle('t.pkl')", "to_csv('t.csv'"}},
        RefusedLine{"ForeignPrefix",
                    "train --data parquet:t.parquet",
                    {},
                    {"'t.parquet' has a format that Starling does not read", "read_parquet"}},
        RefusedLine{"ForeignAsCsv",
                    "train --data csv:t.xlsx",
                    {{"t.xlsx", "PK\3\4"}},
                    {"--data: 't.xlsx' has a format that Starling does not read", "read_excel"}},
        RefusedLine{"ForeignAsTest",
                    "train --data digits:n=100 --test csv:t.json",
                    {},
                    {"--test: 't.json' has a format that Starling does not read"}},
        RefusedLine{"ArrayAsLibsvm",
                    "train --data libsvm:x.npy",
                    {{"x.npy", four_rows}},
                    {"'x.npy' is not a text file, but libsvm: reads only text files; valid: "
                     "npy:x.npy,LABELS"}},
        RefusedLine{"BareArray",
                    "train --data x.npy",
                    {{"x.npy", four_rows}},
                    {"'x.npy' is a file; data is named with its format: npy:x.npy,LABELS, "
                     "npy:x.npy,label=last or npy:x.npy"}},
        RefusedLine{"BareArchive",
                    "train --data a.npz",
                    {{"a.npz", ""}},
                    {"'a.npz' is a file; data is named with its format: npz:a.npz"}},
        RefusedLine{"BareFolder",
                    "train --data pics",
                    {{"pics/a/1.png", png_of_one_pixel}},
                    {"'pics' is a folder; data is named with its format: images:pics"}},
        RefusedLine{"BareImage",
                    "train --data 1.png",
                    {{"1.png", png_of_one_pixel}},
                    {"'1.png' is a file; data is named with its format: images:FOLDER"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Arrays, BadData,
    testing::Values(
        RefusedLine{"WithoutLabels",
                    "train --data npy:x.npy",
                    {{"x.npy", four_rows}},
                    {"--data: npy:x.npy: has no labels", "valid: npy:FILE,LABELS, label=last or"}},
        RefusedLine{"ArchiveWithoutLabels",
                    "train --data npz:a.npz",
                    {{"a.npz", zip_of({{"x.npy", four_rows}})}},
                    {"npz:a.npz: has no labels", "valid: labels=NAME"}},
        RefusedLine{"LabelsMissing",
                    "train --data npy:x.npy,y.npy",
                    {{"x.npy", four_rows}},
                    {"--data: y.npy: no such file"}},
        RefusedLine{
            "LabelsOfOthers",
            "train --data npy:x.npy,y.npy",
            {{"x.npy", four_rows}, {"y.npy", npy("<i8", "3,", little<std::int64_t>({0, 1, 0}))}},
            {"y.npy: its shape is [3]; the shape of x.npy is [4, 2]; valid: a label for each row"}},
        RefusedLine{"CutOff",
                    "inspect npy:x.npy",
                    {{"x.npy", four_rows.substr(0, 90)}},
                    {"x.npy: its header promises [4, 2] values of 4 bytes, but the file is too "
                     "short for them"}},
        RefusedLine{"NotFinite",
                    "inspect npy:x.npy",
                    {{"x.npy", npy("<f4", "1, 2", little<float>({1, NAN}))}},
                    {"x.npy: the value at [0, 1] is NaN, infinite or too large for a float"}},
        RefusedLine{
            "Text",
            "inspect npy:x.npy",
            {{"x.npy", npy("<U1", "2, 1", little<float>({1, 2}))}},
            {"x.npy: its elements are of type '<U1'", "numpy.unique(y, return_inverse=True)[1]"}},
        RefusedLine{"ArchiveOfNothing",
                    "train --data npz:a.npz",
                    {{"a.npz", "PK\5\6" + std::string(18, '\0')}},
                    {"a.npz: "}},
        RefusedLine{"ArchiveOfOthers",
                    "train --data npz:a.npz",
                    {{"a.npz", zip_of({{"p.npy", four_rows}, {"q.npy", four_labels}})}},
                    {"a.npz: no array has a usual name", "'p', 'q'", "npz:a.npz,features=NAME"}},
        RefusedLine{"ArchiveWithoutTheName",
                    "train --data npz:a.npz,features=p,labels=r",
                    {{"a.npz", zip_of({{"p.npy", four_rows}, {"q.npy", four_labels}})}},
                    {"a.npz: holds no array 'r' (labels); "}},
        RefusedLine{"TestOfOtherWidth",
                    "train --data npy:x.npy,y.npy --test npy:z.npy,y.npy",
                    {{"x.npy", four_rows},
                     {"y.npy", four_labels},
                     {"z.npy", npy("<f4", "4, 1", little<float>({1, 2, 3, 4}))}},
                    {"--test: z.npy,y.npy: has 1 features, but x.npy,y.npy has 2"}},
        RefusedLine{"SavedOverTheData",
                    "train --data npy:x.npy,y.npy --save y.npy",
                    {{"x.npy", four_rows}, {"y.npy", four_labels}},
                    {"--save: 'y.npy' is also the file of --data"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Images, BadData,
    testing::Values(
        RefusedLine{"OutputAmongImages",
                    "train --data images:pics --save ./pics/a/1.png",
                    {{"pics/a/1.png", png_of_one_pixel}, {"pics/b/2.png", png_of_one_pixel}},
                    {"--save: './pics/a/1.png' is in a subfolder of --data, 'pics'; valid: a file "
                     "elsewhere"}},
        RefusedLine{"NoFolder", "train --data images:pics", {}, {"--data: pics: no such folder"}},
        RefusedLine{"NoClasses",
                    "train --data images:pics",
                    {{"pics/1.png", png_of_one_pixel}, {"pics/2.png", png_of_one_pixel}},
                    {"images:pics: has no labels", "valid: one folder of images a class"}},
        RefusedLine{"OneClass",
                    "train --data images:pics",
                    {{"pics/a/1.png", png_of_one_pixel}},
                    {"pics: has one class, 'a', but a classification needs at least two"}},
        RefusedLine{"NoImage",
                    "train --data images:pics",
                    {{"pics/a/1.png", png_of_one_pixel}, {"pics/b/notes.txt", "hello"}},
                    {"pics/b/notes.txt: is not a PNG or JPEG image; it starts with 'hello'"}},
        RefusedLine{"WebP",
                    "train --data images:pics",
                    {{"pics/a/1.webp", "RIFF1234WEBP"}, {"pics/b/2.png", png_of_one_pixel}},
                    {"pics/a/1.webp: is an image of the format WebP", "save('pics/a/1.png')"}},
        RefusedLine{
            "CutOffImage",
            "train --data images:pics",
            {{"pics/a/1.png", png_of_one_pixel.substr(0, 45)}, {"pics/b/2.png", png_of_one_pixel}},
            {"pics/a/1.png: its PNG data is damaged: "}},
        RefusedLine{
            "OtherSize",
            "train --data images:pics",
            {{"pics/a/1.png", png_of_one_pixel}, {"pics/b/2.png", models::png_of(1, 2, {1, 2})}},
            {"pics/b/2.png: is of 1x2 pixels (height x width), but pics/a/1.png is of 1x1; valid: "
             "images:pics,size=1x1 resizes all"}},
        RefusedLine{"BadSize",
                    "train --data images:pics,size=28",
                    {{"pics/a/1.png", png_of_one_pixel}},
                    {"images: size=28 is not a size; valid: HEIGHTxWIDTH in pixels"}},
        RefusedLine{
            "OtherClass",
            "train --data images:a --test images:b",
            {{"a/cat/1.png", png_of_one_pixel},
             {"a/dog/1.png", png_of_one_pixel},
             {"b/cow/1.png", png_of_one_pixel}},
            {"--test: b: has a class 'cow', which the training data lack", "valid: cat, dog"}},
        RefusedLine{
            "DeepFolder",
            "train --data images:pics",
            {{"pics/train/a/1.png", png_of_one_pixel}, {"pics/test/a/1.png", png_of_one_pixel}},
            {"pics/test/a: is a folder inside the folder of a class", "images:pics/test"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Libsvm, BadData,
    testing::Values(
        RefusedLine{"TestFromZero",
                    "train --data libsvm:a --test libsvm:b",
                    {{"a", "0 1:1\n1 2:1\n"}, {"b", "0 0:1\n"}},
                    {"--test: b:1: the index of '0:1' is not valid, because a counts features from "
                     "1; set base=0 or base=1 if this file counts otherwise"}},
        RefusedLine{"BadBase", "train --data libsvm:a,base=2", {{"a", ""}}, {"libsvm: base=2"}},
        RefusedLine{"BadQuery",
                    "train --data libsvm:a",
                    {{"a", "0 qid:x 1:1\n"}},
                    {"a:1: 'qid:x' is not a query id; valid: qid:N"}}),
    name_of);

/// Indices of a libsvm file begin with 0 or with 1. A file in which no row has index 0 does not
/// show which; therefore the model stores the base of its training data.
TEST(LibsvmBase, IsKeptInTheModel) {
  const Folder folder;
  folder.write("a", "0 0:1\n1 1:1\n0 0:1\n1 1:1\n0 0:1\n1 1:1\n0 0:1\n1 1:1\n");
  folder.write("b", "1 1:1\n");
  ASSERT_EQ(starling(folder, "train --data libsvm:a --test libsvm:a --save m --quiet").code, 0);
  const ProgramResult ran = starling(folder, "predict m --data libsvm:b");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("0,1,1"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace starling::program
