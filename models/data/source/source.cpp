#include "starling/models/data/source/source.hpp"

#include <algorithm>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling::models {
namespace {

constexpr std::uint64_t rows_max = UINT32_MAX;
/// A Table stores user and item ids as floats, which hold all whole numbers up to this one.
constexpr std::uint64_t ids_max = std::uint64_t{1} << 24U;
/// The most numbers that a generator may make: 16 GiB of floats.
constexpr std::uint64_t generated_max = std::uint64_t{1} << 32U;
constexpr double noise_max = 1e6;
constexpr std::uint64_t image_side_max = 16384;

/// Reads the next positional argument as a file's name. If it is missing, the error shows `usage`.
std::string read_file_name(SpecReader& read, std::string_view usage) {
  std::string file = read.positional();
  if (file.empty())
    read.refuse("names no file; valid: " + std::string{usage} + ", no ',' or '=' in a file's name");
  return file;
}

/// Reads the file's name of a source that has only one file. Refuses a name that contains a comma:
/// the parser took the part after the comma for an option.
std::string read_single_file_name(SpecReader& read, const Spec& spec, std::string_view usage) {
  std::string file = read_file_name(read, usage);
  for (const auto& [key, word] : spec.options) {
    if (!key.empty()) break;
    if (word != file && word.find_first_of("./") != std::string::npos)
      read.refuse("'" + file + "," + word +
                  "' is not a name of a file that can be read: it holds a ',', which begins an "
                  "option; valid: a name without one");
  }
  return file;
}

std::optional<LabelKind> read_task(SpecReader& read) {
  static const std::vector<std::string> words{"class", "value"};
  const std::string word = read.text("task", "");
  if (word == "class") return LabelKind::classes;
  if (word == "value") return LabelKind::values;
  if (!word.empty()) read.refuse("task=" + word + " is unknown; " + suggest(word, words));
  return std::nullopt;
}

IdxSource read_idx(SpecReader& read) {
  IdxSource source;
  source.images = read.positional();
  source.labels = read.positional();
  if (source.labels.empty())
    read.refuse("needs two files; valid: idx:IMAGES,LABELS, no ',' or '=' in a file's name");
  return source;
}

Cifar10Source read_cifar10(SpecReader& read) {
  Cifar10Source source{.files = {read_file_name(read, "cifar10:FILE[,FILE...]")}};
  for (std::string next = read.positional(); !next.empty(); next = read.positional())
    source.files.push_back(std::move(next));
  return source;
}

/// Returns the value of the word that the user gave for `option`; nullopt if the option is absent.
template <class T>
std::optional<T> read_choice(SpecReader& read, std::string_view option,
                             const std::vector<std::pair<std::string, T>>& choices) {
  const std::string word = read.text(option, "");
  if (word.empty()) return std::nullopt;
  std::vector<std::string> words;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    words.push_back(name);
  }
  read.refuse(std::string{option} + "=" + word + " is unknown; " + suggest(word, words));
  return std::nullopt;
}

const std::vector<std::pair<std::string, char>> separators{
    {"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"pipe", '|'}, {";", ';'}, {"|", '|'}};
const std::vector<std::pair<std::string, Missing>> missing_words{
    {"mean", Missing::mean}, {"drop", Missing::drop}, {"refuse", Missing::refuse}};
const std::vector<std::pair<std::string, bool>> yes_or_no{{"yes", true}, {"no", false}};

CsvSource read_csv(SpecReader& read, const Spec& spec) {
  CsvSource source{.file = read_single_file_name(read, spec, "csv:FILE[,label=NAME][,OPTION...]")};
  if (auto label = read.text("label", ""); !label.empty()) source.label = std::move(label);
  source.id = read.text("id", "");
  source.task = read_task(read);
  source.missing = read_choice(read, "missing", missing_words);
  source.ignored = read.texts("ignore");
  source.categories = read.texts("category");
  source.separator = read_choice(read, "separator", separators);
  source.has_decimal_commas =
      read_choice<bool>(read, "decimal", {{"comma", true}, {"point", false}}).value_or(false);
  source.has_comments = read_choice<bool>(read, "comment", {{"#", true}}).value_or(false);
  source.header = read_choice(read, "header", yes_or_no);
  if (source.has_decimal_commas && source.separator == ',')
    read.refuse("decimal=comma and separator=comma cannot be told apart; valid: one of them");
  return source;
}

LibsvmSource read_libsvm(SpecReader& read, const Spec& spec) {
  LibsvmSource source{.file = read_single_file_name(
                          read, spec, "libsvm:FILE[,features=N][,base=0|1][,task=class|value]")};
  source.features = read.count("features", 0, 1, features_max);
  if (read.has("base")) source.base = read.count("base", 0, 0, 1);
  source.task = read_task(read);
  return source;
}

NpySource read_npy(SpecReader& read) {
  constexpr std::string_view usage =
      "npy:FILE[,LABELS][,label=last|first][,task=class|value][,mapped=yes]";
  NpySource source{.file = read_file_name(read, usage), .label_file = read.positional()};
  source.label_column = read.text("label", "");
  if (!source.label_column.empty() && source.label_column != "last" &&
      source.label_column != "first")
    read.refuse("label=" + source.label_column +
                " is unknown; valid: last, first, or a file of labels: " + "npy:FILE,LABELS");
  if (!source.label_column.empty() && !source.label_file.empty())
    read.refuse("label=" + source.label_column + " and the file '" + source.label_file +
                "' both say where the labels are; valid: one of them");
  source.task = read_task(read);
  source.is_mapped = read_choice(read, "mapped", yes_or_no).value_or(false);
  if (source.is_mapped && !source.label_column.empty())
    read.refuse("label=" + source.label_column +
                " needs the whole file in memory; valid with mapped=yes: npy:FILE,LABELS");
  return source;
}

NpzSource read_npz(SpecReader& read, const Spec& spec) {
  NpzSource source{
      .file = read_single_file_name(
          read, spec, "npz:FILE[,features=NAME][,labels=NAME|none][,task=class|value]")};
  source.features = read.text("features", "");
  source.labels = read.text("labels", "");
  source.task = read_task(read);
  return source;
}

void read_image_size(SpecReader& read, ImagesSource& source) {
  const std::string text = read.text("size", "");
  if (text.empty()) return;
  const auto cross = text.find('x');
  const auto height = parse_count(text.substr(0, cross));
  const auto width =
      cross == std::string::npos ? height : parse_count(std::string_view{text}.substr(cross + 1));
  if (cross == std::string::npos || !height || !width || *height == 0 || *width == 0 ||
      *height > image_side_max || *width > image_side_max) {
    read.refuse("size=" + text + " is not a size; valid: HEIGHTxWIDTH in pixels, each 1 to " +
                std::to_string(image_side_max) + ", as in size=28x28");
    return;
  }
  source.height = static_cast<std::uint32_t>(*height);
  source.width = static_cast<std::uint32_t>(*width);
}

ImagesSource read_images(SpecReader& read, const Spec& spec) {
  ImagesSource source{
      .folder = read_single_file_name(read, spec, "images:FOLDER[,size=HxW][,channels=1|3]")};
  read_image_size(read, source);
  if (read.has("channels"))
    source.channels = static_cast<std::uint32_t>(read.count("channels", 1, 1, 3));
  if (source.channels == 2)
    read.refuse("channels=2 is unknown; valid: 1 (grey) or 3 (red, green, blue)");
  return source;
}

DigitsSource read_digits(SpecReader& read) {
  DigitsSource source;
  source.n = read.count("n", source.n, 1, generated_max / 784);
  return source;
}

LinearSource read_linear(SpecReader& read) {
  LinearSource source;
  source.d = read.count("d", source.d, 1, features_max);
  source.n = read.count("n", source.n, 1, rows_max);
  source.noise = read.number("noise", source.noise, 0, noise_max);
  if (source.d > generated_max / source.n)
    read.refuse("d=" + std::to_string(source.d) + ",n=" + std::to_string(source.n) +
                " makes too many values; d * n must be <= " + std::to_string(generated_max));
  return source;
}

RatingsSource read_ratings(SpecReader& read) {
  RatingsSource source;
  source.users = read.count("users", source.users, 1, ids_max);
  source.items = read.count("items", source.items, 1, ids_max);
  source.rank = read.count("rank", source.rank, 1, 4096);
  source.n = read.count("n", source.n, 1, generated_max / 4);
  source.noise = read.number("noise", source.noise, 0, noise_max);
  if (source.users + source.items > generated_max / source.rank)
    read.refuse("rank=" + std::to_string(source.rank) +
                " makes too many factors; (users + items) * rank must be <= " +
                std::to_string(generated_max));
  return source;
}

std::string print_task(const std::optional<LabelKind>& task) {
  if (!task) return {};
  return *task == LabelKind::classes ? ",task=class" : ",task=value";
}

std::string print_kind(const IdxSource& s) { return "idx:" + s.images + "," + s.labels; }

std::string print_kind(const Cifar10Source& s) {
  std::string text = "cifar10:";
  for (const std::string& file : s.files) text += (&file == s.files.data() ? "" : ",") + file;
  return text;
}

/// Returns ",option=word,word,..."; empty if there are no words.
std::string print_list(const std::string& option, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "," + option + "=" : ",") + word;
  return text;
}

/// Returns ",option=word" with the first word for `value`; empty if `value` is absent.
template <class T>
std::string print_choice(const std::string& option, const std::optional<T>& value,
                         const std::vector<std::pair<std::string, T>>& choices) {
  if (!value) return {};
  return "," + option + "=" +
         std::ranges::find(choices, *value, &std::pair<std::string, T>::second)->first;
}

std::string print_kind(const CsvSource& s) {
  const std::string label = s.label ? ",label=" + *s.label : "";
  const std::string id = s.id.empty() ? "" : ",id=" + s.id;
  return "csv:" + s.file + label + id + print_task(s.task) +
         print_choice("missing", s.missing, missing_words) + print_list("ignore", s.ignored) +
         print_list("category", s.categories) + print_choice("separator", s.separator, separators) +
         (s.has_decimal_commas ? ",decimal=comma" : "") + (s.has_comments ? ",comment=#" : "") +
         print_choice("header", s.header, yes_or_no);
}

std::string print_kind(const LibsvmSource& s) {
  const std::string features = s.features == 0 ? "" : ",features=" + std::to_string(s.features);
  const std::string base = s.base ? ",base=" + std::to_string(*s.base) : "";
  return "libsvm:" + s.file + features + base + print_task(s.task);
}

std::string print_kind(const NpySource& s) {
  const std::string labels = s.label_file.empty() ? "" : "," + s.label_file;
  const std::string label = s.label_column.empty() ? "" : ",label=" + s.label_column;
  return "npy:" + s.file + labels + label + print_task(s.task) + (s.is_mapped ? ",mapped=yes" : "");
}

std::string print_kind(const NpzSource& s) {
  const std::string features = s.features.empty() ? "" : ",features=" + s.features;
  const std::string labels = s.labels.empty() ? "" : ",labels=" + s.labels;
  return "npz:" + s.file + features + labels + print_task(s.task);
}

std::string print_kind(const ImagesSource& s) {
  const std::string size =
      s.height == 0 ? "" : ",size=" + std::to_string(s.height) + "x" + std::to_string(s.width);
  const std::string channels = s.channels == 0 ? "" : ",channels=" + std::to_string(s.channels);
  return "images:" + s.folder + size + channels;
}

std::string print_kind(const DigitsSource& s) { return "digits:n=" + std::to_string(s.n); }

std::string print_kind(const LinearSource& s) {
  return "linear:d=" + std::to_string(s.d) + ",n=" + std::to_string(s.n) +
         ",noise=" + print_number(s.noise);
}

std::string print_kind(const RatingsSource& s) {
  return "ratings:users=" + std::to_string(s.users) + ",items=" + std::to_string(s.items) +
         ",rank=" + std::to_string(s.rank) + ",n=" + std::to_string(s.n) +
         ",noise=" + print_number(s.noise);
}

Result<Source> refuse_unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known_name, help] : source_names()) names.push_back(known_name);
  return Error{"unknown data source '" + name + "'; " + suggest(name, names)};
}

}  // namespace

Result<Source> Source::parse(std::string_view text) {
  const auto spec = Spec::parse(text);
  if (!spec) return spec.error();
  SpecReader read{*spec};
  Source source;
  if (spec->name == "idx")
    source.kind = read_idx(read);
  else if (spec->name == "cifar10")
    source.kind = read_cifar10(read);
  else if (spec->name == "csv")
    source.kind = read_csv(read, *spec);
  else if (spec->name == "libsvm")
    source.kind = read_libsvm(read, *spec);
  else if (spec->name == "npy")
    source.kind = read_npy(read);
  else if (spec->name == "npz")
    source.kind = read_npz(read, *spec);
  else if (spec->name == "images")
    source.kind = read_images(read, *spec);
  else if (spec->name == "digits")
    source.kind = read_digits(read);
  else if (spec->name == "linear")
    source.kind = read_linear(read);
  else if (spec->name == "ratings")
    source.kind = read_ratings(read);
  else
    return refuse_unknown(spec->name);
  if (auto done = read.finish(); !done) return std::move(done).error();
  return source;
}

std::string Source::print() const {
  return std::visit([](const auto& chosen) { return print_kind(chosen); }, kind);
}

const std::vector<std::pair<std::string, std::string>>& source_names() {
  static const std::vector<std::pair<std::string, std::string>> names{
      {"idx", "images and labels in MNIST's format, gzip or plain: idx:IMAGES,LABELS"},
      {"cifar10", "CIFAR-10's binary files, 32 x 32 x 3, gzip or plain: cifar10:FILE[,FILE...]"},
      {"csv",
       "rows of cells, numbers or categories: "
       "csv:FILE[,label=NAME][,missing=mean|drop][,OPTION...]"},
      {"libsvm",
       "sparse text, label index:value ...: "
       "libsvm:FILE[,features=N][,base=0|1][,task=class|value]"},
      {"npy",
       "arrays of NumPy: "
       "npy:FILE[,LABELS][,label=last|first][,task=class|value][,mapped=yes]"},
      {"npz",
       "an archive of NumPy arrays: "
       "npz:FILE[,features=NAME][,labels=NAME|none][,task=class|value]"},
      {"images",
       "PNG and JPEG images, one subfolder for each class: "
       "images:FOLDER[,size=HxW][,channels=1|3]"},
      {"digits", "drawn digits, 28 x 28, 10 classes, generated: digits[:n=6000]"},
      {"linear", "a linear target, generated: linear[:d=1000,n=20000,noise=0.1]"},
      {"ratings",
       "a low-rank user x item matrix, generated: "
       "ratings[:users=500,items=400,rank=8,n=40000,noise=0.1]"},
  };
  return names;
}

}  // namespace starling::models
