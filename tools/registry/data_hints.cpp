#include "starling/tools/registry/data_hints.hpp"

#include <array>
#include <filesystem>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// A file format that Starling does not read, and Python code that converts such a file to a format
/// that Starling reads. FILE stands for the file's name, STEM for the name without its ending.
struct UnreadFormat {
  const char* ending;
  const char* python;
};

constexpr std::array unread_formats{
    UnreadFormat{".parquet",
                 "import pandas; pandas.read_parquet('FILE').to_csv('STEM.csv', index=False)"},
    UnreadFormat{".feather",
                 "import pandas; pandas.read_feather('FILE').to_csv('STEM.csv', index=False)"},
    UnreadFormat{".xlsx",
                 "import pandas; pandas.read_excel('FILE').to_csv('STEM.csv', index=False)"},
    UnreadFormat{".xls",
                 "import pandas; pandas.read_excel('FILE').to_csv('STEM.csv', index=False)"},
    UnreadFormat{".ods",
                 "import pandas; pandas.read_excel('FILE').to_csv('STEM.csv', index=False)"},
    UnreadFormat{".json",
                 "import pandas; pandas.read_json('FILE').to_csv('STEM.csv', index=False)"},
    UnreadFormat{
        ".jsonl",
        "import pandas; pandas.read_json('FILE', lines=True).to_csv('STEM.csv', index=False)"},
    UnreadFormat{".arff",
                 "import pandas, scipy.io.arff as a; pandas.DataFrame(a.loadarff('FILE')[0])"
                 ".apply(lambda c: c.str.decode('utf-8') if c.dtype == object else c)"
                 ".to_csv('STEM.csv', index=False)"},
    UnreadFormat{".h5",
                 "import h5py, numpy; f = h5py.File('FILE'); "
                 "numpy.savez('STEM.npz', **{k: f[k][()] for k in f})"},
    UnreadFormat{".hdf5",
                 "import h5py, numpy; f = h5py.File('FILE'); "
                 "numpy.savez('STEM.npz', **{k: f[k][()] for k in f})"},
    UnreadFormat{".pkl",
                 "import pandas; pandas.DataFrame(pandas.read_pickle('FILE'))"
                 ".to_csv('STEM.csv', index=False)"},
    UnreadFormat{".pickle",
                 "import pandas; pandas.DataFrame(pandas.read_pickle('FILE'))"
                 ".to_csv('STEM.csv', index=False)"},
};

/// Returns the shell command that converts a file of this name; empty if none is known.
std::string conversion_of(const std::string& path) {
  for (const auto& [ending, python] : unread_formats) {
    if (!path.ends_with(ending)) continue;
    std::string code = python;
    const std::string stem = path.substr(0, path.size() - std::string_view{ending}.size());
    for (const auto& [word, value] : {std::pair{std::string{"FILE"}, path}, {"STEM", stem}})
      if (const auto at = code.find(word); at != std::string::npos)
        code.replace(at, word.size(), value);
    return "python3 -c \"" + code + "\"";
  }
  return {};
}

Error unread_error(const std::string& path, const std::string& conversion) {
  return Error{
      "'" + path +
      "' has a format that Starling does not read; this command converts it: " + conversion};
}

/// Returns the first option without a key, which is a file in most sources.
std::string first_file(const Spec& spec) {
  for (const auto& [key, value] : spec.options)
    if (key.empty()) return value;
  return {};
}

bool is_numpy(const std::string& path) { return path.ends_with(".npy") || path.ends_with(".npz"); }

bool is_image(const std::string& path) {
  return path.ends_with(".png") || path.ends_with(".jpg") || path.ends_with(".jpeg");
}

}  // namespace

std::string suggest_sources(const std::string& path) {
  std::error_code ignored;
  if (path.ends_with(".safetensors")) return "safetensors:" + path;
  if (path.ends_with(".npy"))
    return "npy:" + path + ",LABELS, npy:" + path + ",label=last or npy:" + path;
  if (path.ends_with(".npz")) return "npz:" + path;
  if (std::filesystem::is_directory(path, ignored)) return "images:" + path;
  if (is_image(path)) return "images:FOLDER, a folder that holds one folder of images a class";
  return "csv:" + path + ", libsvm:" + path + ", cifar10:" + path + " or idx:" + path + ",LABELS";
}

Error unknown_data(const Spec& spec, std::span<const std::string> names) {
  const std::string& name = spec.name;
  std::error_code ignored;
  for (const std::string& file : {name, first_file(spec)})
    if (const std::string command = conversion_of(file); !command.empty())
      return unread_error(file, command);
  if (std::filesystem::is_directory(name, ignored))
    return Error{"'" + name +
                 "' is a folder; data is named with its format: " + suggest_sources(name)};
  if (is_numpy(name) || std::filesystem::is_regular_file(name, ignored))
    return Error{"'" + name +
                 "' is a file; data is named with its format: " + suggest_sources(name)};
  if (name.find_first_of("./") != std::string::npos) return Error{name + ": no such file"};
  return Error{"unknown data source '" + name + "'; " + suggest(name, names)};
}

Result<void> check_text_file(const std::string& source, const std::string& path) {
  if (is_numpy(path))
    return Error{"'" + path + "' is not a text file, but " + source +
                 ": reads only text files; valid: " + suggest_sources(path)};
  const std::string command = conversion_of(path);
  if (!command.empty()) return unread_error(path, command);
  return {};
}

std::string valid_labels(const std::string& text) {
  const auto spec = Spec::parse(text);
  const std::string name = spec ? spec->name : "";
  if (name == "npy") return "valid: npy:FILE,LABELS, label=last or label=first";
  if (name == "npz") return "valid: labels=NAME";
  if (name == "images") return "valid: one folder of images a class";
  return "valid: label=last, label=first or label=NAME";
}

}  // namespace starling::program
