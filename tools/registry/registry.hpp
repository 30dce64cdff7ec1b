/// Holds the models, data sources, barriers, flows and own actors of a program by name. A user's
/// program passes its own entries to starling::main (main.hpp), which adds the built-in ones.
///
///     int main(int argc, char** argv) {
///       starling::Registry registry;
///       registry.model<Ring>("ring", "a model of my own");
///       registry.data("rings", "points on two rings: rings[:n=1000]", make_rings);
///       registry.barrier(half);
///       return starling::main(argc, argv, std::move(registry));
///     }
///
/// Your own actors (actors()) start with the jobs that name them. `run` runs your own flows
/// (flow()). A model or data source of your own hides a built-in one of the same name. A barrier
/// must not have the name of a built-in one.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "starling/actor/engines/algorithm.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"
#include "starling/tools/registry/any_data.hpp"
#include "starling/tools/registry/any_model.hpp"

namespace starling {

namespace program {

/// A kind of model under a name, for one element type and one type of data.
struct ModelEntry {
  std::string name;
  std::string summary;
  ElementType element_type = ElementType::float32;
  /// The type of data from which the model learns.
  std::type_index data_type = typeid(models::Table);
  /// Returns true if the data is of the type from which the model learns.
  std::function<bool(const AnyData&)> accepts;
  /// Makes the model with the options of a spec. Requires: accepts() returns true for the data.
  std::function<Result<std::shared_ptr<const AnyModel>>(const Spec&, const AnyData&)> make;
};

/// A data source that this registry adds to those of models::source_names().
struct DataEntry {
  /// Loads the data. For test data, `shape` is the table of the training data without its rows, or
  /// null if the training data is not a table. For training data, it is null.
  using Load =
      std::function<Result<AnyData>(SpecReader&, std::uint64_t seed, const models::Table* shape)>;

  std::string name;
  std::string summary;
  Load load;
  /// True if the source is a flow of samples.
  bool is_flow = false;
};

/// A user's own barrier.
struct BarrierEntry {
  barrier::Predicate rule;
  std::string summary;
};

/// A user's own actors, which start with a job that names them.
struct ActorsEntry {
  std::string name;
  std::string summary;
  actor::OnStart spawn;
};

class FlowContext;

/// A flag of a flow, `--name VALUE`, or `--name` if `value_name` is empty.
struct FlowOption {
  std::string name;
  /// The word that stands for the value in `--help`, like N.
  std::string value_name;
  std::string help;
};

/// A map-reduce program, which `run NAME` runs on files, and `submit --flow NAME` on a cluster.
struct FlowEntry {
  std::string name;
  std::string summary;
  std::vector<FlowOption> options;
  /// Reads the options, and runs nothing. Returns an Error if an option is wrong.
  std::function<Result<void>(SpecReader& options)> check;
  /// Reads the options, and runs the flow.
  std::function<Result<void>(SpecReader& options, FlowContext& context)> run;
};

/// Read the options of a flow of type F, or read them and run the flow. Defined in flow.hpp;
/// include flow.hpp in files that add flows.
template <class F>
[[nodiscard]] Result<void> check_flow(SpecReader& options);
template <class F>
[[nodiscard]] Result<void> run_flow(SpecReader& options, FlowContext& context);

/// Returns the function that loads the samples of a flow of type F as training data; null if its
/// records are not samples. Defined in flow.hpp.
template <class F>
[[nodiscard]] DataEntry::Load load_of_flow();

/// Wraps a model; `text` is what AnyModel::print() returns. Defined in model_of.hpp, which main.hpp
/// includes; include model_of.hpp in files that add models.
template <class M, class D>
[[nodiscard]] std::shared_ptr<const AnyModel> any_model_of(M model, std::string text);

/// Wraps an algorithm; defined in algorithm_of.hpp, which main.hpp includes.
template <class T, class D>
class AlgorithmOf;

/// Returns the text from which Spec::parse() reads the same spec.
[[nodiscard]] std::string print(const Spec& spec);

/// The type of the value in a Result; T itself if T is not a Result.
template <class T>
struct ResultOf {
  using Value = T;
};
template <class T>
struct ResultOf<Result<T>> {
  using Value = T;
};

/// Converts a plain value to a Result, and returns a Result as it is.
template <class T>
[[nodiscard]] Result<T> as_result(T value) {
  return value;
}
template <class T>
[[nodiscard]] Result<T> as_result(Result<T> result) {
  return result;
}

/// A model that parses its own options: `static Result<M> parse(const Spec&, const D&)`.
template <class M, class D>
concept ParsedModel = requires(const Spec& spec, const D& data) {
  { M::parse(spec, data) } -> std::same_as<Result<M>>;
};

}  // namespace program

class Registry {
 public:
  /// Adds a model over data of type D, written `--model name[:options]`. To make the model, the
  /// registry calls `M::parse(const Spec&, const D&)` -> Result<M> if it exists, else the
  /// constructor `M(const D&)` if it exists, else `M()`, which leaves the fields of an aggregate at
  /// their defaults. To make it otherwise, pass a function:
  ///
  ///     registry.model<Ring>("ring", "my model",
  ///                          [](SpecReader&, const models::Table&) { return Ring{.radius = 2}; });
  ///
  /// parse(), the constructor and the function may read only the shape of a table: when a saved
  /// model is loaded, they get a table with the features and classes of the training data, but
  /// without rows.
  template <class M, class D = models::Table>
  requires models::Model<M, D> Registry& model(std::string name, std::string summary) {
    return add_model<M, D>(std::move(name), std::move(summary), {});
  }

  /// Adds a model that has static members `name` and `summary`, and whose print() returns a text
  /// that its parse() reads.
  template <class M, class D = models::Table>
  requires models::Model<M, D> Registry& model() {
    return add_model<M, D>(std::string{M::name}, std::string{M::summary},
                           [](const M& made) { return made.print(); });
  }

  /// Adds a model that `make(SpecReader& options, const D& data)` makes. `make` returns an M or a
  /// Result<M>. An option that `make` does not read is an error.
  template <class M, class D = models::Table, class Make>
  requires models::Model<M, D> && std::invocable<Make, SpecReader&, const D&> Registry& model(
      std::string name, std::string summary, Make make) {
    auto make_from_spec = [make = std::move(make)](const Spec& spec, const D& data) -> Result<M> {
      SpecReader options{spec};
      auto made = program::as_result<M>(make(options, data));
      if (auto done = options.finish(); !done) return std::move(done).error();
      return made;
    };
    return add_entry<M, D>(std::move(name), std::move(summary), std::move(make_from_spec), {});
  }

  /// Adds a model that `make(const Spec&, const D&)` -> Result<M> makes, and whose print() returns
  /// a text that `make` reads.
  template <class M, class D = models::Table, class Make>
  requires models::Model<M, D> &&
      std::is_same_v<std::invoke_result_t<Make, const Spec&, const D&>, Result<M>>
          Registry& model(std::string name, std::string summary, Make make) {
    return add_entry<M, D>(std::move(name), std::move(summary), std::move(make),
                           [](const M& made) { return made.print(); });
  }

  /// Adds an algorithm for the parameter engine and the peer engine, written `--model
  /// name[:options]`: its job runs in any mode, in one process or on a cluster. `make(SpecReader&
  /// options, const D& data)` returns an actor::Algorithm<T>, with T float or double, or a Result
  /// of it. The data outlives the algorithm. `make` is called on each node, and its result must
  /// depend only on its arguments. `make` is also called with data without samples, when a saved
  /// result is loaded; so the shapes of the algorithm's tensors must depend only on the shape of
  /// the data.
  template <class T, class D = models::Table, class Make>
  requires std::invocable<Make, SpecReader&, const D&> Registry& algorithm(std::string name,
                                                                           std::string summary,
                                                                           Make make) {
    using Wrapped = program::AlgorithmOf<T, D>;
    auto make_any = [make = std::move(make)](const Spec& spec, const program::AnyData& data)
        -> Result<std::shared_ptr<const program::AnyModel>> {
      auto make_for = [make, spec](const D& typed) -> Result<actor::Algorithm<T>> {
        SpecReader options{spec};
        auto made = program::as_result<actor::Algorithm<T>>(make(options, typed));
        if (auto done = options.finish(); !done) return std::move(done).error();
        return made;
      };
      auto made = make_for(*data.as<D>());
      if (!made) return std::move(made).error();
      if (auto valid = actor::check(*made); !valid) return std::move(valid).error();
      std::shared_ptr<const program::AnyModel> wrapped = std::make_shared<const Wrapped>(
          *std::move(made), std::move(make_for), program::print(spec));
      return wrapped;
    };
    models_.push_back({std::move(name), std::move(summary), program::element_type<T>, typeid(D),
                       [](const program::AnyData& data) { return data.as<D>() != nullptr; },
                       std::move(make_any)});
    return *this;
  }

  /// Adds a data source, written `--data name[:options]`. `load(SpecReader& options, std::uint64_t
  /// seed)` returns a data set of any type D, or a Result<D>. With `--test name`, `load` is called
  /// again, with another seed. If D has `select(rows)`, a part of the data can be held out for
  /// tests.
  template <class Load>
  requires std::invocable<Load, SpecReader&, std::uint64_t> Registry& data(std::string name,
                                                                           std::string summary,
                                                                           Load load) {
    using D = typename program::ResultOf<
        std::remove_cvref_t<std::invoke_result_t<Load, SpecReader&, std::uint64_t>>>::Value;
    auto load_any = [load = std::move(load)](SpecReader& options, std::uint64_t seed,
                                             const models::Table*) -> Result<program::AnyData> {
      auto loaded = program::as_result<D>(load(options, seed));
      if (!loaded) return std::move(loaded).error();
      return program::AnyData::of<D>(*std::move(loaded));
    };
    data_.push_back({std::move(name), std::move(summary), std::move(load_any)});
    return *this;
  }

  /// Adds a barrier, written `--barrier label`, or `--barrier plabel:beta=N` for its sampled form.
  /// When the program starts, it refuses a label that is the name of a built-in barrier, or that
  /// users could not write on the command line.
  Registry& barrier(barrier::Predicate rule, std::string summary = {}) {
    barriers_.push_back({std::move(rule), std::move(summary)});
    return *this;
  }

  /// Adds actors of your own, written `--actors name`. Each process that has members of the job
  /// calls `spawn(actors, system)` once, before these members begin; on a node that joins a running
  /// job, other members have begun already. `spawn` spawns actors in `system`, which ask the
  /// members questions through the handles in `actors` (JobActors). The job waits until `spawn`
  /// returns, on a node up to 20 s. If `spawn` takes longer or throws, the job does not start in
  /// this process. `spawn` must be thread-safe, because a node calls it for several jobs at the
  /// same time. It is called again for a job that is started again because a node has died. The job
  /// ends only when these actors have ended: each must monitor JobActors::job, and quit when that
  /// actor has ended; a node logs an actor for which it waits longer than 10 s.
  Registry& actors(std::string name, std::string summary, actor::OnStart spawn) {
    actors_.push_back({std::move(name), std::move(summary), std::move(spawn)});
    return *this;
  }

  /// Adds a map-reduce program, run by `run NAME --input FILE`, or on the nodes of a cluster by
  /// `submit --flow NAME --input FILE`. flow.hpp, which the caller must include, says what F needs.
  /// A flow of your own hides a built-in one of the same name. A flow of samples is a data source
  /// too, written `--data NAME:FILE[,FILE...][,option=value...]`.
  template <class F>
  Registry& flow() {
    if (auto load = program::load_of_flow<F>())
      data_.push_back({std::string{F::name}, std::string{F::summary}, std::move(load), true});
    flows_.push_back({std::string{F::name}, std::string{F::summary}, F::flow_options(),
                      program::check_flow<F>, program::run_flow<F>});
    return *this;
  }

  /// Adds the models of `other`, except those with the name and the type of data of a model that is
  /// here already, whatever its elements are.
  Registry& add_models_of(const Registry& other);

  [[nodiscard]] const std::vector<program::ModelEntry>& models() const { return models_; }
  [[nodiscard]] const std::vector<program::DataEntry>& data() const { return data_; }
  [[nodiscard]] const std::vector<program::BarrierEntry>& barriers() const { return barriers_; }

  [[nodiscard]] const std::vector<program::ActorsEntry>& actors() const { return actors_; }
  [[nodiscard]] const std::vector<program::FlowEntry>& flows() const { return flows_; }

  /// Returns an Error for the first barrier, actors, model, algorithm, data source or flow whose
  /// name is given twice. Models and algorithms may share a name if their elements or their data
  /// have different types. Except for data sources, models and algorithms, also refuses a name that
  /// users could not write on the command line.
  [[nodiscard]] Result<void> check() const;

  /// Returns the rules of barriers(), for barrier::parse().
  [[nodiscard]] std::vector<barrier::Predicate> rules() const {
    std::vector<barrier::Predicate> rules;
    for (const auto& entry : barriers_) rules.push_back(entry.rule);
    return rules;
  }

 private:
  /// A function that returns the text of a model, which the model's parse() reads.
  template <class M>
  using Print = std::function<std::string(const M&)>;

  /// Makes a model by the first of parse(), M(const D&) and M() that exists. The latter two take no
  /// options.
  template <class M, class D>
  static Result<M> make_from(const Spec& spec, const D& data) {
    if constexpr (program::ParsedModel<M, D>) {
      return M::parse(spec, data);
    } else {
      static_assert(std::is_constructible_v<M, const D&> || std::is_default_constructible_v<M>,
                    "a model needs parse(), M(const D&), M() or a function that makes it");
      SpecReader options{spec};
      if (auto done = options.finish(); !done) return std::move(done).error();
      if constexpr (std::is_constructible_v<M, const D&>)
        return M(data);
      else
        return M{};
    }
  }

  template <class M, class D>
  Registry& add_model(std::string name, std::string summary, Print<M> print) {
    return add_entry<M, D>(std::move(name), std::move(summary), make_from<M, D>, std::move(print));
  }

  /// Adds a model that `make(const Spec&, const D&)` makes. Without `print`, the text of a model is
  /// the spec from which it was made.
  template <class M, class D, class Make>
  Registry& add_entry(std::string name, std::string summary, Make make, Print<M> print) {
    auto make_any =
        [make = std::move(make), print = std::move(print)](
            const Spec& spec,
            const program::AnyData& data) -> Result<std::shared_ptr<const program::AnyModel>> {
      auto made = make(spec, *data.as<D>());
      if (!made) return std::move(made).error();
      std::string text = print ? print(*made) : program::print(spec);
      return program::any_model_of<M, D>(*std::move(made), std::move(text));
    };
    models_.push_back({std::move(name), std::move(summary),
                       program::element_type<typename M::Scalar>, typeid(D),
                       [](const program::AnyData& data) { return data.as<D>() != nullptr; },
                       std::move(make_any)});
    return *this;
  }

  std::vector<program::ModelEntry> models_;
  std::vector<program::DataEntry> data_;
  std::vector<program::BarrierEntry> barriers_;
  std::vector<program::ActorsEntry> actors_;
  std::vector<program::FlowEntry> flows_;
};

}  // namespace starling
