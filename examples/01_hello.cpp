// Two workers fit a linear model to generated data, as peers under pSSP.
//
//     cmake --preset dev && cmake --build --preset dev --target 01_hello
//     build/dev/examples/01_hello
//
// prints, after some tenths of a second (noise alone makes a loss of 0.005):
//
//     2 workers made 400 updates: the test loss is 0.0052
#include <cstdio>

#include "starling/actor/train/train.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/tabular/linear_models.hpp"

int main() {
  using namespace starling;
  const auto source = models::Source::parse("linear:d=20,n=2000,noise=0.1").value();
  const auto data = models::load_pair(source, source, 1).value();
  const auto linear = Spec::parse("linear").value();
  const auto model = models::Linear<float>::parse(linear, data.train).value();

  actor::TrainOptions options;
  options.job.workers = 2;
  options.job.barrier = barrier::parse("pssp:s=4,beta=1").value();
  options.job.steps = 200;
  const auto outcome = actor::train(model, data.train, &data.test, options);
  if (!outcome) return std::fprintf(stderr, "%s\n", outcome.error().message.c_str()), 1;
  if (outcome->end == actor::Outcome::End::failed)
    return std::fprintf(stderr, "%s\n", outcome->error.c_str()), 1;

  std::printf("2 workers made %lu updates: the test loss is %.4f\n",
              static_cast<unsigned long>(outcome->last.updates), outcome->last.test[0].value);
}
