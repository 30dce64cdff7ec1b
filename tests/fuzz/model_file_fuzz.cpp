/// Reads each safetensors file in four ways: as tensors, as a model with its weights, as a
/// checkpoint from which a job resumes, and as training data.
#include "starling/tools/train/model_file.hpp"

#include <algorithm>
#include <cmath>

#include "starling/engine/work/gradients.hpp"
#include "starling/models/sample_order.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/train/checkpoint.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/tools/folder.hpp"

namespace starling::fuzz {
namespace {

using namespace program;

/// Reading a file may take this many times its size: its header is parsed into JSON values, which
/// are several times as large as their text.
constexpr std::size_t heap_factor = 128;

const Registry& registry() {
  static const Registry all = with_built_in({});
  return all;
}

/// The data of the job that is resumed: three features, two classes.
AnyData data() {
  models::Table table{3, 2, models::Table::Dense{}, {}};
  table.labelling.classes = 2;
  return AnyData::of(std::move(table));
}

std::shared_ptr<const AnyModel> model() {
  return make_model(registry(), "softmax", data()).value();
}

ResolvedJob job() {
  ResolvedJob job;
  job.options.job.workers = 2;
  job.options.job.mode = core::Mode::central;
  job.options.job.barrier = {barrier::Bsp{}, std::nullopt};
  job.options.optimizer = models::Adam{};
  job.train_samples = 600;
  return job;
}

const JobIdentity identity{{"model", "softmax"}, {"seed", "1"},       {"batch", "64"},
                           {"workers", "2"},     {"mode", "central"}, {"shards", "1"},
                           {"barrier", "bsp"}};

std::vector<core::RangeState> states() {
  const core::Layout layout = model()->layout(job().options.job);
  std::vector<float> w(layout.size, 0.5F);
  auto all = core::to_ranges<float>(layout, std::span<const float>{w});
  for (core::RangeState& state : all) {
    state.round = 4;
    state.updates = 8;
    state.samples = 64;
    state.ledger = {{0, 4, 32}, {0, 4, 32}};
  }
  return all;
}

/// A temporary file to which the fuzzer writes.
class OutputFile {
 public:
  [[nodiscard]] std::string path() const { return (folder_.path() / "file").string(); }
  [[nodiscard]] Bytes content() const {
    const std::string text = folder_.read("file");
    const auto* first = reinterpret_cast<const Bytes::value_type*>(text.data());
    return {first, first + text.size()};
  }

 private:
  program::Folder folder_;
};

const OutputFile& output_file() {
  static const OutputFile file;
  return file;
}

/// Requires that a file that was read can be written, and that reading the written file gives the
/// same. Tries only one file in 16, because writing is slow.
void write_again(const safetensors::File& file) {
  static std::uint64_t calls = 0;
  if (calls++ % 16 != 0) return;
  std::vector<safetensors::View> views;
  for (const auto& tensor : file.tensors) {
    if (!safetensors::is_valid_tensor_name(tensor.name)) return;
    views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  require(safetensors::write(output_file().path(), file.metadata, views).ok(),
          "a file that was read can be written");
  const auto again = safetensors::read(output_file().path());
  require(again.ok() && again->metadata == file.metadata &&
              again->tensors.size() == file.tensors.size(),
          "a written file has the same metadata and number of tensors");
  for (const auto& tensor : file.tensors) {
    const auto* same = again->find(tensor.name);
    require(same != nullptr && same->dtype == tensor.dtype && same->shape == tensor.shape &&
                same->bytes == tensor.bytes,
            "a written file has the same tensors");
  }
}

/// Requires that a tensor has the size of its shape. Code that copies its values relies on that.
void check_size(const safetensors::Tensor& tensor) {
  std::uint64_t bytes = size_of(tensor.dtype);
  for (const std::uint64_t extent : tensor.shape) bytes *= extent;
  require(bytes == tensor.bytes.size(), "a tensor has as many values as its shape says");
}

/// Reads the file as a model. Refused files are fine.
void read_as_model(const std::string& path) {
  const auto stored = read_model(path, Trust::any);
  if (!stored) return;
  const auto model = model_in(registry(), *stored, data(), "data");
  if (model) (void)weights_in(*stored, **model);
}

/// Reads the file as training data. Requires that the data of an accepted file are valid.
void read_as_data(const std::string& path) {
  const auto loaded = load_source(registry(), "safetensors:" + path, 1);
  if (!loaded) return;
  const models::Table* table = loaded->table();
  require(table != nullptr && table->size() > 0 && table->features() > 0, "data have samples");
  for (std::size_t row = 0; row < table->size(); ++row) {
    const float label = table->label(row);
    require(std::isfinite(label), "labels are numbers");
    require(table->classes() == 0 || (label >= 0 && label < static_cast<float>(table->classes())),
            "labels are classes");
    require(std::ranges::all_of(table->dense_row(row), [](float x) { return std::isfinite(x); }),
            "features are numbers");
  }
}

}  // namespace

bool read(Input input) {
  static const MemoryFile file;
  static const auto our_model = model();
  static const ResolvedJob our_job = job();
  file.set_content(input);
  const auto tensors = with_bounded_heap(heap_factor * input.size() + 65536,
                                         [&] { return safetensors::read(file.path()); });
  if (!tensors) return false;
  std::ranges::for_each(tensors->tensors, check_size);
  write_again(*tensors);
  read_as_model(file.path());
  (void)read_checkpoint(file.path(), *our_model, our_job, identity, Trust::any);
  read_as_data(file.path());
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto add_written_file = [&](const Result<void>& done) {
    require(done.ok(), "seeds are written");
    all.push_back(output_file().content());
    // Also adds the file without its checksum, as other tools write it: with a checksum, all damage
    // is noticed at once.
    std::string text{text_of(all.back())};
    if (const auto at = text.find("crc32"); at != std::string::npos)
      all.push_back(bytes_of(text.replace(at, 5, "other")));
  };
  const std::vector<float> f{1, -2.5F};
  const std::vector<std::uint64_t> counts{7};
  add_written_file(
      safetensors::write(output_file().path(), {{"note", "\xc3\xa4"}},
                         std::vector{safetensors::view<float>("f", {2, 1}, f),
                                     safetensors::view<std::uint64_t>("n", {}, counts)}));
  const std::vector<std::uint64_t> labels{1, 0};
  add_written_file(
      safetensors::write(output_file().path(), {},
                         std::vector{safetensors::view<float>("x", {2, 1}, f),
                                     safetensors::view<std::uint64_t>("y", {2}, labels)}));
  require(load_source(registry(), "safetensors:" + output_file().path(), 1).ok(),
          "the data of the seeds are valid");
  const ModelNotes notes = notes_of(*model(), {}, data());
  add_written_file(save_model(output_file().path(), notes, *model(),
                              model()->collect(job().options.job, states())));
  add_written_file(
      write_checkpoint(output_file().path(), notes, *model(), job(), identity, states(), 8));
  require(read_checkpoint(output_file().path(), *model(), job(), identity).ok(),
          "the checkpoint of the seeds is valid");
  // The checkpoint of a job with other workers, which has had others before.
  ResolvedJob changed = job();
  changed.options.job.former_deals = {{0, 32, 64, {{1}, {1}, {2}}}};
  const core::Step first =
      models::SampleOrder{600, 2, 32, 1, true, changed.options.job.former_deals}.first_step();
  auto changed_states = states();
  for (core::RangeState& state : changed_states) {
    state.round = first + 1;
    state.ledger = {{0, first + 1, 64}, {0, first + 1, 64}};
  }
  JobIdentity other = identity;
  other[2].second = "32";
  add_written_file(
      write_checkpoint(output_file().path(), notes, *model(), changed, other, changed_states, 8));
  require(read_checkpoint(output_file().path(), *model(), job(), identity).ok(),
          "the checkpoint of other workers is valid");
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
