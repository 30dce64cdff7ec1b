#include <cmath>

#include "starling/base/input.hpp"
#include "tests/models/data/files.hpp"
#include "tests/models/data/numpy.hpp"

namespace starling::models {
namespace {

const std::string two_labels = npy("<i8", "2,", little<std::int64_t>({0, 1}));

Table load_numbers(const TemporaryFolder& folder, const std::string& content) {
  return load_text("npy:" + folder.write("x.npy", content)).value();
}

std::vector<float> values_of(const Table& table) {
  std::vector<float> all;
  for (std::size_t row = 0; row < table.size(); ++row)
    all.insert(all.end(), table.dense_row(row).begin(), table.dense_row(row).end());
  return all;
}

TEST(Npy, ReadsEveryTypeInBothByteOrders) {
  const TemporaryFolder folder;
  const auto expect_values = [&](const std::string& type, const std::string& data,
                                 const std::vector<float>& wanted) {
    const Table table = load_numbers(folder, npy(type, "2, 2", data));
    EXPECT_EQ(values_of(table), wanted) << type;
    EXPECT_FALSE(table.has_labels);
  };
  const auto expect_in_both_orders = [&]<class T>(const std::string& type,
                                                  const std::vector<T>& numbers,
                                                  const std::vector<float>& wanted) {
    expect_values("<" + type, little(numbers), wanted);
    expect_values(">" + type, big(numbers), wanted);
  };
  // The binary16 numbers 1.5, -2, the smallest above 0, and the largest, 65504.
  expect_in_both_orders("f2", std::vector<std::uint16_t>{0x3e00, 0xc000, 0x0001, 0x7bff},
                        {1.5F, -2, 0x1p-24F, 65504});
  expect_in_both_orders("f4", std::vector<float>{1.5F, -2, 0, 1e30F}, {1.5F, -2, 0, 1e30F});
  expect_in_both_orders("f8", std::vector<double>{1.5, -2, 0.1, 1e30}, {1.5F, -2, 0.1F, 1e30F});
  expect_in_both_orders("i2", std::vector<std::int16_t>{1, -2, 32767, -32768},
                        {1, -2, 32767, -32768});
  expect_in_both_orders("i4", std::vector<std::int32_t>{1, -2, 300000, -7}, {1, -2, 300000, -7});
  expect_in_both_orders("i8", std::vector<std::int64_t>{1, -2, 1LL << 40, -7},
                        {1, -2, 0x1p40F, -7});
  expect_in_both_orders("u2", std::vector<std::uint16_t>{1, 2, 65535, 0}, {1, 2, 65535, 0});
  expect_in_both_orders("u4", std::vector<std::uint32_t>{1, 2, 1U << 31U, 0}, {1, 2, 0x1p31F, 0});
  expect_in_both_orders("u8", std::vector<std::uint64_t>{1, 2, 1ULL << 63U, 0}, {1, 2, 0x1p63F, 0});
  expect_values("|i1", std::string("\x01\xfe\x7f\x80", 4), {1, -2, 127, -128});
  expect_values("|b1", std::string("\x01\x00\x00\x01", 4), {1, 0, 0, 1});
  expect_values("|u1", std::string("\x00\x33\x66\xff", 4), {0, 0.2F, 0.4F, 1});
}

TEST(Npy, ConvertsColumnMajorToRowMajor) {
  const TemporaryFolder folder;
  std::vector<float> numbers(24);
  for (std::size_t i = 0; i < 24; ++i) numbers[i] = static_cast<float>(i);
  // The element [a, b, c] of [2, 3, 4] is a + 2 b + 6 c.
  const Table table = load_numbers(folder, npy("<f4", "2, 3, 4", little(numbers), true));
  ASSERT_EQ(table.size(), 2U);
  ASSERT_EQ(table.features(), 12U);
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t c = 0; c < 4; ++c)
        EXPECT_EQ(table.dense_row(a)[4 * b + c], static_cast<float>(a + 2 * b + 6 * c));
  EXPECT_EQ(values_of(load_numbers(folder, npy("<f4", "2, 3, 4", little(numbers)))), numbers);
}

TEST(Npy, ReadsLabelsFromAFileOrAColumn) {
  const TemporaryFolder folder;
  const auto x = folder.write("x.npy", npy("<f4", "3, 2", little<float>({5, 0, 6, 1, 7, 0})));
  const auto y = folder.write("y.npy", npy("<i4", "3, 1", little<std::int32_t>({2, 1, 2})));
  const auto reals = folder.write("r.npy", npy("<f8", "3,", little<double>({0.5, 1, -3})));
  const Table apart = load_text("npy:" + x + "," + y).value();
  EXPECT_EQ(apart.classes(), 2U);
  EXPECT_EQ(apart.label(0), 1);
  EXPECT_EQ(apart.labelling.first_label, 1);
  EXPECT_EQ(load_text("npy:" + x + "," + reals).value().label(2), -3);
  const Table last = load_text("npy:" + x + ",label=last").value();
  EXPECT_EQ(values_of(last), (std::vector<float>{5, 6, 7}));
  EXPECT_EQ(last.classes(), 2U);
  EXPECT_EQ(last.label(1), 1);
  const Table first = load_text("npy:" + x + ",label=first,task=value").value();
  EXPECT_EQ(values_of(first), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(first.label(2), 7);
}

TEST(Npy, DoesNotScaleLabelsThatAreBytes) {
  const TemporaryFolder folder;
  const auto x = folder.write("x.npy", npy("|u1", "2, 2", std::string("\xff\x00\x33\x01", 4)));
  const Table table = load_text("npy:" + x + ",label=last").value();
  EXPECT_EQ(values_of(table), (std::vector<float>{1, 0.2F}));
  EXPECT_EQ(table.label(1), 1);
  const auto y = folder.write("y.npy", npy("|u1", "2,", std::string("\x01\x00", 2)));
  EXPECT_EQ(load_text("npy:" + x + "," + y).value().label(0), 1);
}

TEST(Npy, ReadsGzipAndEveryVersion) {
  const TemporaryFolder folder;
  const std::string data = little<float>({1, 2});
  const std::string plain = npy("<f4", "1, 2", data);
  EXPECT_EQ(load_numbers(folder, gzip(plain)).features(), 2U);
  const std::string header = "{\"descr\": \"<f4\", 'shape': (1L, 2L), 'fortran_order': False}  \n";
  for (const char version : {'\2', '\3'}) {
    std::string bytes = "\x93NUMPY";
    bytes += {version, '\0', static_cast<char>(header.size()), '\0', '\0', '\0'};
    EXPECT_EQ(values_of(load_numbers(folder, bytes + header + data)), (std::vector<float>{1, 2}));
  }
}

struct InvalidFile {
  std::string content;
  std::string message;
};

TEST(Npy, RefusesBadFilesWithLocationAndValidForm) {
  const std::string four = little<float>({1, 2, 3, 4});
  const std::string types =
      "valid: float16, float32, float64, int8 to int64, uint8 to uint64 and bool, as "
      "x.astype('float32') makes";
  const std::string whole = npy("<f4", "2, 2", four);
  const std::vector<InvalidFile> cases{
      {"", "FILE: its header ends too early, at byte 0"},
      {"1,2\n3,4\n5,6\n",
       "FILE: is not a NumPy array: it starts with '1,2\\x0a3,', not with "
       "\\x93NUMPY"},
      {whole.substr(0, 9), "FILE: its header ends too early, at byte 9"},
      {whole.substr(0, 40), "FILE: its header ends too early, at byte 40"},
      {whole.substr(0, whole.size() - 1),
       "FILE: its header promises [2, 2] values of 4 bytes, but the file is too short for them"},
      {whole + "x", "FILE: holds more than its header promises, from byte " +
                        std::to_string(whole.size()) + " on"},
      {"\x93NUMPY\x04" + whole.substr(7), "FILE: its format is version 4; valid: 1, 2, 3"},
      {std::string{"\x93NUMPY\x02\x00\x00\x00\x01\x00", 12} + four,
       "FILE: its header ends too early, at byte 28"},
      {std::string{"\x93NUMPY\x02\x00\x01\x00\x01\x00", 12} + four,
       "FILE: its header takes 65537 bytes; valid: up to 65536"},
      {npy_with("{'descr': '<f4', 'fortran_order': False}", four),
       "FILE: its header is damaged at ''; valid: {'descr': '<f4', 'fortran_order': False, "
       "'shape': (3, 2), }"},
      {npy_with("{'descr': '<f4', 'shape': (2, -2), 'fortran_order': False}", four),
       "FILE: its header is damaged at '-2), 'fortran_order': False}'; valid: {'descr': '<f4', "
       "'fortran_order': False, 'shape': (3, 2), }"},
      {npy("<c8", "1, 2", four),
       "FILE: its elements are of type '<c8'; valid: real numbers, as numpy.abs(x) makes of "
       "complex ones"},
      {npy("<U1", "2, 2", four),
       "FILE: its elements are of type '<U1'; valid: numbers, as numpy.unique(y, "
       "return_inverse=True)[1] makes of text"},
      {npy("|O", "2, 2", four),
       "FILE: its elements are of type '|O'; valid: numbers, as numpy.array(x.tolist(), "
       "dtype='float32') makes of objects"},
      {npy("<f16", "1, 1", four), "FILE: its elements are of type '<f16'; " + types},
      {npy("<M8[s]", "2, 1", four), "FILE: its elements are of type '<M8[s]'; " + types},
      {npy_with("{'descr': [('a', '<f4'), ('b', '<f4')], 'shape': (2,)}", four),
       "FILE: its elements are records of several fields; valid: numbers, as "
       "numpy.lib.recfunctions.structured_to_unstructured(x) makes of them"},
      {npy("<f4", "0, 2", ""), "FILE: has no elements: its shape is [0, 2]"},
      {npy("<f4", "4,", four),
       "FILE: its shape is [4]; valid: [rows, features] or [rows, height, width, channels]"},
      {npy("<f4", "", four.substr(0, 4)),
       "FILE: its shape is []; valid: [rows, features] or [rows, height, width, channels]"},
      {npy("<f4", "4294967296, 4294967296", four),
       "FILE: its header promises [4294967296, 4294967296] values of 4 bytes, but the file is "
       "too short for them"},
      {npy("<f4", "2, 2", little<float>({1, 2, 3, NAN})),
       "FILE: the value at [1, 1] is NaN, infinite or too large for a float; "
       "~numpy.isfinite(x.astype('float32')) marks all of these"},
      {npy("<f8", "1, 2", little<double>({1, 1e39})),
       "FILE: the value at [0, 1] is NaN, infinite or too large for a float; "
       "~numpy.isfinite(x.astype('float32')) marks all of these"},
      {npy("<f4", "2, 2", little<float>({1, 2, INFINITY, 4}), true),
       "FILE: the value at [0, 1] is NaN, infinite or too large for a float; "
       "~numpy.isfinite(x.astype('float32')) marks all of these"},
      {npy("|u1", "1, 3, 2, 2", std::string(12, 'x')),
       "FILE: its shape is [1, 3, 2, 2]; it looks like images with the channels first; valid: "
       "[rows, height, "
       "width, channels], as x.transpose(0, 2, 3, 1) makes it"},
  };
  const TemporaryFolder folder;
  for (const auto& [content, message] : cases) {
    const std::string path = folder.write("x.npy", content);
    EXPECT_EQ(message_of(load_text("npy:" + path)), with_path(message, path));
  }
}

TEST(Npy, RefusesLabelsThatDoNotFit) {
  const TemporaryFolder folder;
  const auto x = folder.write("x.npy", npy("<f4", "2, 2", little<float>({1, 2, 3, 4})));
  const auto labels_error = [&](const std::string& labels) {
    return message_of(load_text("npy:" + x + "," + folder.write("y.npy", labels)));
  };
  const std::string y = folder.path("y.npy");
  EXPECT_EQ(
      labels_error(npy("<i8", "3,", little<std::int64_t>({0, 1, 1}))),
      y + ": its shape is [3]; the shape of " + x + " is [2, 2]; valid: a label for each row");
  EXPECT_EQ(labels_error(npy("<f4", "2, 2", little<float>({1, 0, 0, 1}))),
            y + ": its shape is [2, 2]; valid for labels: [rows] or [rows, 1], as y.argmax(1) "
                "makes from one column for each class");
  EXPECT_EQ(message_of(load_text("npy:" + x + "," + y + "z")), y + "z: no such file");
  const auto narrow = folder.write("n.npy", npy("<f4", "2, 1", little<float>({1, 2})));
  EXPECT_EQ(message_of(load_text("npy:" + narrow + ",label=last")),
            narrow +
                ": its shape is [2, 1]; valid if a column is the label: [rows, columns], 2 "
                "columns or more");
}

TEST(Npy, RespectsTheMemoryLimit) {
  const TemporaryFolder folder;
  const auto x = folder.write("x.npy", npy("|i1", "1024, 1024", std::string(1 << 20, '\1')));
  const auto column_major =
      folder.write("t.npy", npy("|i1", "1024, 1024", std::string(1 << 20, '\1'), true));
  ReadLimits limits;
  limits.memory_max = 6 << 20;
  const ReadScope scope{limits};
  EXPECT_EQ(load_text("npy:" + x).value().size(), 1024U);
  EXPECT_NE(message_of(load_text("npy:" + column_major)).find("of memory; valid: up to"),
            std::string::npos);
}

TEST(MappedNpy, HasTheRowsOfTheFileWithoutReadingThem) {
  const TemporaryFolder folder;
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6, 7, 8};
  const auto x = folder.write("x.npy", aligned_npy("<f4", "4, 2", little(numbers)));
  const auto y = folder.write("y.npy", npy("<i8", "4,", little<std::int64_t>({0, 1, 1, 0})));
  ReadLimits limits;
  limits.memory_max = 31;  // less than the 32 bytes of the features
  const ReadScope scope{limits};
  EXPECT_NE(message_of(load_text("npy:" + x)).find("of memory; valid: up to"), std::string::npos);
  const Table table = load_text("npy:" + x + ",mapped=yes").value();
  EXPECT_TRUE(table.is_mapped());
  EXPECT_FALSE(table.has_labels);
  EXPECT_EQ(values_of(table), numbers);
  EXPECT_EQ(table.entries(), 8U);
  const Table labelled = load_text("npy:" + x + "," + y + ",mapped=yes").value();
  EXPECT_EQ(labelled.classes(), 2U);
  EXPECT_EQ(labelled.label(1), 1);
  EXPECT_LT(labelled.bytes(), 32U) << "only the labels are in memory";
}

TEST(MappedNpy, SelectionsStayInTheFile) {
  const TemporaryFolder folder;
  const auto x =
      folder.write("x.npy", aligned_npy("<f4", "3, 2", little<float>({1, 2, 3, 4, 5, 6})));
  const Table table = load_text("npy:" + x + ",mapped=yes").value();
  EXPECT_TRUE(table.has_adjacent_rows());
  const Table chosen = table.select(std::vector<std::uint32_t>{2, 0, 2});
  EXPECT_TRUE(chosen.is_mapped());
  EXPECT_FALSE(chosen.has_adjacent_rows());
  EXPECT_EQ(values_of(chosen), (std::vector<float>{5, 6, 1, 2, 5, 6}));
  EXPECT_EQ(values_of(chosen.select(std::vector<std::uint32_t>{1, 0})),
            (std::vector<float>{1, 2, 5, 6}));
  chosen.prefetch(std::vector<std::uint32_t>{0, 1, 2});
  const Table none = table.select({});
  EXPECT_EQ(none.size(), 0U);
  EXPECT_EQ(none.features(), 2U);
}

TEST(MappedNpy, RefusesFilesThatCannotBeUsedAsTheyAre) {
  const TemporaryFolder folder;
  const std::vector<float> numbers{1, 2, 3, 4};
  const auto error_of = [&](const std::string& content, const std::string& options = "") {
    const auto x = folder.write("x.npy", content);
    std::string text = message_of(load_text("npy:" + x + ",mapped=yes" + options));
    return text.starts_with(x) ? text.substr(x.size()) : text;
  };
  const std::string unusable =
      ": its values cannot be used as they are in the file; valid with mapped=yes: as "
      "numpy.save(file, numpy.ascontiguousarray(x, 'float32')) writes them";
  EXPECT_EQ(error_of(aligned_npy(">f4", "2, 2", big(numbers))), unusable);
  EXPECT_EQ(error_of(aligned_npy("<f8", "2, 2", little<double>({1, 2, 3, 4}))), unusable);
  EXPECT_EQ(error_of(aligned_npy("|u1", "2, 2", "1234")), unusable);
  EXPECT_EQ(error_of(aligned_npy("<f4", "2, 2", little(numbers), true)), unusable);
  EXPECT_EQ(error_of(npy_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n",
                              little(numbers))),
            unusable)
      << "the data begin at byte 70";
  const std::string good = aligned_npy("<f4", "2, 2", little(numbers));
  EXPECT_EQ(error_of(good), "no error");
  EXPECT_EQ(error_of(good + "x"), ": holds more than its header promises, from byte 144 on");
  EXPECT_EQ(error_of(good.substr(0, 143)),
            ": its header promises [2, 2] values of 4 bytes, but the file is too short for them");
  EXPECT_EQ(error_of(gzip(good)), ": is compressed; valid with mapped=yes: a plain file");
  EXPECT_EQ(error_of(""), ": its header ends too early, at byte 0");
  EXPECT_EQ(error_of(good, ",label=last"),
            "npy: label=last needs the whole file in memory; valid with mapped=yes: "
            "npy:FILE,LABELS");
}

TEST(Npz, FindsTrainingAndTestArraysByTheirUsualNames) {
  const TemporaryFolder folder;
  const auto x = [](float value) { return npy("<f4", "2, 1", little<float>({value, value})); };
  const auto file = folder.path("a.npz");
  const auto write = [&](const auto& entries, int method = ZIP_CM_STORE) {
    folder.write("a.npz", zip_of(entries, method));
  };
  using Entries = std::vector<std::pair<std::string, std::string>>;
  for (const int method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    write(Entries{{"x_test.npy", x(3)},
                  {"y_test.npy", two_labels},
                  {"x_train.npy", x(1)},
                  {"y_train.npy", two_labels},
                  {"extra.npy", x(9)},
                  {"notes.txt", "hello"}},
          method);
    const Source source = Source::parse("npz:" + file).value();
    EXPECT_EQ(load(source, 1).value().dense_row(0)[0], 1);
    EXPECT_EQ(load_test(source, 1, std::nullopt).value().dense_row(0)[0], 3);
    const TablePair pair = load_pair(source, source, 1).value();
    EXPECT_EQ(pair.train.dense_row(0)[0], 1);
    EXPECT_EQ(pair.test.dense_row(0)[0], 3);
    EXPECT_EQ(pair.test.label(1), 1);
  }
  EXPECT_EQ(load_text("npz:" + file + ",features=x_test").value().dense_row(0)[0], 3);
  EXPECT_TRUE(load_text("npz:" + file + ",features=x_test").value().has_labels);
  EXPECT_EQ(load_text("npz:" + file + ",labels=y_test").value().dense_row(0)[0], 3);
  EXPECT_FALSE(load_text("npz:" + file + ",features=extra").value().has_labels);
  EXPECT_FALSE(load_text("npz:" + file + ",labels=none").value().has_labels);
  EXPECT_EQ(load_text("npz:" + file + ",features=extra,labels=y_test").value().classes(), 2U);
  for (const auto& [features, labels] : {std::pair{"x", "y"},
                                         {"X", "y"},
                                         {"X", "Y"},
                                         {"data", "target"},
                                         {"images", "labels"},
                                         {"arr_0", "arr_1"}}) {
    write(Entries{{std::string{labels} + ".npy", two_labels},
                  {std::string{features} + ".npy", x(4)}});
    EXPECT_EQ(load_text("npz:" + file).value().classes(), 2U) << features;
  }
}

TEST(Npz, RefusesBadFilesWithLocationAndValidForm) {
  const TemporaryFolder folder;
  const auto path = folder.path("a.npz");
  const auto error_of = [&](const std::string& options = "") {
    return message_of(load_text("npz:" + path + options));
  };
  const std::string x = npy("<f4", "2, 1", little<float>({1, 2}));
  EXPECT_EQ(error_of(), path + ": no such file");
  folder.write("a.npz", "not a zip");
  EXPECT_EQ(error_of(), path + ": is not an archive of numpy.savez: Not a zip archive");
  folder.write("a.npz", zip_of({{"p.npy", x}, {"q.npy", two_labels}, {"r.txt", ""}}));
  EXPECT_EQ(error_of(), path +
                            ": no array has a usual name (X or data; x_train for training; x_test "
                            "for testing); it holds 'p', 'q'; valid: npz:" +
                            path + ",features=NAME");
  EXPECT_EQ(error_of(",features=other"), path + ": holds no array 'other' (features); valid: p, q");
  EXPECT_EQ(error_of(",features=p,labels=qq"),
            path + ": holds no array 'qq' (labels); did you mean 'q'? valid: p, q");
  folder.write("a.npz", zip_of({{"readme.txt", "x"}}));
  EXPECT_EQ(error_of(), path +
                            ": no array has a usual name (X or data; x_train for training; x_test "
                            "for testing); it holds no array; valid: npz:" +
                            path + ",features=NAME");
  folder.write("a.npz", zip_of({{"x.npy", x.substr(0, 70)}, {"y.npy", two_labels}}));
  EXPECT_EQ(error_of(), path +
                            ": array 'x': its header promises [2, 1] values of 4 bytes, but "
                            "the file is too short for them");
  std::string damaged = zip_of({{"x.npy", x}, {"y.npy", two_labels}});
  damaged[damaged.find(x) + x.size() - 1] ^= 1;
  folder.write("a.npz", damaged);
  EXPECT_EQ(error_of(), path + ": array 'x': its data is damaged: CRC error");
}

}  // namespace
}  // namespace starling::models
