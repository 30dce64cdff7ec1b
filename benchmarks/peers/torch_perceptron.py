#!/usr/bin/python3
"""The whole training loop of PyTorch on the perceptron, to hold against `live_benchmark`.

    OPENBLAS_CORETYPE=SkylakeX benchmarks/peers/torch_perceptron.py --widths 784 128 10

Needs Debian's python3-torch and libopenblas0-pthread. One thread; batches are cut from a shuffled
tensor, loss, backward pass and a plain SGD step follow. Prints steps/s: the median of --runs runs.
"""
import argparse
import os
import statistics
import time

# Debian's OpenBLAS has threads of its own, which torch.set_num_threads does not know.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import torch  # noqa: E402


def train(widths, steps, batch, rows):
    torch.manual_seed(1)
    x = torch.rand(rows, widths[0])
    y = torch.randint(0, widths[-1], (rows,))
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of = torch.nn.CrossEntropyLoss()
    began = time.perf_counter()
    order = torch.randperm(rows)
    for step in range(steps):
        at = step * batch % (rows - batch)
        if at == 0:
            order = torch.randperm(rows)
        chosen = order[at:at + batch]
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x[chosen]), y[chosen]).backward()
        optimizer.step()
    return steps / (time.perf_counter() - began)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--widths", type=int, nargs="+", default=[784, 128, 10])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    train(options.widths, 50, options.batch, options.rows)
    rates = [train(options.widths, options.steps, options.batch, options.rows)
             for _ in range(options.runs)]
    print(f"torch {torch.__version__}, 1 thread, OPENBLAS_CORETYPE="
          f"{os.environ.get('OPENBLAS_CORETYPE', '(unset)')}, {torch.backends.mkldnn.is_available()=}, "
          f"{'-'.join(map(str, options.widths))}, batch {options.batch}: "
          f"{statistics.median(rates):.0f} steps/s")


if __name__ == "__main__":
    main()
