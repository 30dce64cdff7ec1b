// Two workers train a small residual net of layers on generated digits, as peers under pSSP.
//
//     cmake --preset dev && cmake --build --preset dev --target 08_net
//     build/dev/examples/08_net
//
// prints, after about two seconds:
//
//     a net of 2170 parameters made 600 updates and reads 99 % of the digits
#include <cstdio>

#include "starling/actor/train/train.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/net/net.hpp"

int main() {
  using namespace starling;
  const auto data = models::load_pair(models::Source::parse("digits:n=4000").value(),
                                      models::Source::parse("digits:n=500").value(), 1)
                        .value();
  models::NetDescription description;
  description.layers = models::parse_layers(
                           "conv2d 8 kernel=5 stride=2 padding=2; batch-norm; relu;"
                           "residual(conv2d 8 kernel=3 padding=1; batch-norm; relu;"
                           "         conv2d 8 kernel=3 padding=1); relu;"
                           "max-pool 4; flatten; dense 10")
                           .value();
  const auto net = models::Net<float>::make(description, data.train).value();

  actor::TrainOptions options;
  options.optimizer = models::parse_optimizer("adam:lr=0.003").value();
  options.batch = 32;
  options.job.workers = 2;
  options.job.barrier = barrier::parse("pssp:s=4,beta=1").value();
  options.job.steps = 300;
  const auto outcome = actor::train(net, data.train, &data.test, options);
  if (!outcome) return std::fprintf(stderr, "%s\n", outcome.error().message.c_str()), 1;
  if (outcome->end == actor::Outcome::End::failed)
    return std::fprintf(stderr, "%s\n", outcome->error.c_str()), 1;

  std::printf("a net of %lu parameters made %lu updates and reads %.0f %% of the digits\n",
              static_cast<unsigned long>(models::total_size(net.parameters())),
              static_cast<unsigned long>(outcome->last.updates), 100 * outcome->last.test[1].value);
}
