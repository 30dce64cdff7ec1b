#include "starling/models/net/named_nets.hpp"

#include <algorithm>
#include <string>

namespace starling::models {

const std::vector<NamedNet>& named_nets() {
  static const std::vector<NamedNet> nets{
      // LeCun et al., Proc. IEEE 1998, figure 2, with today's usual changes: max pooling, ReLU,
      // all channels connected, softmax.
      {"lenet5", "LeNet-5, for images like 28x28x1: lenet5[:input=HxWxC]", "28x28x1",
       "conv2d 6 kernel=5 padding=2; relu; max-pool 2; "
       "conv2d 16 kernel=5; relu; max-pool 2; "
       "flatten; dense 120; relu; dense 84; relu"},
      // Wang, Catterall, Mortier, arXiv 1709.07772: the net of the experiments on MNIST.
      {"psp-cnn", "the PSP paper's convolutional net: psp-cnn[:input=HxWxC]", "28x28x1",
       "conv2d 32 kernel=5 padding=2; relu; max-pool 2; dropout 0.1; "
       "flatten; dense 1024; relu"},
      // After Simonyan, Zisserman, ICLR 2015: pairs of 3x3 convolutions between poolings.
      {"vgg-small", "three VGG blocks, for images like 32x32x3: vgg-small[:input=HxWxC]", "32x32x3",
       "conv2d 32 kernel=3 padding=1; relu; conv2d 32 kernel=3 padding=1; relu; max-pool 2; "
       "conv2d 64 kernel=3 padding=1; relu; conv2d 64 kernel=3 padding=1; relu; max-pool 2; "
       "conv2d 128 kernel=3 padding=1; relu; conv2d 128 kernel=3 padding=1; relu; max-pool 2; "
       "flatten; dropout 0.5; dense 128; relu"},
      // He et al., CVPR 2016, section 4.2 with n = 1 (ResNet-8), projections as in option B.
      {"resnet-small", "ResNet of 8 layers, for images like 32x32x3: resnet-small[:input=HxWxC]",
       "32x32x3",
       "conv2d 16 kernel=3 padding=1 bias=0; batch-norm; relu; "
       "residual(conv2d 16 kernel=3 padding=1 bias=0; batch-norm; relu; "
       "conv2d 16 kernel=3 padding=1 bias=0; batch-norm); relu; "
       "residual(conv2d 32 kernel=3 stride=2 padding=1 bias=0; batch-norm; relu; "
       "conv2d 32 kernel=3 padding=1 bias=0; batch-norm | "
       "conv2d 32 kernel=1 stride=2 bias=0; batch-norm); relu; "
       "residual(conv2d 64 kernel=3 stride=2 padding=1 bias=0; batch-norm; relu; "
       "conv2d 64 kernel=3 padding=1 bias=0; batch-norm | "
       "conv2d 64 kernel=1 stride=2 bias=0; batch-norm); relu; "
       "global-avg-pool"},
  };
  return nets;
}

std::optional<NetDescription> named_net(std::string_view name, std::size_t outputs) {
  const auto found = std::ranges::find(named_nets(), name, &NamedNet::name);
  if (found == named_nets().end()) return std::nullopt;
  const std::string layers = std::string{found->layers} + "; dense " + std::to_string(outputs);
  return NetDescription{.layers = parse_layers(layers).value()};
}

}  // namespace starling::models
