#!/usr/bin/env python3
"""Measures a training loop of PyTorch: torch_loop.py NET [--batch N] [--rows N] [--seconds T].

NET is a model as `starling models` lists them: mlp:784-128-10, lenet5, psp-cnn, vgg-small or
resnet-small. The loop runs on one thread. A step takes a batch from a shuffled tensor of random
samples, and makes the forward pass, the softmax cross-entropy, the backward pass and a step of
plain SGD. Prints one JSON object. The script `compare` runs this one. Needs PyTorch.
"""
import argparse
import json
import os
import resource
import sys
import time

# BLAS libraries have their own threads, whose number torch.set_num_threads does not change.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"
try:
    import torch
    from torch import nn
except ImportError as fault:
    sys.exit(f"torch_loop.py: PyTorch is not there for {sys.executable} ({fault}); valid: a Python that "
             "has it, such as Debian's /usr/bin/python3 with python3-torch")


def perceptron(widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))


def psp_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1),
        nn.Flatten(), nn.Linear(6272, 1024), nn.ReLU(), nn.Linear(1024, 10))


def vgg_small():
    layers = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(),
                   nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.5), nn.Linear(2048, 128), nn.ReLU(),
                         nn.Linear(128, 10))


class Residual(nn.Module):
    """The sum of two 3x3 convolutions and the input, projected where its shape changes."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.short = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.main(x) + self.short(x))


def resnet_small():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


NETS = {"lenet5": (lenet5, (1, 28, 28)), "psp-cnn": (psp_cnn, (1, 28, 28)),
        "vgg-small": (vgg_small, (3, 32, 32)), "resnet-small": (resnet_small, (3, 32, 32))}


def make(net):
    """Returns the named model and the shape of one of its samples."""
    if net.startswith("mlp:"):
        widths = [int(width) for width in net.removeprefix("mlp:").split("-")]
        return perceptron(widths), (widths[0],)
    if net not in NETS:
        sys.exit(f"torch_loop.py: unknown net '{net}'; valid: mlp:WIDTH-...-WIDTH, {', '.join(NETS)}")
    build, shape = NETS[net]
    return build(), shape


class Loop:
    """A training loop over random samples."""

    def __init__(self, model, shape, batch, rows, channels_last):
        self.x = torch.rand(rows, *shape)
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        self.model = model
        self.y = torch.randint(0, 10, (rows,))
        self.batch, self.rows = batch, rows
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.loss_of = nn.CrossEntropyLoss()
        self.position = rows  # where the next batch begins in self.order

    def step(self):
        """Makes one step and returns its loss."""
        if self.position + self.batch > self.rows:
            self.order, self.position = torch.randperm(self.rows), 0
        chosen = self.order[self.position:self.position + self.batch]
        self.position += self.batch
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(self.model(self.x[chosen]), self.y[chosen])
        loss.backward()
        self.optimizer.step()
        return loss


def blas():
    """Returns the files of the loaded BLAS libraries; empty if PyTorch contains its own."""
    with open("/proc/self/maps") as maps:
        files = {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}
    return sorted(file for file in files
                  if any(name in os.path.basename(file) for name in ("blas", "mkl")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--channels-last", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, shape = make(options.net)
    loop = Loop(model, shape, options.batch, options.rows, options.channels_last and len(shape) == 3)
    for _ in range(5):
        loop.step()
    steps, began, processor_began = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < options.seconds:
        loss = loop.step()
        steps += 1
    took, processor = time.perf_counter() - began, time.process_time() - processor_began
    print(json.dumps({
        "version": torch.__version__, "threads": torch.get_num_threads(),
        "onednn": torch.backends.mkldnn.is_available(), "blas": blas(),
        # Counts the running statistics of batch normalisation too, but not its counters of batches.
        "parameters": sum(t.numel() for t in [*model.parameters(), *model.buffers()] if t.dim() > 0),
        "steps_per_s": steps / took, "steps_per_processor_s": steps / processor,
        "loss": loss.item(),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
