#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "starling/base/input.hpp"
#include "starling/models/data/formats/image.hpp"
#include "tests/models/data/files.hpp"
#include "tests/models/data/pictures.hpp"

namespace starling::models {
namespace {

Image decode(const std::string& bytes) {
  return decode_image(std::as_bytes(std::span{bytes}), "p").value();
}

/// Returns the error of decoding an image with these bytes.
std::string decode_error(const std::string& bytes) {
  const auto image = decode_image(std::as_bytes(std::span{bytes}), "dir/p.x");
  return image ? "no error" : image.error().message;
}

/// A temporary folder with images in subfolders.
class ImageFolder {
 public:
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path{folder_.path(name)}.parent_path());
    folder_.write(name, content);
  }
  void make_folder(const std::string& name) const {
    std::filesystem::create_directories(folder_.path(name));
  }
  [[nodiscard]] std::string path(const std::string& name = "pics") const {
    return folder_.path(name);
  }
  [[nodiscard]] Result<Table> load(const std::string& options = "") const {
    return load_text("images:" + path() + options);
  }

 private:
  TemporaryFolder folder_;
};

/// Returns a PNG file of two pixels with this grey value.
std::string grey(std::uint8_t value) { return png_of(1, 2, {value, value}); }

TEST(Image, KeepsThePixelsOfPng) {
  const Pixels grey{0, 1, 2, 127, 128, 255};
  const Image one = decode(png_of(2, 3, grey));
  EXPECT_EQ(one.height, 2U);
  EXPECT_EQ(one.width, 3U);
  EXPECT_EQ(one.channels, 1U);
  EXPECT_EQ(one.pixels, grey);
  const Pixels colours{0, 1, 2, 127, 128, 255, 9, 8, 7, 200, 100, 50};
  const Image three = decode(png_of(2, 2, colours, PNG_FORMAT_RGB));
  EXPECT_EQ(three.channels, 3U);
  EXPECT_EQ(three.pixels, colours);
}

TEST(Image, IgnoresTheAlphaChannel) {
  const Image one = decode(png_of(1, 3, {7, 0, 8, 128, 9, 255}, PNG_FORMAT_GA));
  EXPECT_EQ(one.channels, 1U);
  EXPECT_EQ(one.pixels, (Pixels{7, 8, 9}));
  const Image three = decode(png_of(1, 2, {1, 2, 3, 0, 4, 5, 6, 99}, PNG_FORMAT_RGBA));
  EXPECT_EQ(three.channels, 3U);
  EXPECT_EQ(three.pixels, (Pixels{1, 2, 3, 4, 5, 6}));
}

TEST(Image, ReadsJpeg) {
  const Image one = decode(jpeg_of(8, 8, Pixels(64, 100)));
  EXPECT_EQ(one.channels, 1U);
  EXPECT_EQ(one.pixels, Pixels(64, 100));
  Pixels red;
  for (int i = 0; i < 64; ++i) red.insert(red.end(), {255, 0, 0});
  const Image three = decode(jpeg_of(8, 8, red, true));
  ASSERT_EQ(three.channels, 3U);
  ASSERT_EQ(three.pixels.size(), red.size());
  for (std::size_t i = 0; i < red.size(); ++i) EXPECT_NEAR(three.pixels[i], red[i], 2);
}

TEST(Image, ChangesChannels) {
  const Image three = with_channels(decode(grey(77)), 3);
  EXPECT_EQ(three.pixels, Pixels(6, 77));
  EXPECT_EQ(with_channels(Image{1, 2, 1, {7, 200}}, 3).pixels, (Pixels{7, 7, 7, 200, 200, 200}));
  const Image back = with_channels(three, 1);
  EXPECT_EQ(back.pixels, Pixels(2, 77));
  // 0.299 R + 0.587 G + 0.114 B.
  const Image colours{1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}};
  EXPECT_EQ(with_channels(colours, 1).pixels, (Pixels{76, 150, 29}));
}

TEST(Image, ResizesLinearly) {
  const Image line{1, 2, 1, {0, 100}};
  EXPECT_EQ(resized(line, 1, 4).pixels, (Pixels{0, 25, 75, 100}));
  EXPECT_EQ(resized(Image{2, 1, 1, {0, 100}}, 4, 1).pixels, (Pixels{0, 25, 75, 100}));
  EXPECT_EQ(resized(Image{3, 5, 3, Pixels(45, 9)}, 7, 2).pixels, Pixels(42, 9));
  // At half the width, a pixel is the mean of four pixels with the weights 1, 3, 3, 1; at the edge,
  // of three with the weights 3, 3, 1.
  const Image four{1, 4, 1, {0, 70, 140, 210}};
  EXPECT_EQ(resized(four, 1, 2).pixels, (Pixels{50, 160}));
  EXPECT_EQ(resized(four, 1, 4).pixels, four.pixels);
}

TEST(Image, ResizesEachChannelInBothDirections) {
  const Image corners{2, 2, 3, {0, 10, 20, 40, 50, 60, 80, 90, 100, 120, 130, 140}};
  const Image large = resized(corners, 4, 4);
  // The shares of the lower and of the right pixel.
  constexpr std::array<double, 4> share{0, 0.25, 0.75, 1};
  ASSERT_EQ(large.pixels.size(), 48U);
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t column = 0; column < 4; ++column)
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_EQ(large.pixels[(row * 4 + column) * 3 + c],
                  80 * share.at(row) + 40 * share.at(column) + 10 * static_cast<double>(c))
            << row << " " << column << " " << c;
}

TEST(Image, RefusesDamagedImagesAndOtherFormats) {
  const std::string png = png_of(2, 3, Pixels(6, 50));
  const std::string jpeg = jpeg_of(16, 16, Pixels(256, 50));
  EXPECT_EQ(decode_error(""), "dir/p.x: is not a PNG or JPEG image; it is empty");
  EXPECT_EQ(decode_error("hello, world"),
            "dir/p.x: is not a PNG or JPEG image; it starts with 'hello, w'");
  EXPECT_NE(decode_error("GIF89a").find("is an image of the format GIF; valid: PNG and JPEG; this "
                                        "converts it to PNG: python3 -c \"from PIL import Image; "
                                        "Image.open('dir/p.x').convert('RGB').save('dir/p.png')\""),
            std::string::npos);
  for (std::size_t size = 8; size < png.size() - 12; ++size)
    EXPECT_NE(decode_error(png.substr(0, size)).find("dir/p.x: its PNG data is damaged: "),
              std::string::npos)
        << size;
  for (std::size_t size = 3; size < jpeg.size() - 2; ++size)
    EXPECT_NE(decode_error(jpeg.substr(0, size)).find("dir/p.x: its JPEG data is damaged: "),
              std::string::npos)
        << size;
  std::string flipped = png;
  flipped[png.find("IDAT") + 8] ^= 1;
  EXPECT_NE(decode_error(flipped).find("its PNG data is damaged: "), std::string::npos);
}

TEST(Images, BecomeRowsWithTheirFolderAsClass) {
  const ImageFolder folder;
  for (int i = 0; i < 4; ++i)
    folder.write("pics/dog/" + std::to_string(i) + ".PNG", grey(static_cast<std::uint8_t>(51 * i)));
  folder.write("pics/cat/a.png", grey(255));
  folder.write("pics/cat/.hidden", "x");
  folder.write("pics/.git/x/y", "x");
  folder.write("pics/README.md", "x");
  const Table table = folder.load().value();
  ASSERT_EQ(table.size(), 5U);
  EXPECT_EQ(table.features(), 2U);
  EXPECT_EQ(table.classes(), 2U);
  std::vector<std::string> names = table.ids;
  for (std::size_t row = 0; row < 5; ++row) {
    const bool is_cat = names[row] == "cat/a.png";
    EXPECT_EQ(table.label(row), is_cat ? 0 : 1);
    const float wanted = is_cat ? 1 : static_cast<float>(names[row][4] - '0') / 5;
    EXPECT_FLOAT_EQ(table.dense_row(row)[1], wanted) << names[row];
  }
  // The only cat is in the middle of the four dogs.
  EXPECT_EQ(names[2], "cat/a.png");
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"cat/a.png", "dog/0.PNG", "dog/1.PNG", "dog/2.PNG",
                                             "dog/3.PNG"}));
}

TEST(Images, AreResizedToHeightByWidth) {
  const ImageFolder folder;
  for (const char* name : {"pics/a/1.png", "pics/b/2.png"})
    folder.write(name, png_of(1, 2, {0, 204}));
  const Table table = folder.load(",size=1x4").value();
  EXPECT_EQ(std::vector(table.dense_row(1).begin(), table.dense_row(1).end()),
            (std::vector<float>{0, 0.2F, 0.6F, 0.8F}));
}

TEST(Images, HaveTheChannelsOfTheMajority) {
  const ImageFolder folder;
  folder.write("pics/a/1.png", grey(51));
  folder.write("pics/a/2.png", grey(51));
  folder.write("pics/b/3.png", png_of(1, 2, {255, 255, 255, 0, 0, 0}, PNG_FORMAT_RGB));
  EXPECT_EQ(folder.load().value().features(), 2U);
  EXPECT_EQ(folder.load(",channels=3").value().features(), 6U);
  folder.write("pics/b/4.png", png_of(1, 2, {255, 255, 255, 0, 0, 0}, PNG_FORMAT_RGB));
  EXPECT_EQ(folder.load().value().features(), 6U);
  EXPECT_EQ(folder.load(",channels=1").value().features(), 2U);
}

TEST(Images, TestImagesAreConvertedToTheSizeAndChannelsOfTrainingImages) {
  const ImageFolder folder;
  const std::string colour = png_of(1, 2, {255, 255, 255, 0, 0, 0}, PNG_FORMAT_RGB);
  folder.write("pics/a/1.png", colour);
  folder.write("pics/b/2.png", colour);
  folder.write("test/a/1.png", grey(51));
  folder.write("test/b/2.png", grey(51));
  const auto load_both = [&](const std::string& options) {
    return load_pair(Source::parse("images:" + folder.path() + options).value(),
                     Source::parse("images:" + folder.path("test")).value(), 1)
        .value();
  };
  EXPECT_EQ(load_both("").test.features(), 6U);
  EXPECT_EQ(load_both(",channels=1").test.features(), 2U);
  EXPECT_EQ(load_both(",size=4x5").test.features(), 60U);
}

TEST(Images, ImagesOutsideOfSubfoldersHaveNoLabels) {
  const ImageFolder folder;
  folder.write("pics/b.png", grey(1));
  folder.write("pics/a.png", grey(2));
  const Table table = folder.load().value();
  EXPECT_FALSE(table.has_labels);
  EXPECT_EQ(table.ids, (std::vector<std::string>{"a.png", "b.png"}));
}

TEST(Images, TestClassesAreNumberedLikeTrainingClasses) {
  const ImageFolder folder;
  for (const char* name : {"ant", "bee", "cow"})
    folder.write("pics/" + std::string{name} + "/1.png", grey(1));
  folder.write("test/cow/1.png", grey(1));
  const Source train = Source::parse("images:" + folder.path()).value();
  const Source test = Source::parse("images:" + folder.path("test")).value();
  EXPECT_EQ(load_pair(train, test, 1).value().test.label(0), 2);
  EXPECT_EQ(load_test(test, 1, Labelling{.classes = 3}).error().message,
            folder.path("test") +
                ": has a class 'cow', but the training data have whole numbers 0 to 2; valid: "
                "classes whose names are such numbers");
  folder.write("digits/10/1.png", grey(1));
  folder.write("digits/2/1.png", grey(2));
  const Source digits = Source::parse("images:" + folder.path("digits")).value();
  const Table numbered = load_test(digits, 1, Labelling{.classes = 12}).value();
  EXPECT_EQ(numbered.label(numbered.ids[0] == "10/1.png" ? 0 : 1), 10);
  folder.write("test/bees/1.png", grey(1));
  EXPECT_EQ(load_pair(train, test, 1).error().message,
            "test: " + folder.path("test") +
                ": has a class 'bees', which the training data lack; did you mean 'bee'? valid: "
                "ant, bee, cow");
}

TEST(Images, RefuseATestOfAnotherHeightAndWidth) {
  const ImageFolder folder;
  for (const char* name : {"a/1.png", "b/1.png"}) {
    folder.write("pics/" + std::string{name}, png_of(1, 4, {1, 2, 3, 4}));
    folder.write("test/" + std::string{name}, png_of(4, 1, {1, 2, 3, 4}));
  }
  const Source train = Source::parse("images:" + folder.path()).value();
  const Source test = Source::parse("images:" + folder.path("test")).value();
  EXPECT_EQ(
      load_pair(train, test, 1).error().message,
      "test: " + folder.path("test") +
          ": has images of 4x1x1, but those of the training data are of 1x4x1 (height x width "
          "x channels)");
}

TEST(Images, AreRefusedWithPathAndValidForm) {
  const ImageFolder folder;
  const auto load_error = [&](const std::string& options = "") {
    return message_of(folder.load(options));
  };
  const std::string pics = folder.path();
  EXPECT_EQ(load_error(), pics + ": no such folder");
  folder.write("pics", "x");
  EXPECT_EQ(load_error(),
            pics + ": is a file; valid: a folder that holds one folder of images for each class");
  std::filesystem::remove(pics);
  folder.make_folder("pics/b");
  EXPECT_EQ(load_error(),
            pics + ": holds no images; valid: PNG and JPEG images in one folder for each class");
  folder.write("pics/b/1.png", grey(1));
  EXPECT_EQ(load_error(), pics + ": has one class, 'b', but a classification needs at least two");
  folder.write("pics/a/2.png", png_of(2, 1, {1, 2}));
  EXPECT_EQ(load_error(), pics + "/b/1.png: is of 1x2 pixels (height x width), but " + pics +
                              "/a/2.png is of 2x1; valid: images:" + pics +
                              ",size=2x1 resizes all");
  EXPECT_EQ(folder.load(",size=3x4").value().features(), 12U);
  folder.write("pics/a/notes.txt", "hello");
  EXPECT_EQ(load_error(),
            pics + "/a/notes.txt: is not a PNG or JPEG image; it starts with 'hello'");
  folder.write("pics/b/deep/1.png", grey(1));
  EXPECT_EQ(load_error(),
            pics +
                "/b/deep: is a folder inside the folder of a class; valid: images only; "
                "if the folders in " +
                pics + "/b are the classes, images:" + pics + "/b");
  folder.write("pics/0.jpg", grey(1));
  EXPECT_EQ(load_error(),
            pics +
                "/0.jpg: is an image beside the folders of the classes; valid: an image "
                "in one of them, or no folders if images have no labels");
}

/// A class whose disk is not mounted must not be missing without a word.
TEST(Images, RefuseALinkThatLeadsNowhere) {
  const ImageFolder folder;
  folder.write("pics/cat/1.png", grey(1));
  folder.write("pics/dog/2.png", grey(2));
  std::filesystem::create_symlink("nowhere", folder.path("pics/owl"));
  EXPECT_EQ(message_of(load_text("images:" + folder.path("pics"))),
            folder.path("pics/owl") +
                ": is a link that cannot be followed: No such file or directory; valid: images, "
                "and folders of images");
}

TEST(Images, NeedPrintableNamesOfClassesOnly) {
  const ImageFolder folder;
  folder.write("bad\xe9/cat/1.png", grey(1));
  folder.write("bad\xe9/dog/2.png", grey(2));
  const auto load = [&] { return load_text("images:" + folder.path("bad\xe9")); };
  EXPECT_TRUE(load().ok()) << message_of(load());
  folder.write("bad\xe9/a\tb/3.png", grey(3));
  EXPECT_NE(
      message_of(load()).find("/a\\x09b: the folder's name holds control characters, or bytes "
                              "that are not UTF-8; valid: a name that can be printed"),
      std::string::npos)
      << message_of(load());
}

TEST(Images, DoNotWaitForPipes) {
  const ImageFolder folder;
  folder.make_folder("pics/a");
  ASSERT_EQ(::mkfifo(folder.path("pics/a/1.png").c_str(), 0600), 0);
  ReadLimits limits;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds{1};
  const ReadScope scope{limits};
  EXPECT_EQ(message_of(folder.load()),
            folder.path("pics/a/1.png") + ": is a pipe; valid: a regular file");
}

TEST(Images, RespectTheMemoryLimitAndStopRequests) {
  const ImageFolder folder;
  for (const char* name : {"a/1.png", "b/2.png"})
    folder.write(std::string{"pics/"} + name, png_of(512, 512, Pixels(512 * 512, 7)));
  ReadLimits limits;
  limits.memory_max = 1 << 20;
  std::stop_source stop;
  {
    const ReadScope scope{limits};
    EXPECT_NE(message_of(folder.load()).find(folder.path() + ": would take 0.002 GB of memory"),
              std::string::npos)
        << message_of(folder.load());
  }
  {
    // Most images are grey, so the only one with colours counts as a grey one too.
    folder.write("pics/a/0.png", png_of(512, 512, Pixels(3 * 512 * 512, 7), PNG_FORMAT_RGB));
    limits.memory_max = 8 << 20;
    const ReadScope scope{limits};
    EXPECT_EQ(folder.load().value().features(), 512U * 512U);
  }
  limits.memory_max = 0;
  limits.stop = stop.get_token();
  const ReadScope scope{limits};
  EXPECT_TRUE(folder.load().ok());
  stop.request_stop();
  EXPECT_NE(message_of(folder.load()).find("reading was cancelled"), std::string::npos);
}

}  // namespace
}  // namespace starling::models
