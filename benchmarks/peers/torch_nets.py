#!/usr/bin/python3
"""The training loops of PyTorch on LeNet-5 and psp-cnn, to hold against `models_benchmark`.

    OPENBLAS_CORETYPE=SkylakeX benchmarks/peers/torch_nets.py

Needs Debian's python3-torch and libopenblas0-pthread. One thread; batches are drawn from a tensor of
8,000 images, loss, backward pass and a plain SGD step follow. Prints steps per second of processor
time, as models_benchmark does, for each net: the median of --runs runs.
"""
import argparse
import os
import statistics
import time

# Debian's OpenBLAS has threads of its own, which torch.set_num_threads does not know.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import torch  # noqa: E402
from torch import nn  # noqa: E402


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


def train(model, steps, batch, rows):
    """Steps per second of processor time."""
    x = torch.rand(rows, 1, 28, 28)
    y = torch.randint(0, 10, (rows,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    began = time.process_time()
    for _ in range(steps):
        chosen = torch.randint(0, rows, (batch,))
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x[chosen]), y[chosen]).backward()
        optimizer.step()
    return steps / (time.process_time() - began)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for make, steps in ((lenet5, 300), (psp_cnn, 50)):
        model = make()
        train(model, 5, options.batch, options.rows)
        rates = [train(model, steps, options.batch, options.rows) for _ in range(options.runs)]
        print(f"torch {torch.__version__}, 1 thread, OPENBLAS_CORETYPE="
              f"{os.environ.get('OPENBLAS_CORETYPE', '(unset)')}, {make.__name__}, "
              f"batch {options.batch}: {statistics.median(rates):.1f} steps/s")


if __name__ == "__main__":
    main()
