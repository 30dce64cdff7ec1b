/// Reads data files, traces of times and net files, plain and compressed. The lower bits of the
/// first byte choose the format. If the highest bit is set, the fuzzer compresses the files, so
/// that the damage is in the uncompressed data. If a format has a second file (labels), the second
/// file comes first, preceded by its size.
#include <algorithm>
#include <cmath>
#include <string>

#include "starling/base/distributions/distribution.hpp"
#include "starling/base/input.hpp"
#include "starling/models/data/formats/image.hpp"
#include "starling/models/data/load.hpp"
#include "starling/tools/registry/net_file.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/models/data/gzip.hpp"
#include "tests/models/data/numpy.hpp"
#include "tests/models/data/pictures.hpp"

namespace starling::fuzz {
namespace {

/// The limit for the values of a data set, in bytes.
constexpr std::uint64_t values_bytes_max = std::uint64_t{16} << 20U;
/// Includes copies of values while their vector grows, copies of a line and its cells, and the
/// reader itself.
constexpr std::size_t heap_max = std::size_t{128} << 20U;

/// Requires that the values of a table are finite and its labels and columns in range.
void check_table(const models::Table& table) {
  require(table.size() > 0 && table.features() > 0, "data have samples");
  const auto is_number = [](float x) { return std::isfinite(x); };
  for (std::size_t row = 0; row < table.size(); ++row) {
    const float label = table.label(row);
    require(is_number(label), "labels are numbers");
    require(table.classes() == 0 || (label >= 0 && label < static_cast<float>(table.classes())),
            "labels are classes");
    if (!table.is_sparse()) {
      require(std::ranges::all_of(table.dense_row(row), is_number), "features are numbers");
      continue;
    }
    const auto [columns, values] = table.sparse_row(row);
    require(std::ranges::all_of(values, is_number), "features are numbers");
    for (std::size_t i = 0; i < columns.size(); ++i)
      require(columns[i] < table.features() && (i == 0 || columns[i - 1] < columns[i]),
              "columns ascend");
  }
}

bool read_table(const std::string& source) {
  ReadLimits limits;
  limits.memory_max = values_bytes_max;
  const ReadScope scope{std::move(limits)};
  const auto table = with_bounded_heap(
      heap_max, [&] { return models::load(models::Source::parse(source).value(), 1); });
  if (table) check_table(*table);
  return table.ok();
}

/// Decodes an image. Requires that any valid image can be resized and converted to other channels.
bool read_image(Input content) {
  ReadLimits limits;
  limits.memory_max = values_bytes_max;
  const ReadScope scope{std::move(limits)};
  auto image = with_bounded_heap(heap_max, [&] { return models::decode_image(content, "image"); });
  if (!image) return false;
  const auto has_all_pixels = [](const models::Image& checked) {
    return checked.height > 0 && checked.width > 0 &&
           checked.pixels.size() == std::size_t{checked.height} * checked.width * checked.channels;
  };
  require(has_all_pixels(*image), "an image has as many pixels as its size says");
  const std::uint32_t others = 4 - image->channels;
  const auto other = models::resized(models::with_channels(*std::move(image), others), 3, 5);
  require(has_all_pixels(other) && other.channels == others && other.width == 5,
          "images are resized");
  return true;
}

enum class Format : std::uint8_t {
  csv,
  named_csv,
  libsvm,
  wide_libsvm,
  idx,
  cifar10,
  trace,
  net,
  npy,
  npy_table,
  npz,
  image,
};
constexpr std::size_t formats = 12;
/// The bit of the first byte that makes the fuzzer compress the files.
constexpr std::size_t compressed_bit = 0x80;

/// Returns true if the files are valid. Only formats with two files read `labels_path`.
bool read_as(Format format, const std::string& path, const std::string& labels_path) {
  switch (format) {
    case Format::csv:
      return read_table("csv:" + path);
    case Format::named_csv:
      return read_table("csv:" + path + ",label=y,task=class");
    case Format::libsvm:
      return read_table("libsvm:" + path);
    case Format::wide_libsvm:
      return read_table("libsvm:" + path + ",features=2147483648,task=value");
    case Format::idx:
      return read_table("idx:" + path + "," + labels_path);
    case Format::cifar10:
      return read_table("cifar10:" + path);
    case Format::trace:
      return with_bounded_heap(heap_max, [&] { return parse_distribution("trace:" + path); }).ok();
    case Format::net:
      return with_bounded_heap(heap_max, [&] { return program::read_net_file(path); }).ok();
    case Format::npy:
      return read_table("npy:" + path + "," + labels_path);
    case Format::npy_table:
      return read_table("npy:" + path + ",label=last,task=class");
    case Format::npz:
      return read_table("npz:" + path);
    case Format::image:
      break;
  }
  return false;
}

Bytes seed(Format format, std::string_view content, bool is_compressed = false) {
  Bytes all{static_cast<std::byte>(static_cast<std::size_t>(format) |
                                   (is_compressed ? compressed_bit : 0))};
  const Bytes rest = bytes_of(content);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::string_view literal(const char* bytes, std::size_t size) { return {bytes, size}; }

}  // namespace

bool read(Input input) {
  static const MemoryFile data_file;
  static const MemoryFile labels_file;
  InputReader reader{input};
  const std::size_t choice = reader.byte();
  const auto format = static_cast<Format>((choice & ~compressed_bit) % formats);
  const auto set_content = [&](const MemoryFile& file, Input content) {
    if ((choice & compressed_bit) == 0) return file.set_content(content);
    const std::string zipped = models::gzip(text_of(content));
    file.set_content(std::as_bytes(std::span{zipped}));
  };
  if (format == Format::image) return read_image(reader.rest());
  if (format == Format::idx || format == Format::npy) set_content(labels_file, reader.sized());
  set_content(data_file, reader.rest());
  return read_as(format, data_file.path(), labels_file.path());
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const std::string images{
      literal("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x01\x01\x02\x03\xff", 20)};
  const std::string floats{literal("\0\0\x0d\x02\0\0\0\x02\0\0\0\x01\x3f\x80\0\0\xbf\x80\0\0", 20)};
  Bytes labels;
  put_sized(labels, bytes_of(literal("\0\0\x08\x01\0\0\0\x02\x01\0", 10)));
  std::string records;
  for (const char label : {'\3', '\7'}) records += label + std::string(3072, 'p');
  for (const bool zipped : {false, true}) {
    all.push_back(seed(Format::csv, "a,b,y\n1,2,0\n \"3\" ,-4e-2,1\r\n\n5,6,0\n", zipped));
    all.push_back(seed(Format::csv, "0.5,1\n1.5,2.25\n", zipped));
    all.push_back(seed(Format::named_csv, "y,\"b\"\"c\"\n1,2\n2,2.5\n", zipped));
    all.push_back(seed(Format::libsvm, "+1 1:1 3:0.5 # note\n-1 2:1e-3\n", zipped));
    all.push_back(seed(Format::wide_libsvm, "1.5 7:1 2147483648:1\n0\n", zipped));
    all.push_back(seed(Format::idx, std::string{text_of(labels)} + images, zipped));
    all.push_back(seed(Format::idx, std::string{text_of(labels)} + floats, zipped));
    all.push_back(seed(Format::cifar10, records, zipped));
    all.push_back(seed(Format::libsvm, "2 qid:1 0:1 3:0.5\n1 qid:2 2:1e-3\n", zipped));
    const std::string x =
        models::npy("<f8", "2, 2", models::little<double>({0.5, 1, 2, 0}), zipped);
    Bytes y;
    put_sized(y, bytes_of(models::npy(">i4", "2, 1", models::big<std::int32_t>({1, 2}))));
    all.push_back(seed(Format::npy, std::string{text_of(y)} + x, zipped));
    all.push_back(seed(Format::npy_table, x, zipped));
    all.push_back(seed(Format::npy_table,
                       models::npy("<f2", "2, 2", std::string("\0\x3e\0\0\0\x40\0\x3c", 8)),
                       zipped));
    all.push_back(seed(Format::npz,
                       models::zip_of({{"x.npy", x}, {"y.npy", std::string{text_of(y)}.substr(2)}},
                                      zipped ? ZIP_CM_DEFLATE : ZIP_CM_STORE)));
    const models::Pixels pixels{0, 50, 100, 150, 200, 255, 1, 2, 3, 4, 5, 6};
    all.push_back(seed(Format::image, models::png_of(2, 6, pixels)));
    all.push_back(seed(Format::image, models::png_of(2, 2, pixels, PNG_FORMAT_RGB)));
    all.push_back(seed(Format::image, models::png_of(1, 3, pixels, PNG_FORMAT_RGBA)));
    all.push_back(seed(Format::image, models::jpeg_of(3, 4, pixels)));
    all.push_back(seed(Format::image, models::jpeg_of(2, 2, pixels, true)));
  }
  all.push_back(seed(Format::csv, models::gzip("1,0\n2,1\n") + models::gzip("3,0\n")));
  all.push_back(seed(Format::cifar10, models::gzip(records)));
  all.push_back(seed(Format::trace, "# measured\n20ms\n0.5 # half\n2e-1\r\n"));
  all.push_back(
      seed(Format::net,
           "input = \"8x8x3\"\nloss = \"cross-entropy\"\nlayers = [\"conv2d 4 kernel=3\", "
           "\"relu\", \"flatten; dense 10\"]\n"));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
